import { describe, expect, test } from "vitest";
import type { Complete } from "@lossless/core";
import { checkCitations } from "../../src/recall/citations.ts";
import { longTalk, main, openArchive, say } from "./archive.ts";

const TALK = [
  ...longTalk("n", 40),
  say("q", "user", "How often do we retry a failed upload?", 50),
  say("a", "assistant", "Three times, with exponential backoff.", 51),
];
const text =
  (answer: string): Complete =>
  async () => ({
    kind: "text",
    text: answer,
    model: { provider: "p", model: "m" },
    inputTokens: 100,
    outputTokens: 10,
  });

describe("ask", () => {
  test("answers with verbatim passages and their ids when there is no model", async () => {
    await using archive = await openArchive();
    await archive.engine.ingest({ session: main, messages: TALK });
    const answer = await archive.engine.ask({
      session: main,
      prompt: "How often do we retry uploads?",
      tokenCap: 1_000,
    });
    expect(answer).toMatchObject({ answeredBy: "passages", failure: null, sourceConversationId: 1 });
    expect(answer.passages.slice(0, 3).map(({ eventId }) => eventId)).toEqual(
      expect.arrayContaining(["q", "a"]),
    );
    expect(answer.answer).toContain("Three times, with exponential backoff.");
    expect(answer.totalSourceTokens).toBeLessThanOrEqual(1_000);
    expect(answer.conversationBreakdown[0]?.conversationId).toBe(1);
    for (const id of answer.citedIds)
      expect((await archive.engine.describe({ session: main, id })).type).toBe("messages");
  });

  test("looks below named summaries only", async () => {
    await using archive = await openArchive();
    await archive.engine.ingest({ session: main, messages: longTalk("n", 90) });
    await archive.engine.compact({
      sessionKey: main.key,
      owner: main.owner,
      budgetTokens: 3_000,
      force: true,
    });
    const { items } = await archive.engine.listSummaries({ conversationId: 1, limit: 10 });
    const leaf = items.find(({ kind }) => kind === "leaf");
    const node = await archive.engine.readSummary({ summaryId: leaf?.summaryId ?? "" });
    const answer = await archive.engine.ask({
      session: main,
      prompt: "what about tulips?",
      summaryIds: [leaf?.summaryId ?? ""],
    });
    expect(answer.expandedSummaryCount).toBeGreaterThan(0);
    for (const { id } of answer.passages) expect(node?.messageIds).toContain(Number(id.slice(4)));
  });

  test("lets a model write from the passages, and takes out ids it made up", async () => {
    await using archive = await openArchive({
      complete: text("Three times [msg_42, msg_999]. Backoff is used [msg_998]."),
    });
    await archive.engine.ingest({ session: main, messages: TALK });
    const answer = await archive.engine.ask({ session: main, prompt: "How often do we retry uploads?" });
    expect(answer).toMatchObject({
      answeredBy: "model",
      citedIds: ["msg_42"],
      answer: "Three times [msg_42]. Backoff is used.",
      // Its only id was made up, so nothing stands behind it.
      uncitedClaims: ["Backoff is used."],
    });
    expect(answer.notes).toEqual(['One sentence cites no passage and cannot be checked: "Backoff is used."']);
    expect(await archive.engine.spend({ by: "purpose" })).toMatchObject([{ key: "ask", inputTokens: 100 }]);
  });

  test("falls back to the passages when the model fails, lies, or is late, and says which", async () => {
    const cases: [Complete, string][] = [
      [text("It was five [msg_777]."), "DELEGATED_EXPANSION_REPLY_INVALID"],
      [text("  "), "DELEGATED_EXPANSION_REPLY_MISSING"],
      [
        async () => ({ kind: "failure", failure: "auth", message: "no key" }),
        "DELEGATED_EXPANSION_SPAWN_FAILED",
      ],
      [() => new Promise(() => undefined), "DELEGATED_EXPANSION_TIMEOUT"],
    ];
    for (const [complete, errorCode] of cases) {
      await using archive = await openArchive({ complete });
      await archive.engine.ingest({ session: main, messages: TALK });
      const answer = await archive.engine.ask({
        session: main,
        prompt: "How often do we retry uploads?",
        // Only the one that never answers is to be late, however slow the machine is.
        timeoutMs: errorCode === "DELEGATED_EXPANSION_TIMEOUT" ? 50 : undefined,
      });
      expect(answer).toMatchObject({ answeredBy: "passages", failure: { errorCode } });
      expect(answer.passages.length).toBeGreaterThan(0);
    }
  });

  test("asks the model nothing more once the time is over", async () => {
    const realNow = Date.now;
    let calls = 0;
    await using archive = await openArchive({
      complete: async (request, signal) => {
        calls += 1;
        // While the model reads on, an hour passes.
        Date.now = () => realNow() + 3_600_000;
        return text("SEARCH: uploads")(request, signal);
      },
    });
    await archive.engine.ingest({ session: main, messages: TALK });
    try {
      const answer = await archive.engine.ask({ session: main, prompt: "How often do we retry uploads?" });
      expect(answer).toMatchObject({
        answeredBy: "passages",
        failure: { errorCode: "DELEGATED_EXPANSION_TIMEOUT" },
      });
      expect(calls).toBe(1);
    } finally {
      Date.now = realNow;
    }
  });

  test("lets the model search, open and expand before it answers, and keeps the summaries it cites", async () => {
    const seen: string[] = [];
    const replies: ((user: string) => string)[] = [];
    await using archive = await openArchive({
      complete: async ({ user, purpose }, signal) => {
        if (purpose !== "ask") return { kind: "failure", failure: "unavailable", message: "only asked" };
        seen.push(user);
        return text((replies.shift() ?? (() => ""))(user))({} as never, signal);
      },
    });
    await archive.engine.ingest({
      session: main,
      messages: [
        say("z", "user", "The zeppelin hangar is at gate 9."),
        ...longTalk("n", 90),
        ...TALK.slice(-2),
      ],
    });
    await archive.engine.compact({
      sessionKey: main.key,
      owner: main.owner,
      budgetTokens: 3_000,
      force: true,
    });
    const { items } = await archive.engine.listSummaries({ conversationId: 1, limit: 50 });
    const leaf = items.find(({ kind }) => kind === "leaf")?.summaryId ?? "";
    replies.push(
      () => "I need more.\nSEARCH zeppelin hangar\nOPEN msg_3\nOPEN msg_99999",
      () => `EXPAND ${leaf}`,
      (user) => {
        const found = /\[(msg_\d+)\] user[^\n]*\nThe zeppelin/.exec(user)?.[1] ?? "";
        return `It is at gate 9 [${found}]. Earlier notes say more [${leaf}, msg_3].`;
      },
    );
    const answer = await archive.engine.ask({ session: main, prompt: "How often do we retry uploads?" });
    expect(seen).toHaveLength(3);
    expect(seen[0]).not.toContain("zeppelin");
    expect(seen[0]).toContain("You may read on 3 more times.");
    expect(seen[1]).toContain("OPEN msg_99999: cannot open msg_99999");
    expect(seen[2]).toContain(`[${leaf}] summary`);
    expect(answer).toMatchObject({ answeredBy: "model", failure: null });
    expect(answer.citedIds).toEqual([expect.stringMatching(/^msg_/), leaf, "msg_3"]);
    expect(answer.answer).toContain(`[${leaf}, msg_3]`);
    expect(answer.passages.map(({ id }) => id)).toEqual(expect.arrayContaining(["msg_3", leaf]));
    expect(answer.totalSourceTokens).toBeLessThanOrEqual(4_000);
    expect(await archive.engine.spend({ by: "purpose" })).toContainEqual(
      expect.objectContaining({ key: "ask", calls: 3 }),
    );
  });

  test("ends reading on after a few rounds, and by the deadline, with what was read", async () => {
    let calls = 0;
    await using endless = await openArchive({
      complete: async (request, signal) => {
        calls += 1;
        return text("SEARCH tulips\nSEARCH bees")(request, signal);
      },
    });
    await endless.engine.ingest({ session: main, messages: TALK });
    const answer = await endless.engine.ask({ session: main, prompt: "How often do we retry uploads?" });
    expect(calls).toBe(4);
    expect(answer).toMatchObject({
      answeredBy: "passages",
      truncated: true,
      failure: { errorCode: "DELEGATED_EXPANSION_REPLY_INVALID" },
    });
    expect(answer.passages.some(({ text: said }) => said.includes("tulips"))).toBe(true);
    const first = [text("OPEN msg_3")];
    await using slow = await openArchive({
      complete: (request, signal) => first.shift()?.(request, signal) ?? new Promise(() => undefined),
    });
    await slow.engine.ingest({ session: main, messages: TALK });
    const late = await slow.engine.ask({
      session: main,
      prompt: "How often do we retry uploads?",
      timeoutMs: 300,
    });
    expect(late).toMatchObject({ failure: { errorCode: "DELEGATED_EXPANSION_TIMEOUT" }, truncated: true });
    expect(late.passages.map(({ id }) => id)).toContain("msg_3");
  });

  test("reads on only where the question may look", async () => {
    const replies = ["OPEN msg_44\nSEARCH marzipan", "It is not said [msg_1]."];
    const seen: string[] = [];
    await using archive = await openArchive({
      complete: async (request, signal) => {
        seen.push(request.user);
        return text(replies.shift() ?? "")(request, signal);
      },
    });
    await archive.engine.ingest({ session: main, messages: TALK });
    const elsewhere = { key: "agent:main:kitchen", id: "kitchen-1", owner: "main" };
    await archive.engine.ingest({
      session: elsewhere,
      messages: [say("m1", "user", "Marzipan is in the tin."), say("m2", "user", "Marzipan again.")],
    });
    await archive.engine.ask({ session: main, prompt: "How often do we retry uploads?" });
    expect(seen).toHaveLength(2);
    expect(seen[1]).not.toContain("Marzipan");
  });

  test("is bounded across conversations and says how many it left out", async () => {
    await using archive = await openArchive();
    for (let i = 0; i < 9; i++) {
      const session = { key: `agent:main:${i}`, id: `s${i}`, owner: "main" };
      await archive.engine.ingest({
        session,
        messages: [say("m", "user", `The marigold price in shop ${i} is ${i} coins.`)],
      });
    }
    const answer = await archive.engine.ask({
      session: main,
      prompt: "marigold price?",
      allConversations: true,
    });
    expect(answer.sourceConversationIds).toHaveLength(5);
    expect(answer).toMatchObject({ skippedConversations: 4, truncated: true, sourceConversationId: null });
  });
});

test.each([
  ["every claim has its id", "It is three [msg_1]. Backoff is used too [msg_2].", []],
  ["an id behind the full stop", "It is three times. [msg_1] Backoff is used too. [msg_2]", []],
  ["one has none", "It is three times [msg_1]. Uploads are never retried.", ["Uploads are never retried."]],
  [
    "a list",
    "In short:\n- three times [msg_1]\n- with exponential backoff always",
    ["with exponential backoff always"],
  ],
  [
    "none has one",
    "We retry three times. Nothing else is known.",
    ["We retry three times.", "Nothing else is known."],
  ],
  ["headings and short words are no claims", "# What we know\nYes. It is three times [msg_1].", []],
  ["another language", "我们重试三次 [msg_1]。上传从不重试吗。", ["上传从不重试吗。"]],
])("sentences without an id are told apart: %s", (_name, answer, uncited) => {
  const checked = checkCitations(answer, ["msg_1", "msg_2"]);
  expect(checked.uncited).toEqual(uncited);
});

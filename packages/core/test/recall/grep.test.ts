import { fc } from "@lossless/testkit/properties.ts";
import { describe, expect, test } from "vitest";
import { grepTool } from "@lossless/core";
import { longTalk, main, openArchive, other, say } from "./archive.ts";

const TALK = [
  say("e1", "user", "How should failed uploads be handled?", 0),
  say(
    "e2",
    "assistant",
    "We decided to retry uploads three times with exponential backoff, in uploadQueue_v2.",
    1,
  ),
  say("e3", "user", "Fine. The config key is MAX_RETRY_COUNT in src/upload/queue.ts.", 2),
  say("e4", "assistant", "深圳银行的招聘会在周五。", 3),
  say("e5", "user", "Unrelated: the cat sleeps on the greenhouse roof.", 4),
  say("e6", "assistant", "Commit a262de1f0 fixed the retry loop.", 5),
];

describe("full-text search", () => {
  test("finds the answer to a question as typed, best first, and says how it was found", async () => {
    await using archive = await openArchive();
    await archive.engine.ingest({ session: main, messages: TALK });
    const answer = await archive.engine.grep({
      session: main,
      pattern: "what did we decide about retries?",
      mode: "full_text",
      sort: "relevance",
    });
    expect(answer.hits[0]).toMatchObject({
      type: "message",
      eventId: "e2",
      role: "assistant",
      conversationId: 1,
      seq: 2,
    });
    expect(answer.hits[0]?.snippet).toContain("retry uploads three times");
    expect(answer).toMatchObject({ rule: "relaxed", mode: "full_text", isTotalExact: true, next: null });
  });

  test("prefers the speaker whom a question names, the asker's own words, and the answer beside a question", async () => {
    await using archive = await openArchive();
    const talk = [
      say("b0", "user", "Bob: Ann, the lake was cold, I went swimming there.", 0),
      say("a1", "user", "Ann: The lake was cold, I went swimming there.", 1),
      say("a2", "user", "Ann: Fine weather today.", 2),
      say("b2", "user", "Bob: It was raining here.", 3),
      say("a3", "user", "Ann: Which instrument would be the best one for a beginner?", 4),
      say("b3", "user", "Bob: The cello.", 5),
      say("a4", "user", "Ann: Good to know.", 6),
    ];
    const chat = [
      say("m1", "assistant", "Noted: the boiler is serviced in March.", 0),
      say("u1", "user", "Remember that the boiler is serviced in March.", 1),
    ];
    await archive.engine.ingest({ session: main, messages: talk });
    await archive.engine.ingest({ session: { ...main, key: "agent:main:chat", id: "chat" }, messages: chat });
    const best = async (key: string, pattern: string, count = 1): Promise<unknown> => {
      const session = { ...main, key };
      const { hits } = await archive.engine.grep({ session, pattern, mode: "full_text", sort: "relevance" });
      return hits.slice(0, count).map((hit) => (hit.type === "message" ? hit.eventId : null));
    };
    expect(await best(main.key, "Where did Ann go swimming in the lake?")).toEqual(["a1"]);
    expect(await best("agent:main:chat", "When did I say the boiler is serviced?")).toEqual(["u1"]);
    expect(await best(main.key, "Which instrument is best for a beginner?", 2)).toEqual(["a3", "b3"]);
  });

  test("finds identifiers whole, in pieces, in other spelling, and by the beginning of a hash", async () => {
    await using archive = await openArchive();
    await archive.engine.ingest({ session: main, messages: TALK });
    const first = async (pattern: string): Promise<unknown> => {
      const { hits } = await archive.engine.grep({
        session: main,
        pattern,
        mode: "full_text",
        sort: "relevance",
      });
      return hits[0]?.type === "message" ? hits[0].eventId : null;
    };
    expect(await first("MAX_RETRY_COUNT")).toBe("e3");
    expect(await first("maxRetryCount")).toBe("e3");
    expect(await first("src/upload/queue.ts")).toBe("e3");
    expect(await first("uploadQueue")).toBe("e2");
    expect(await first("a262de1")).toBe("e6");
    expect(await first("招聘会在哪一天？")).toBe("e4");
    expect(await first('"greenhouse roof"')).toBe("e5");
  });

  test("narrows by role and time, and pages through everything once", async () => {
    await using archive = await openArchive();
    await archive.engine.ingest({ session: main, messages: longTalk("n", 90) });
    const users = await archive.engine.grep({
      session: main,
      pattern: "tulips",
      mode: "full_text",
      role: "user",
      limit: 200,
    });
    expect(users.hits.length).toBeGreaterThan(5);
    expect(users.hits.every((hit) => hit.type === "message" && hit.role === "user")).toBe(true);
    const since = "2026-03-02T00:00:00Z";
    const late = await archive.engine.grep({
      session: main,
      pattern: "tulips",
      mode: "full_text",
      since,
      limit: 200,
    });
    expect(late.hits.every((hit) => hit.createdAt >= Date.parse(since))).toBe(true);
    const seen: string[] = [];
    for (let after: string | undefined; ;) {
      const page = await archive.engine.grep({
        session: main,
        pattern: "tulips",
        mode: "full_text",
        limit: 4,
        after,
      });
      seen.push(...page.hits.map(({ id }) => id));
      if (page.next === null) break;
      after = page.next;
    }
    expect(new Set(seen).size).toBe(seen.length);
    expect(seen.length).toBe(12);
  });

  test("orders keywords that are found together by time, newest first", async () => {
    await using archive = await openArchive();
    await archive.engine.ingest({ session: main, messages: longTalk("n", 60) });
    const { hits, rule } = await archive.engine.grep({
      session: main,
      pattern: "tulips",
      mode: "full_text",
      limit: 200,
    });
    expect(rule).toBe("strict");
    const times = hits.map(({ createdAt }) => createdAt);
    expect(times).toEqual(times.toSorted((a, b) => b - a));
  });

  test("shows a revised message in its newest version only", async () => {
    await using archive = await openArchive();
    await archive.engine.ingest({ session: main, messages: TALK });
    await archive.engine.ingest({
      session: main,
      messages: [say("e2", "assistant", "We retry uploads five times, zigzag backoff.", 1)],
    });
    const { hits, total } = await archive.engine.grep({
      session: main,
      pattern: "backoff",
      mode: "full_text",
    });
    expect(total).toBe(1);
    expect(hits.map((hit) => hit.snippet)).toEqual(["We retry uploads five times, zigzag backoff."]);
  });

  test("searches the family by default, one conversation or all of the owner when asked, and never another owner", async () => {
    await using archive = await openArchive();
    const { engine } = archive;
    await engine.ingest({ session: main, messages: [say("a", "user", "the marigold order")] });
    await engine.recordBoundary({ session: main, eventId: "reset-1", reason: "reset" });
    await engine.ingest({
      session: { ...main, id: "garden-2" },
      messages: [say("b", "user", "the second marigold order")],
    });
    await engine.ingest({
      session: { ...main, key: "agent:main:else", id: "x" },
      messages: [say("c", "user", "a marigold elsewhere")],
    });
    await engine.ingest({ session: other, messages: [say("d", "user", "a foreign marigold")] });
    const find = async (more: object): Promise<string[]> => {
      const { hits } = await engine.grep({ session: main, pattern: "marigold", mode: "full_text", ...more });
      return hits.flatMap((hit) => (hit.type === "message" ? [hit.eventId] : [])).toSorted();
    };
    expect(await find({})).toEqual(["a", "b"]);
    expect(await find({ allConversations: true })).toEqual(["a", "b", "c"]);
    expect(await find({ conversationId: 1 })).toEqual(["a"]);
    await expect(find({ conversationId: 4 })).rejects.toMatchObject({ code: "not_found" });
    expect(await find({ session: { ...main, key: "agent:main:new" } })).toEqual([]);
  });

  test("narrows to a project, an agent, or all but a session, and names where hits come from", async () => {
    await using archive = await openArchive();
    const { engine } = archive;
    const told = (id: string) => ({
      session: { ...main, key: `codex:${id}`, id },
      messages: [say(id, "user", `The heron of ${id}.`)],
    });
    await engine.ingest({ ...told("one"), origin: { agent: "codex", project: "/srv/app", title: "Birds" } });
    await engine.ingest({ ...told("two"), origin: { agent: "claude-code", project: "/srv/app" } });
    await engine.ingest({ ...told("three"), origin: { agent: "codex", project: "/srv/lib" } });
    const find = async (filter: object) => {
      const request = { session: main, pattern: "heron", mode: "full_text" as const, ...filter };
      const { conversations } = await engine.grep(request);
      return conversations.map(({ sessionId }) => sessionId).toSorted();
    };
    expect(await find({})).toEqual([]);
    expect(await find({ project: "/srv/app" })).toEqual(["one", "two"]);
    expect(await find({ project: "/srv/app", agent: "codex" })).toEqual(["one"]);
    expect(await find({ project: "/srv/app", exceptSession: "one" })).toEqual(["two"]);
    expect(await find({ project: "/srv" })).toEqual([]);
    expect(await find({ agent: "codex", session: other })).toEqual([]);
    const { text } = await grepTool.run({ engine, session: main }, { pattern: "heron", project: "/srv/lib" });
    expect(text).toContain("[conv=3 codex session=three msg_3]");
    expect(text).toContain("in 1 conversations in /srv/lib");
  });

  test("finds summaries, with their depth and kind", async () => {
    await using archive = await openArchive();
    await archive.engine.ingest({ session: main, messages: longTalk("n", 80) });
    await archive.engine.compact({
      sessionKey: main.key,
      owner: main.owner,
      budgetTokens: 3_000,
      force: true,
    });
    const { hits } = await archive.engine.grep({
      session: main,
      pattern: "greenhouse door",
      mode: "full_text",
      scope: "summaries",
    });
    expect(hits.length).toBeGreaterThan(0);
    for (const hit of hits)
      expect(hit).toMatchObject({ type: "summary", id: expect.stringMatching(/^sum_[0-9a-f]{16}$/) });
    const both = await archive.engine.grep({
      session: main,
      pattern: "greenhouse door",
      mode: "full_text",
      limit: 200,
    });
    expect(new Set(both.hits.map(({ type }) => type))).toEqual(new Set(["message", "summary"]));
    const report = await archive.engine.verify();
    expect(report.problems).toEqual([]);
    await archive.engine.reindex();
    expect((await archive.engine.verify()).problems).toEqual([]);
  });

  test("points out regular expressions, refuses impossible arguments, and takes any text", async () => {
    await using archive = await openArchive();
    const { engine } = archive;
    await engine.ingest({ session: main, messages: TALK });
    const { notes } = await engine.grep({ session: main, pattern: "retry.*backoff", mode: "full_text" });
    expect(notes.map(({ text }) => text).join(" ")).toContain("regular expression");
    await expect(engine.grep({ session: main, pattern: "  ", mode: "full_text" })).rejects.toMatchObject({
      code: "usage",
    });
    await expect(engine.grep({ session: main, pattern: "x", limit: 201 })).rejects.toMatchObject({
      code: "usage",
    });
    await expect(
      engine.grep({ session: main, pattern: "x", since: "2026-02-02", before: "2026-02-01" }),
    ).rejects.toMatchObject({ code: "usage" });
    await expect(engine.grep({ session: main, pattern: "x", since: "yesterdayish" })).rejects.toMatchObject({
      code: "usage",
    });
    await fc.assert(
      fc.asyncProperty(fc.string({ minLength: 1, unit: "binary", maxLength: 60 }), async (text) => {
        if (text.trim() === "") return;
        const { hits } = await engine.grep({ session: main, pattern: text, mode: "full_text" });
        expect(hits.length).toBeLessThanOrEqual(6);
      }),
      { numRuns: 200 },
    );
  });
});

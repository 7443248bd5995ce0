import { describe, expect, test } from "vitest";
import type { Arrival } from "@lossless/core";
import { isRecallTool } from "../../src/model/recall-tools.ts";
import { longTalk, main, openArchive, say } from "./archive.ts";

const call = (eventId: string, id: string, name: string, args: object, text = ""): Arrival => ({
  eventId,
  message: {
    role: "assistant",
    content: [
      ...(text === "" ? [] : [{ type: "text", text }]),
      { type: "toolCall", id, name, arguments: args },
    ],
  },
});
const result = (eventId: string, toolCallId: string, text: string, toolName?: string): Arrival => ({
  eventId,
  message: {
    role: "toolResult",
    toolCallId,
    toolName,
    content: [{ type: "text", text }],
  },
});
/** What Claude Code writes: results come back under the user's role and carry no name. */
const nameless = (eventId: string, id: string, text: string): Arrival => ({
  eventId,
  message: { role: "user", content: [{ type: "tool_result", tool_use_id: id, content: text }] },
});
const use = (eventId: string, id: string, name: string, input: object): Arrival => ({
  eventId,
  message: { role: "assistant", content: [{ type: "tool_use", id, name, input }] },
});

/** One message says where the key is; every other one that holds the words asked for it. */
const TALK: Arrival[] = [
  say("said", "user", "The orchid key hangs behind the boiler."),
  ...longTalk("n", 12),
  call("c1", "call_1", "lcm_grep", { pattern: "orchid key" }),
  result("r1", "call_1", '0 found for "orchid key" (full_text, empty)', "lcm_grep"),
  use("c2", "toolu_2", "mcp__lossless__lcm_grep", { pattern: "orchid key" }),
  nameless("r2", "toolu_2", "[conv=1 msg_1] (user): The orchid key hangs behind the boiler."),
  call("c3", "call_3", "lcm_describe", { id: "orchid key" }, "I look into the walnut drawer again."),
  result("r3", "call_3", "[msg_1] user\nThe orchid key hangs behind the boiler.", "lcm_describe"),
];

const asked = { session: main, pattern: "orchid key", mode: "full_text", scope: "messages" } as const;

test.each([
  ["lcm_grep", true],
  ["mcp__lossless__lcm_expand_query", true],
  ["lossless.lcm_describe", true],
  ["functions:lcm_grep", true],
  ["grep", false],
  ["xlcm_grep", false],
  ["lcm_grep_helper2", false],
  ["read_lcm_file.ts", false],
])("%s is a tool of ours: %s", (name, isOurs) => expect(isRecallTool(name)).toBe(isOurs));

describe("calls and results of our own tools", () => {
  test("are not found by words, unless asked for", async () => {
    await using archive = await openArchive();
    await archive.engine.ingest({ session: main, messages: TALK });
    const found = await archive.engine.grep(asked);
    expect(found.hits.map((hit) => "eventId" in hit && hit.eventId)).toEqual(["said"]);
    expect(found.total).toBe(1);
    const all = await archive.engine.grep({ ...asked, includeRecall: true });
    expect(all.hits.map((hit) => "eventId" in hit && hit.eventId).toSorted()).toEqual(
      ["c1", "c2", "c3", "r1", "r2", "r3", "said"].toSorted(),
    );
    const plain = await archive.engine.search({ query: "orchid key", limit: 20 });
    expect(plain.hits.map(({ eventId }) => eventId)).toEqual(["said"]);
    expect((await archive.engine.search({ query: "orchid key", limit: 20, includeRecall: true })).total).toBe(
      7,
    );
  });

  test("are not found by a regular expression, unless asked for", async () => {
    await using archive = await openArchive();
    await archive.engine.ingest({ session: main, messages: TALK });
    const request = { ...asked, pattern: "or[c]hid\\s+key", mode: "regex" } as const;
    const found = await archive.engine.grep(request);
    expect(found).toMatchObject({ total: 1, hits: [{ eventId: "said" }] });
    expect((await archive.engine.grep({ ...request, includeRecall: true })).total).toBe(7);
  });

  test("hide nothing else that their message says, and the snippet shows that", async () => {
    await using archive = await openArchive();
    await archive.engine.ingest({ session: main, messages: TALK });
    for (const request of [
      { ...asked, pattern: "walnut drawer" },
      { ...asked, pattern: "walnut d.awer", mode: "regex" as const },
    ]) {
      const { hits } = await archive.engine.grep(request);
      expect(hits).toMatchObject([{ eventId: "c3", snippet: "I look into the walnut drawer again." }]);
    }
    // One word stands in the text of that message, the other only in its call: it does not hold both.
    const both = await archive.engine.grep({ ...asked, pattern: '"walnut" "orchid"' });
    expect(both.complete).toBe(0);
    expect(both.hits.map((hit) => "eventId" in hit && hit.eventId).toSorted()).toEqual(["c3", "said"]);
  });

  test("a reused call id hides only results of our tools", async () => {
    await using archive = await openArchive();
    await archive.engine.ingest({
      session: main,
      messages: [
        use("c1", "call_0", "lcm_grep", { pattern: "plum" }),
        nameless("r1", "call_0", "0 found: plum"),
        use("c2", "call_0", "read_file", { path: "fruit.txt" }),
        nameless("r2", "call_0", "plum trees"),
      ],
    });
    const { hits } = await archive.engine.grep({ ...asked, pattern: "plum" });
    expect(hits).toMatchObject([{ eventId: "r2" }]);
  });

  test("are stubs in a tight context, as far as it is decided, and whole where everything fits", async () => {
    await using archive = await openArchive();
    const found = "[conv=1 msg_1] (user): The orchid key hangs behind the boiler. ".repeat(20);
    await archive.engine.ingest({
      session: main,
      messages: [
        ...longTalk("n", 20),
        call("c1", "call_1", "lcm_grep", { pattern: "orchid key" }),
        result("r1", "call_1", found, "lcm_grep"),
        call("c2", "call_2", "exec", { command: "ls" }),
        result("r2", "call_2", found, "exec"),
        ...longTalk("m", 40),
        call("c3", "call_3", "lcm_grep", { pattern: "orchid key" }),
        result("r3", "call_3", found, "lcm_grep"),
      ],
    });
    const request = { sessionKey: main.key, owner: main.owner };
    const whole = await archive.engine.assemble({ ...request, budgetTokens: 100_000 });
    expect(whole).toMatchObject({ mode: "whole" });
    expect(whole?.items.filter(({ kind }) => kind === "stub")).toEqual([]);
    const budgetTokens = Math.floor((whole?.estimatedTokens ?? 0) * 0.97);
    const tight = await archive.engine.assemble({ ...request, budgetTokens });
    expect(tight?.items.filter(({ kind }) => kind === "stub").map(({ ids }) => ids)).toEqual([["msg_22"]]);
    expect(JSON.stringify(tight?.messages)).toContain("Tool output of lcm_grep");
  });

  test("give no passages and no recall cue", async () => {
    await using archive = await openArchive({ settings: { freshTailCount: 2 } });
    await archive.engine.ingest({ session: main, messages: [...TALK, ...longTalk("m", 6)] });
    const answer = await archive.engine.ask({ session: main, prompt: "Where is the orchid key?" });
    const ids = answer.passages.map(({ eventId }) => eventId);
    expect(ids[0]).toBe("said");
    for (const id of ["c1", "r1", "c2", "r2", "r3"]) expect(ids).not.toContain(id);
    const context = await archive.engine.assemble({
      sessionKey: main.key,
      owner: main.owner,
      budgetTokens: 100_000,
      prompt: "orchid key",
    });
    const cue = JSON.stringify(context?.messages.at(-1));
    expect(cue).toContain("<recall");
    expect(cue).toContain("behind the boiler");
    expect(cue).not.toContain("0 found");
    expect(cue.match(/msg_\d+ \(/g)).toEqual(["msg_1 ("]);
  });
});

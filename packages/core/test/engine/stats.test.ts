/** Figures from transcripts: usage counts once for each answer, and only in its day, model and project. */
import { openTestEngine } from "@lossless/testkit/session-archive.ts";
import { expect, test } from "vitest";
import { parsePrices, sumCost } from "../../src/doors/prices.ts";

const DAY = Date.parse("2026-03-01T10:00:00Z");
const answer = (id: string, output: number, more: object = {}) => ({
  message: {
    id,
    role: "assistant",
    model: "large",
    content: [{ type: "text", text: "done" }],
    usage: { input_tokens: 10, output_tokens: output, cache_read_input_tokens: 90 },
    ...more,
  },
});
const call = { type: "tool_use", id: "t1", name: "Bash", input: { command: "ls" } };
const failed = { type: "tool_result", tool_use_id: "t1", is_error: true, content: "no" };

test("adds up tokens, cache, tools, errors and hours by day, model and tool", async () => {
  const engine = await openTestEngine();
  const lines: object[] = [
    { message: { role: "user", content: "go" } },
    answer("a1", 2),
    // The same answer again, further written.
    answer("a1", 7, { content: [call] }),
    { message: { role: "user", content: [failed] } },
    answer("a2", 5),
  ];
  const messages = lines.map((message, at) => ({
    eventId: `e${at}`,
    message: { ...message, timestamp: new Date(DAY + at * 60_000).toISOString() },
  }));
  const session = { key: "k", id: "s", owner: "main" };
  await engine.ingest({ session, messages, origin: { agent: "claude-code", project: "/srv/app" } });
  const figures = {
    requests: 2,
    prompts: 1,
    inputTokens: 20,
    outputTokens: 12,
    cacheReadTokens: 180,
    cacheWriteTokens: 0,
    toolCalls: 1,
    errors: 1,
    activeMs: 4 * 60_000,
    conversations: 1,
  };
  const byDay = await engine.stats({});
  expect(byDay.total).toEqual({ key: null, ...figures });
  expect(byDay.groups).toMatchObject([{ key: "2026-03-01", requests: 2 }]);
  expect((await engine.stats({ by: "tool" })).groups).toMatchObject([
    { key: "Bash", toolCalls: 1, errors: 1, requests: 0 },
  ]);
  expect((await engine.stats({ by: "project" })).groups).toMatchObject([{ key: "/srv/app" }]);
  expect((await engine.stats({ agent: "codex" })).total.requests).toBe(0);
  expect((await engine.stats({ since: DAY + 86_400_000 })).total.requests).toBe(0);
  // Counted again when it has grown.
  await engine.ingest({ session, messages: [{ eventId: "e9", ...answer("a3", 1) }] });
  expect((await engine.stats({})).total.outputTokens).toBe(13);
});

test("counts what lies in the time asked for, also from the middle of a day", async () => {
  const engine = await openTestEngine();
  const timed = (eventId: string, at: number, message: object) => ({
    eventId,
    message: { ...message, timestamp: new Date(at).toISOString() },
  });
  const session = { key: "k", id: "s", owner: "main" };
  await engine.ingest({
    session,
    messages: [
      timed("e0", DAY, answer("a1", 2, { content: [call] })),
      timed("e1", DAY + 3_600_000, { message: { role: "user", content: [failed] } }),
      timed("e2", DAY + 3_600_001, answer("a2", 5)),
      timed("e3", DAY + 7_200_000, answer("a3", 11)),
    ],
  });
  const ask = { since: DAY + 3_600_000, before: DAY + 7_200_000 };
  expect((await engine.stats(ask)).total).toMatchObject({ requests: 1, outputTokens: 5, errors: 1 });
  expect((await engine.stats({ ...ask, by: "tool" })).groups).toMatchObject([{ key: "Bash", errors: 1 }]);
  expect((await engine.stats({})).total.outputTokens).toBe(18);
});

test("a price needs a source and a date; names with a dash behind it count", () => {
  const price = { input: 2, output: 10, source: "https://example.com", date: "2026-11-16" };
  const prices = parsePrices(JSON.stringify({ models: { large: price } }), "prices.json");
  const used = { inputTokens: 1e6, outputTokens: 1e5, cacheReadTokens: 0, cacheWriteTokens: 0 };
  const groups = ["large-20260101", "provider/large", "larger", null].map((key) => ({ key, ...used }));
  const idle = { key: "idle", ...used, inputTokens: 0, outputTokens: 0 };
  expect(sumCost([...groups, idle], prices)).toEqual({
    currency: "USD",
    total: 6,
    byModel: { "large-20260101": 3, "provider/large": 3 },
    unpriced: ["larger", "unknown"],
    sources: ["https://example.com (2026-11-16)"],
  });
  const { source: _source, ...bare } = price;
  expect(() => parsePrices(JSON.stringify({ models: { large: bare } }), "p")).toThrow(/names no source/);
});

test("reads the usage that Gemini CLI writes: cached input is part of the input, thoughts were written", async () => {
  const engine = await openTestEngine();
  const tokens = { input: 100, output: 7, cached: 90, thoughts: 5, tool: 3, total: 115 };
  const message = { id: "m1", type: "gemini", content: "done", model: "gemini-x", tokens };
  await engine.ingest({
    session: { key: "k", id: "s", owner: "main" },
    messages: [{ eventId: "m1", message }],
  });
  expect((await engine.stats({})).total).toMatchObject({
    requests: 1,
    inputTokens: 13,
    outputTokens: 12,
    cacheReadTokens: 90,
  });
});

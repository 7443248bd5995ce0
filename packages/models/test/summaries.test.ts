/** The summariser with a provider over HTTP and a real ledger: what must hold when a model misbehaves. */
import { resolveSettings } from "@lossless/core";
import type { EngineEvent } from "@lossless/core";
import type { RunItem } from "@lossless/core/ports";
import { createSummarizer } from "@lossless/core/testing";
import { SqliteStore } from "@lossless/sqlite";
import { makeTemporaryFolder } from "@lossless/testkit";
import { type FakeReply, startFakeProvider } from "@lossless/testkit/fake-provider.ts";
import { expect, test } from "vitest";
import { openComplete } from "../src/open-complete.ts";

const SUMMARY =
  "Ana asked for a quieter pump. Boris measured 61 dB and ordered a rubber mount.\nExpand for details about: the measurements.";

const talk: RunItem[] = Array.from({ length: 30 }, (_, index) => ({
  startPosition: index,
  endPosition: index,
  seq: index,
  hidden: 0,
  tokens: 40,
  messages: 1,
  createdAt: Date.UTC(2026, 4, 1, 8, index),
  isDated: true,
  messageId: index,
  versionId: index,
  bytes: Buffer.from(
    JSON.stringify({
      role: index % 2 ? "assistant" : "user",
      content: `Measurement ${index}: the pump in the cellar runs at ${50 + index} dB with the old mount, and Ana finds that too loud for the evening, so a rubber mount should be ordered.`,
    }),
  ),
  summary: null,
}));

test.each<[string, FakeReply, string, string]>([
  [
    "answers well",
    { kind: "text", text: SUMMARY, usage: { inputTokens: 700, outputTokens: 40 } },
    "normal",
    "accepted",
  ],
  ["is down", { kind: "status", status: 503 }, "extractive", "failed:unavailable"],
  ["refuses the key", { kind: "status", status: 401 }, "extractive", "failed:auth"],
  [
    "limits the rate",
    { kind: "status", status: 429, headers: { "retry-after": "60" } },
    "extractive",
    "failed:rate_limited",
  ],
  ["returns nothing", { kind: "text", text: "" }, "extractive", "rejected:empty"],
  ["returns thinking only", { kind: "text", text: "", thinking: "So" }, "extractive", "rejected:empty"],
  [
    "returns more than it was given",
    { kind: "text", text: "The pump is loud. ".repeat(3000) },
    "extractive",
    "rejected:too_long",
  ],
  ["never answers", { kind: "silence" }, "extractive", "failed:timeout"],
  ["stalls", { kind: "stall", text: "Ana" }, "extractive", "failed:timeout"],
  ["cuts the line", { kind: "cut", text: "Ana" }, "extractive", "failed:invalid_response"],
])("a model that %s", async (_what, reply, level, outcome) => {
  using folder = makeTemporaryFolder();
  const provider = await startFakeProvider(reply);
  const store = new SqliteStore({
    path: folder.file("lcm.db"),
    filesDir: folder.file("files"),
    create: true,
  });
  const outcomes: string[] = [];
  const events: EngineEvent[] = [];
  const config = {
    summaryModel: "openai/m",
    timezone: "UTC",
    summaryTimeoutMs: outcome === "failed:timeout" ? 30 : 60_000,
  };
  const { settings } = resolveSettings({ env: {}, config, stateDir: folder.path });
  const env = { OPENAI_BASE_URL: `${provider.url}/v1` };
  const summarize = createSummarizer({
    settings,
    complete: openComplete({ settings, env, stateDir: folder.path }),
    clock: { now: () => Date.UTC(2026, 4, 1, 9) },
    emit: (event) => events.push(event),
    store: {
      recordSpend: (record) => {
        outcomes.push(record.outcome);
        return store.recordSpend(record);
      },
      countSpendCalls: (since) => store.countSpendCalls(since),
      sumSpend: (request) => store.sumSpend(request),
      readGuards: () => store.readGuards(),
      saveGuard: (guard) => store.saveGuard(guard),
    },
  });
  const result = await summarize({
    conversationId: 1,
    purpose: "leaf",
    depth: 0,
    run: talk,
    previous: null,
    isStart: true,
    targetTokens: 400,
    sourceTokens: 1200,
    signal: new AbortController().signal,
  });
  expect(result.level).toBe(level);
  expect(result.tokens).toBeLessThan(1200);
  if (level === "normal") expect(result).toMatchObject({ content: SUMMARY, model: "openai/m" });
  expect(outcomes[0]).toBe(outcome);
  expect(await store.countSpendCalls(0)).toBe(outcomes.length);
  expect(events.filter((event) => event.kind === "spend")).toHaveLength(outcomes.length);
  await Promise.all(provider.requests.map((request) => request.closed));
  await store.close();
  await provider.close();
});

import { makeClock, makeTemporaryFolder } from "@lossless/testkit";
import { someOf } from "@lossless/testkit/rounds.ts";
import { describe, expect, onTestFinished, test } from "vitest";

import { openEngine } from "lossless-claw";
import type { Complete, CompleteResult, Engine, EngineEvent } from "../../src/index.ts";

import { ArchiveView, findFaults } from "./context-checks.ts";
import { makeTurns, SESSION, settingsFor, START_MS } from "./conversation.ts";

const BUDGET = 8_000;
const CONVERSATION = 1;
const MODEL = { provider: "fake", model: "fake" };

const say = (text: string): CompleteResult => ({
  kind: "text",
  text,
  model: MODEL,
  inputTokens: 900,
  outputTokens: 90,
});

interface Stage {
  readonly engine: Engine;
  readonly database: string;
  readonly events: EngineEvent[];
  /** How often the model was asked. */
  readonly calls: () => number;
  readonly wait: (ms: number) => void;
  /** What the model does from now on. */
  readonly become: (complete: Complete) => void;
}

/** A conversation well above its threshold, and a model that behaves as told. */
async function setStage(complete: Complete, config: Record<string, unknown> = {}): Promise<Stage> {
  const folder = makeTemporaryFolder();
  onTestFinished(() => folder[Symbol.dispose]());
  const database = folder.file("lcm.db");
  const clock = makeClock(3, START_MS + 80 * 90_000);
  const events: EngineEvent[] = [];
  let [calls, passedMs, model] = [0, 0, complete];
  const engine = await openEngine({
    database,
    thread: false,
    settings: settingsFor(database, {
      freshTailCount: 6,
      leafChunkTokens: 1_500,
      leafTargetTokens: 300,
      condensedTargetTokens: 250,
      ...config,
    }),
    clock: { now: () => clock.now() + passedMs, random: clock.random },
    complete: (request, signal) => {
      calls += 1;
      return model(request, signal);
    },
    onEvent: (event) => events.push(event),
  });
  onTestFinished(() => engine.close());
  await engine.ingest({ session: SESSION, messages: makeTurns(0, 60, { calls: 1 }) });
  const become = (next: Complete) => void (model = next);
  return { engine, database, events, calls: () => calls, wait: (ms) => (passedMs += ms), become };
}

async function expectFitting({ engine, database }: Stage): Promise<void> {
  const archive = new ArchiveView(database, CONVERSATION);
  for (const budgetTokens of [2_000, BUDGET]) {
    const context = await engine.assemble({
      conversationId: CONVERSATION,
      budgetTokens,
      checkGrammars: true,
    });
    expect(context && findFaults(context, archive)).toEqual([]);
    expect(context?.mode).not.toBe("least");
  }
  expect((await engine.verify()).problems).toEqual([]);
}

const compact = ({ engine }: Stage) => engine.compact({ conversationId: CONVERSATION, budgetTokens: BUDGET });
const maintain = ({ engine }: Stage) =>
  engine.maintain({ conversationId: CONVERSATION, budgetTokens: BUDGET });
const readStatus = ({ engine }: Stage) => engine.status({ sessionKey: SESSION.key });
const never: Complete = () => new Promise(() => undefined);

async function grow({ engine }: Stage, from: number, turns: number): Promise<void> {
  await engine.ingest({ session: SESSION, messages: makeTurns(from, from + turns, { calls: 1 }) });
}

/** What becomes of each answer is a test of the summariser; what becomes of the conversation is tried with some of them. */
const TROUBLES: readonly (readonly [string, Complete, Record<string, unknown>])[] = [
  [
    "refuses the key",
    async () => ({ kind: "failure", failure: "auth", message: "401" }),
    { circuitBreakerThreshold: 2 },
  ],
  ["answers nothing", async () => say(""), {}],
  [
    "only thinks",
    async () => say("<think>They want a summary. Let me look at the orders first, then at the"),
    {},
  ],
  ["writes more than it read", async (request) => say(request.user.repeat(2)), {}],
  ["never answers and does not listen", never, { summaryTimeoutMs: 15 }],
  ["throws", () => Promise.reject(new Error("socket hang up")), {}],
  ["returns undefined", (async () => undefined) as unknown as Complete, {}],
];

describe("a model that", () => {
  test.each(someOf(TROUBLES, 4))(
    "%s: the context fits, what is stored is marked, the ledger has the calls, and the next try waits",
    async (_, complete, config) => {
      const stage = await setStage(complete, config);
      const answer = await compact(stage);
      expect(answer).toMatchObject({ compacted: true });
      expect(answer.tokensAfter).toBeLessThan(0.75 * BUDGET);
      await expectFitting(stage);

      const { items } = await stage.engine.listSummaries({ conversationId: CONVERSATION, limit: 1_000 });
      for (const summary of items) {
        expect(summary).toMatchObject({ level: "extractive", model: "extractive" });
        expect(summary.content).toContain("[LCM fallback summary");
        expect(summary.content).not.toContain("Let me look");
      }
      const asked = stage.calls();
      expect(asked).toBeGreaterThan(0);
      expect((await stage.engine.spend({ by: "all" }))[0]?.calls).toBe(asked);
      const status = await readStatus(stage);
      expect(status.folding?.summaries.extractive).toBe(status.folding?.summaries.cover);
      expect(status.folding?.debt).toBeNull();
      expect(status.guards).toHaveLength(1);
      expect(stage.events.filter(({ kind }) => kind === "degraded")).toHaveLength(1);

      // While the guard is open nobody is asked, and folding goes on.
      await grow(stage, 60, 30);
      expect(await compact(stage)).toMatchObject({ compacted: true });
      expect(stage.calls()).toBe(asked);
      await expectFitting(stage);

      // Later the model is asked again; when it is well, so are its summaries.
      stage.wait(3_600_000);
      stage.become(async ({ user }) => {
        const words = [...new Set(user.match(/[\w./-]{4,}/g))].slice(-60);
        return say(`They settled who does what, and spoke of ${words.join(" ")}.`);
      });
      await grow(stage, 90, 40);
      await compact(stage);
      expect(stage.calls()).toBeGreaterThan(asked);
      expect((await readStatus(stage)).guards).toEqual([]);
      expect(stage.events.some(({ kind }) => kind === "recovered")).toBe(true);
      await expectFitting(stage);
    },
  );

  test("is slower than the deadline: nothing is stored, the fold stays owed, and the next try waits", async () => {
    const stage = await setStage(never, { sweepDeadlineMs: 40, summaryTimeoutMs: 600_000 });
    const before = await readStatus(stage);
    expect(await compact(stage)).toMatchObject({
      compacted: false,
      reason: "the deadline was reached",
      passes: 0,
    });
    await expectFitting(stage);
    const status = await readStatus(stage);
    expect(status.folding?.summaries).toMatchObject({ cover: 0, prepared: 0, reserve: 0 });
    expect(status.folding?.debt).toMatchObject({
      attempts: 1,
      lastFailure: "stopped: deadline",
      leaseHolder: null,
    });
    expect(status.folding?.contextTokens).toBe(before.folding?.contextTokens);
    expect((await stage.engine.spend({ by: "all" }))[0]?.calls).toBe(stage.calls());
    const asked = stage.calls();
    expect(await maintain(stage)).toEqual({ changed: false });
    expect(stage.calls()).toBe(asked);

    stage.wait(5 * 60_000);
    stage.become(async () =>
      say("They spoke of orders, parcels, labels and the morning truck, and settled who does what."),
    );
    await maintain(stage);
    expect(stage.calls()).toBeGreaterThan(asked);
    await expectFitting(stage);
  });

  test("is cancelled by the caller: what was published stays, and nothing else is stored", async () => {
    const stop = new AbortController();
    const stage = await setStage(async (_, signal) => {
      stop.abort();
      return signal.aborted ? { kind: "failure", failure: "aborted", message: "cancelled" } : say("");
    });
    const answer = await stage.engine.compact({
      conversationId: CONVERSATION,
      budgetTokens: BUDGET,
      signal: stop.signal,
    });
    expect(answer).toMatchObject({ compacted: false, reason: "cancelled" });
    expect((await readStatus(stage)).folding?.debt?.lastFailure).toBe("stopped: aborted");
    await expectFitting(stage);
  });
});

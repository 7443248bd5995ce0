import { mkdtemp } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { resolveSettings } from "@lossless/core";
import { openEngine } from "lossless-claw";
import type { Engine } from "@lossless/core";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import type { CompactParams, CompactResult, ContextEngine, HostLlm, LlmParams } from "../src/host/host.ts";
import { ModelAccess, readFailure } from "../src/host/model-access.ts";
import { ProcessMemory } from "../src/host/process-memory.ts";
import { readLearned } from "../src/assemble/token-room.ts";
import { closeProven, makeEngine } from "./engine-parts.ts";
import { letsTurnGoOn } from "./host-rules.ts";
import { FakeTranscript, SESSION_ID, SESSION_KEY } from "./fake-transcript.ts";

const session = { sessionId: SESSION_ID, sessionKey: SESSION_KEY };

let folder: string;
let archive: Engine;
let transcript: FakeTranscript;
let memory: ProcessMemory;
let models: ModelAccess;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "lossless-compact-"));
  models = new ModelAccess();
  archive = await openEngine({ database: join(folder, "lcm.db"), thread: false, complete: models.complete });
  transcript = new FakeTranscript();
  memory = new ProcessMemory();
});

afterEach(() => closeProven(archive, folder));

function newEngine(config: Record<string, unknown> = {}): ContextEngine {
  return makeEngine({
    settings: resolveSettings({ config, configSource: "test", stateDir: folder }).settings,
    folder,
    open: async () => archive,
    transcript,
    memory,
    models,
  });
}

async function playTurns(count: number, words = 200): Promise<void> {
  for (let turn = 0; turn < count; turn++) {
    const engine = newEngine();
    if (transcript.events.length > 0) await engine.bootstrap(session);
    const first = transcript.say("user", `locker ${turn} opens with code ${turn * 7919}`);
    const last = transcript.say("assistant", `noted, locker ${turn}. ${"word ".repeat(words)}`);
    await engine.commitTurn(transcript.turn(first, last));
  }
}

/** The size of the next context. */
async function measure(tokenBudget = 60_000): Promise<number> {
  const engine = newEngine();
  await engine.bootstrap(session);
  return (await engine.assemble({ ...session, messages: [], tokenBudget })).estimatedTokens;
}

function ask(trigger: string, fields: Partial<CompactParams> = {}): CompactParams {
  return {
    ...session,
    tokenBudget: 128_000,
    ...fields,
    runtimeContext: { trigger, ...fields.runtimeContext },
  };
}

describe("compact", () => {
  test("folds when a person asks for it, and says how much", async () => {
    await playTurns(60);
    await measure();
    const shown = async (): Promise<number> =>
      (await archive.readConversation({ conversationId: 1 }))?.shownTokens ?? 0;
    const before = await shown();
    const answer = await newEngine().compact(ask("manual", { currentTokenCount: 99_999 }));
    const after = await shown();
    expect(after).toBeLessThan(before);
    expect(answer).toMatchObject({
      ok: true,
      compacted: true,
      result: { tokensBefore: before, tokensAfter: after },
    });
    // A window with much more room than the rest needs opens the summaries again.
    expect(await measure(before)).toBeLessThan(before);
    expect(await measure()).toBe(before);
  });

  test("makes room after an overflow, also when there is nothing to fold", async () => {
    await playTurns(6);
    const before = await measure();
    expect(await newEngine().compact(ask("overflow"))).toMatchObject({ ok: true, compacted: true });
    expect(await measure()).toBeLessThan(before);
  });

  test("has nothing to give when the context is not what overflowed", async () => {
    const first = transcript.say("user", "hi");
    await newEngine().commitTurn(transcript.turn(first, transcript.say("assistant", "hello")));
    await measure();
    expect(await newEngine().compact(ask("overflow"))).toMatchObject({ ok: true, compacted: false });
  });

  test("learns from the host's count of the whole prompt how much room there is", async () => {
    await playTurns(60);
    await measure(40_000);
    const params = ask("budget", { currentTokenCount: 60_000, tokenBudget: 64_000 });
    expect(await newEngine().compact(params)).toMatchObject({ ok: true, compacted: true });
    expect(await measure(40_000)).toBeLessThan(0.7 * 64_000 - 30_000);
  });

  test("learns the same from what the provider counted, before the host has to ask", async () => {
    await playTurns(30);
    const engine = newEngine();
    await engine.bootstrap(session);
    const { estimatedTokens } = await engine.assemble({ ...session, messages: [], tokenBudget: 42_000 });
    const first = transcript.say("user", "how many tokens was that?");
    const usage = { input: estimatedTokens + 30_000, output: 5, cacheRead: 0, cacheWrite: 0 };
    const last = transcript.say("assistant", "many", { usage });
    const runtimeContext = { modelContextWindow: 64_000 };
    await engine.commitTurn({ ...transcript.turn(first, last), runtimeContext });
    const { roomTokens } = readLearned(memory.session(SESSION_ID));
    expect(roomTokens).toBeGreaterThan(17_000);
    expect(roomTokens).toBeLessThan(19_000);
  });

  test("keeps what it learned where the host uses less than the window of a model", async () => {
    await playTurns(30);
    const engine = newEngine();
    await engine.bootstrap(session);
    const { estimatedTokens } = await engine.assemble({ ...session, messages: [], tokenBudget: 42_000 });
    await engine.compact(ask("overflow", { tokenBudget: 64_000 }));
    const { capTokens } = readLearned(memory.session(SESSION_ID));
    expect(capTokens).toBe(Math.round(0.7 * estimatedTokens));

    const first = transcript.say("user", "and now?");
    const usage = { input: estimatedTokens + 30_000, output: 5, cacheRead: 0, cacheWrite: 0 };
    const last = transcript.say("assistant", "better", { usage });
    const runtimeContext = { modelContextWindow: 200_000, tokenBudget: 64_000 };
    await engine.commitTurn({ ...transcript.turn(first, last), runtimeContext });
    const learned = readLearned(memory.session(SESSION_ID));
    expect(learned).toMatchObject({ windowTokens: 64_000, overflows: [estimatedTokens] });
    expect(learned.capTokens).toBeGreaterThanOrEqual(capTokens!);
    expect(learned.roomTokens).toBeLessThan(19_000);

    await engine.compact(ask("budget", { currentTokenCount: 50_000, tokenBudget: 48_000 }));
    expect(readLearned(memory.session(SESSION_ID))).toEqual(learned);
  });

  test("two overflows are a limit where folding begins, by the threshold of the session", async () => {
    await playTurns(30);
    const contextThresholdOverrides = [{ match: { sessionPattern: SESSION_KEY }, contextThreshold: 0.5 }];
    const { settings } = resolveSettings({ config: { contextThresholdOverrides }, stateDir: folder });
    const engine = makeEngine({ settings, folder, open: async () => archive, transcript, memory });
    const params = { ...session, messages: [], tokenBudget: 42_000 };
    for (let time = 1; time <= 2; time++) {
      await engine.bootstrap(session);
      await engine.assemble(params);
      await engine.compact(ask("overflow"));
    }
    await engine.bootstrap(session);
    await engine.assemble(params);
    const sessionMemory = memory.session(SESSION_ID);
    expect(sessionMemory.baseTokens).toBe(Math.ceil(readLearned(sessionMemory).capTokens! / 0.5));
  });

  test("before a turn, the turn goes on whatever there is to fold", async () => {
    const preflight = (): Promise<CompactResult> =>
      newEngine().compact(ask("budget", { currentTokenCount: 40_000, tokenBudget: 32_000 }));
    expect(letsTurnGoOn(await preflight()), "nothing is stored").toBe(true);
    await playTurns(12);
    await measure(12_000);
    for (let time = 1; time <= 4; time++) {
      const answer = await preflight();
      expect(letsTurnGoOn(answer), JSON.stringify(answer)).toBe(true);
      await measure(12_000);
    }
    // After a restart nothing is remembered.
    memory = new ProcessMemory();
    expect(letsTurnGoOn(await preflight())).toBe(true);
    const broken = makeEngine({
      settings: resolveSettings({ config: {}, configSource: "test", stateDir: folder }).settings,
      folder,
      open: async () => Promise.reject(new Error("the guard of the disk said no")),
      transcript,
      memory,
    });
    expect(letsTurnGoOn(await broken.compact(ask("budget")))).toBe(true);
    expect(memory.outages).toMatchObject([{ part: "archive", message: "the guard of the disk said no" }]);
  });

  test("before a turn, the host is answered before it stops waiting, also by an archive that never answers", async () => {
    await playTurns(1);
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    try {
      const { settings } = resolveSettings({ config: {}, configSource: "test", stateDir: folder });
      const open = (): Promise<Engine> => new Promise(() => undefined);
      const answers: CompactResult[] = [];
      const engine = makeEngine({ settings, folder, open, transcript, memory });
      void engine.compact(ask("budget")).then((answer) => answers.push(answer));
      await vi.advanceTimersByTimeAsync(179_000);
      expect(answers.map(letsTurnGoOn)).toEqual([true]);
      expect(memory.outages).toMatchObject([
        { part: "archive", message: "a compaction did not end within 165 s" },
      ]);
    } finally {
      vi.useRealTimers();
    }
  });

  test("before a turn, folds until what the host counts is under its limit", async () => {
    await playTurns(60);
    const before = await measure(40_000);
    memory = new ProcessMemory();
    const own = 36_000;
    const params = ask("budget", { currentTokenCount: own + before, tokenBudget: 64_000 });
    expect(await newEngine().compact(params)).toMatchObject({ ok: true, compacted: true });
    expect(own + (await measure(40_000))).toBeLessThan(48_000);
    expect(await newEngine().compact(params)).toMatchObject({ reason: "already under target" });
  });

  test("a turn that the host refuses is an outage until one is answered", async () => {
    await playTurns(1);
    await measure();
    await newEngine().compact(ask("overflow"));
    expect(memory.outages).toMatchObject([
      { part: `turns of ${SESSION_KEY}`, message: expect.stringContaining("the host refused a turn") },
    ]);
    await playTurns(1);
    expect(memory.outages).toEqual([]);
  });

  test.each([
    { name: "a chat that was folded before", budget: 8_000, words: 200, turns: 40 },
    { name: "few long turns, of which whole ones are left out", budget: 40_000, words: 1_200, turns: 5 },
  ])("after one overflow the history that is sent recovers: $name", async ({ budget, words, turns }) => {
    const sizes: number[] = [];
    const playMeasured = async (count: number): Promise<void> => {
      for (let turn = 0; turn < count; turn++) {
        sizes.push(await measure(budget));
        await playTurns(1, words);
      }
    };
    await playMeasured(turns);
    const usual = Math.max(...sizes);
    expect(await newEngine().compact(ask("overflow"))).toMatchObject({ ok: true, compacted: true });
    sizes.length = 0;
    await playMeasured(50);
    expect(sizes[0]).toBeLessThan(0.75 * usual);
    expect(Math.max(...sizes)).toBeGreaterThan(0.9 * usual);
  });

  test("ends at once when the host gives up", async () => {
    await playTurns(60);
    const abortSignal = AbortSignal.abort();
    const result = newEngine().compact(ask("manual", { abortSignal }));
    await expect(result.then((answer) => answer.compacted)).resolves.toBe(false);
  });

  test("uses the model that the host lends, with the wish in the prompt", async () => {
    const asked: LlmParams[] = [];
    const llm: HostLlm = {
      complete: async (params) => {
        asked.push(params);
        throw Object.assign(new Error("told to fail"), { code: "SOMETHING" });
      },
    };
    await playTurns(60);
    await newEngine().compact(ask("manual", { customInstructions: "keep codes", runtimeContext: { llm } }));
    expect(asked.length).toBeGreaterThan(0);
    expect(`${asked[0]!.systemPrompt}${asked[0]!.messages[0]!.content}`).toContain("keep codes");
  });

  test("is the host's for a session that is not kept", async () => {
    const config = { ignoreSessionPatterns: ["agent:**"] };
    expect(await newEngine(config).compact(ask("manual"))).toMatchObject({ reason: "the host did it" });
    expect(newEngine({ enabled: false }).info.ownsCompaction).toBe(false);
  });
});

describe("maintain", () => {
  test("works only in moments that the host lends", async () => {
    await playTurns(60);
    await measure(12_000);
    expect(await newEngine().maintain(session)).toMatchObject({ reason: "nothing to maintain" });
    const runtimeContext = { allowDeferredCompactionExecution: true };
    expect(await newEngine().maintain({ ...session, runtimeContext })).toMatchObject({
      changed: false,
      reason: expect.stringContaining("folded"),
    });
    expect((await archive.status({ sessionKey: SESSION_KEY })).folding?.summaries.cover).toBeGreaterThan(0);
  });
});

describe("the host's models", () => {
  const request = { model: null, system: "s", user: "u", maxTokens: 10, purpose: "test" };
  const signal = new AbortController().signal;

  test("a call that the host takes back goes on with the plugin's own", async () => {
    const abort = Object.assign(new Error("yielded to a foreground turn"), { name: "AbortError" });
    models.useOwn({ complete: async () => ({ text: "own", provider: "p", model: "m" }) });
    const lent: HostLlm = { complete: async () => Promise.reject(abort) };
    const answer = await models.lend({ runtimeContext: { llm: lent } }, () =>
      models.complete(request, signal),
    );
    expect(answer).toMatchObject({ kind: "text", text: "own" });
  });

  test.each([
    ["LLM_COMPLETION_NOT_AUTHORIZED", "cannot override the target model.", "denied"],
    ["", "429 rate limit reached", "rate_limited"],
    ["", "maximum context length exceeded", "overflow"],
    ["", "401 invalid API key", "auth"],
    ["ETIMEDOUT", "connect", "timeout"],
    ["", "socket hang up", "unavailable"],
  ])("%s %s is %s", (code, message, failure) => {
    const error = Object.assign(new Error(message), { code });
    expect(readFailure(error, signal, { provider: "p", model: "m" })).toMatchObject({ failure });
  });

  test("a denied model names the line that allows it", () => {
    const error = Object.assign(new Error("no"), { code: "LLM_COMPLETION_NOT_AUTHORIZED" });
    expect(readFailure(error, signal, { provider: "p", model: "m" })).toMatchObject({
      message: expect.stringContaining('"allowedModels": ["p/m"]'),
    });
  });

  test("an answer without text is no answer", async () => {
    models.useOwn({ complete: async () => ({ text: " ", provider: "p", model: "m" }) });
    expect(await models.complete(request, signal)).toMatchObject({ failure: "invalid_response" });
  });
});

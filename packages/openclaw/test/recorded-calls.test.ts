import { mkdtemp } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { resolveSettings } from "@lossless/core";
import { openEngine } from "lossless-claw";
import type { Engine } from "@lossless/core";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { AgentMessage, ContextEngine } from "../src/host/host.ts";
import { closeProven, makeEngine } from "./engine-parts.ts";
import { readRecordedCalls, RecordedTranscripts, type RecordedCall } from "./recorded-calls.ts";

const calls = readRecordedCalls();

let folder: string;
let archive: Engine;
let transcripts: RecordedTranscripts;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "lossless-recorded-"));
  archive = await openEngine({ database: join(folder, "lcm.db"), thread: false });
  transcripts = new RecordedTranscripts();
});

afterEach(() => closeProven(archive, folder));

interface Answered {
  readonly call: RecordedCall;
  readonly result: unknown;
}

/** Makes the calls of the recording, with a new engine for every turn, as the host does. */
async function replay(recorded: readonly RecordedCall[]): Promise<Answered[]> {
  const engines = new Map<string, ContextEngine>();
  const answered: Answered[] = [];
  for (const call of recorded) {
    const { sessionId } = call.params;
    const engine = engines.get(sessionId) ?? newEngine();
    engines.set(sessionId, engine);
    // The host writes a turn into its transcript before it hands it over.
    if (call.name === "commitTurn") transcripts.add(call.params);
    answered.push({ call, result: await engine[call.name](call.params as never) });
    if (call.name === "commitTurn") engines.delete(sessionId);
  }
  return answered;
}

function newEngine(): ContextEngine {
  const { settings } = resolveSettings({ config: {}, configSource: "test", stateDir: folder });
  return makeEngine({ settings, folder, open: async () => archive, transcript: transcripts });
}

/** Every row of the recording, once, in the order of the host, byte for byte. */
async function expectStoredOnce(): Promise<void> {
  let stored = 0;
  for (const [sessionId, rows] of transcripts.sessions) {
    const known = await archive.readSession({ sessionId, owner: "main" });
    const { items } = await archive.listMessages({ conversationId: known!.conversationId!, limit: 1000 });
    const messages = await Promise.all(items.map(async ({ messageId }) => await readBody(messageId)));
    expect(messages).toEqual(rows.map((row) => row.message));
    expect(items.every((item) => item.hidden.length === 0)).toBe(true);
    const eventIds = rows.map((row) => row.entryId);
    const named = await archive.knownEvents({ sessionId, owner: "main", eventIds });
    if (transcripts.isReadable) expect(named.toSorted()).toEqual(eventIds.toSorted());
    stored += items.length;
  }
  const { messages } = await archive.status();
  expect(messages).toBe(stored);
}

async function readBody(messageId: number): Promise<AgentMessage> {
  const stored = await archive.readMessage({ messageId });
  return JSON.parse(Buffer.from(stored!.bytes).toString("utf8")) as AgentMessage;
}

function expectWithinBudget(answered: readonly Answered[]): void {
  for (const { call, result } of answered) {
    if (call.name !== "assemble") continue;
    const { estimatedTokens } = result as { estimatedTokens: number };
    expect(estimatedTokens).toBeLessThanOrEqual(call.params.tokenBudget!);
  }
}

function listStatuses(answered: readonly Answered[]): string[] {
  return answered.flatMap(({ call, result }) =>
    call.name === "commitTurn" ? [(result as { status: string }).status] : [],
  );
}

describe.skipIf(calls === null)("the calls a real host made", () => {
  const recorded = calls ?? [];
  const turns = recorded.filter((call) => call.name === "commitTurn").length;

  test("the recording has turns, tool calls, an overflow and several sessions in it", () => {
    expect(turns).toBeGreaterThanOrEqual(10);
    expect(recorded.filter((call) => call.name === "assemble").length).toBeGreaterThan(2 * turns);
    expect(recorded.some((call) => call.name === "compact")).toBe(true);
    expect(new Set(recorded.map((call) => call.params.sessionId)).size).toBeGreaterThanOrEqual(4);
  });

  test("store every row once, in order, and every context fits", async () => {
    const answered = await replay(recorded);
    expect(listStatuses(answered)).toEqual(Array.from({ length: turns }, () => "committed"));
    await expectStoredOnce();
    expectWithinBudget(answered);
  });

  test("show in a turn what was stored before it, and the same in every request of the attempt", async () => {
    const answered = await replay(recorded);
    const seen = new Map<string, { rows: number; context: string | null }>();
    let repeated = 0;
    for (const { call, result } of answered) {
      const { sessionId } = call.params;
      const before = seen.get(sessionId) ?? { rows: 0, context: null };
      if (call.name === "assemble") {
        const { messages } = result as { messages: AgentMessage[] };
        expect(messages.length).toBe(before.rows);
        const context = JSON.stringify(messages);
        if (before.context !== null) {
          expect(context).toBe(before.context);
          repeated += 1;
        }
        seen.set(sessionId, { ...before, context });
      }
      if (call.name === "commitTurn")
        seen.set(sessionId, { rows: before.rows + call.params.messages.length, context: null });
      if (call.name === "compact" || call.name === "bootstrap")
        seen.set(sessionId, { ...before, context: null });
    }
    expect(repeated).toBeGreaterThan(5);
  });

  test("made a second time change nothing", async () => {
    await replay(recorded);
    const { messages } = await archive.status();
    const answered = await replay(recorded.filter((call) => call.name !== "compact"));
    expect(listStatuses(answered)).toEqual(Array.from({ length: turns }, () => "duplicate"));
    expect((await archive.status()).messages).toBe(messages);
    await expectStoredOnce();
  });

  test("store every row also while the transcript cannot be read, and name it afterwards", async () => {
    transcripts.isReadable = false;
    const blind = await replay(recorded);
    expect(listStatuses(blind)).toEqual(Array.from({ length: turns }, () => "committed"));
    expectWithinBudget(blind);
    await expectStoredOnce();
    transcripts.isReadable = true;
    for (const sessionId of transcripts.sessions.keys()) {
      const { sessionKey } = recorded.find((call) => call.params.sessionId === sessionId)!.params;
      await newEngine().bootstrap({ sessionId, sessionKey });
    }
    await expectStoredOnce();
  });
});

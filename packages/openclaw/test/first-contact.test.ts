import { mkdtemp } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { resolveSettings } from "@lossless/core";
import { openEngine } from "lossless-claw";
import type { Complete, Engine, MessageRow } from "@lossless/core";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { importOlder, readOlder } from "../src/capture/first-contact.ts";
import type { AgentMessage, ContextEngine } from "../src/host/host.ts";
import { ProcessMemory } from "../src/host/process-memory.ts";
import { catchUp } from "../src/capture/catch-up.ts";
import { closeProven, makeEngine } from "./engine-parts.ts";
import { FakeTranscript, SESSION_ID, SESSION_KEY } from "./fake-transcript.ts";

const session = { sessionId: SESSION_ID, sessionKey: SESSION_KEY };
const ref = { id: SESSION_ID, key: SESSION_KEY, owner: "main" };
const target = { agentId: "main", ...session };
const ROWS = 1_500;

let folder: string;
let archive: Engine;
let transcript: FakeTranscript;
let memory: ProcessMemory;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "lossless-first-"));
  archive = await openEngine({ database: join(folder, "lcm.db"), thread: false });
  transcript = new FakeTranscript();
  memory = new ProcessMemory();
});

afterEach(() => closeProven(archive, folder));

function newEngine(): ContextEngine {
  const { settings } = resolveSettings({ config: {}, configSource: "test", stateDir: folder });
  return makeEngine({ settings, folder, open: async () => archive, transcript, memory });
}

function speak(rows: number): void {
  for (let row = 0; row < rows; row++) transcript.say(row % 2 === 0 ? "user" : "assistant", `row ${row}`);
}

/** First contact alone, without the background part. */
async function meet(): Promise<void> {
  await catchUp({ engine: archive, reader: transcript.reader, target, session: ref, moveCursor: true });
}

async function readRest(options: { stopAfter?: number } = {}): Promise<number[]> {
  const progress: number[] = [];
  const stopping = new AbortController();
  await importOlder({
    engine: archive,
    reader: transcript.reader,
    target,
    session: ref,
    inOrder: (task) => task(),
    signal: stopping.signal,
    onProgress: (done, rows) => {
      progress.push(done / rows);
      if (progress.length === options.stopAfter) stopping.abort();
    },
  });
  return progress;
}

async function readStored(): Promise<MessageRow[]> {
  const { items } = await archive.listConversations({ limit: 10 });
  const pages = items.toSorted((a, b) => a.conversationId - b.conversationId);
  const rows: MessageRow[] = [];
  for (const { conversationId } of pages)
    rows.push(...(await archive.listMessages({ conversationId, limit: 10_000 })).items);
  return rows;
}

async function assemble(): Promise<AgentMessage[]> {
  const engine = newEngine();
  return (await engine.assemble({ ...session, messages: [], tokenBudget: 200_000 })).messages;
}

function textsOf(messages: readonly AgentMessage[]): string[] {
  return messages.map(({ content }) => (typeof content === "string" ? content : JSON.stringify(content)));
}

test("no model is called for the files of a history, only for those of a turn", async () => {
  await archive.close();
  const asked: string[] = [];
  const database = join(folder, "lcm.db");
  const { settings } = resolveSettings({
    config: { databasePath: database, largeFileThresholdTokens: 1_000, largeFileSummaryModel: "acme/small" },
  });
  const complete: Complete = async ({ purpose }) => {
    asked.push(purpose);
    return { kind: "failure", failure: "unavailable", message: "not now" };
  };
  archive = await openEngine({ database, settings, complete, thread: false });
  const long = (name: string): string => `${name} ${"of many words ".repeat(800)}`;
  speak(ROWS);
  transcript.say("user", long("a log"));
  await meet();
  await readRest();
  transcript.say("user", long("a report"));
  await meet();
  expect(asked).toEqual([]);
  const first = transcript.say("user", long("a table"));
  await newEngine().commitTurn(transcript.turn(first, transcript.say("assistant", "thanks")));
  expect(asked).toEqual(["explore"]);
});

describe("first contact with a long session", () => {
  test("stores the newest rows, and shows the rest as one line", async () => {
    speak(ROWS);
    await meet();
    const stored = await readStored();
    expect(stored.length).toBe(300);
    expect(stored.at(-1)!.eventId).toBe(transcript.messages.at(-1)!.id);
    const [first, second, ...others] = textsOf(await assemble());
    expect(first).toMatch(/^\[1200 earlier messages from .* are not shown here yet/);
    expect(second).toContain(`row ${ROWS - 300}`);
    expect(others.length).toBe(298 + 1);
  });

  test("reads a short one as a whole", async () => {
    speak(500);
    await meet();
    expect((await readStored()).length).toBe(500);
    expect(await readOlder(archive, ref)).toBeNull();
  });

  test("keeps the front of the context while the older rows arrive, and shows them together at the end", async () => {
    speak(ROWS);
    await meet();
    const before = textsOf(await assemble());
    await readRest({ stopAfter: 3 });
    expect((await readStored()).length).toBeGreaterThan(700);
    expect(textsOf(await assemble())).toEqual(before);
    const progress = await readRest();
    expect(progress.at(-1)).toBe(1);
    const stored = await readStored();
    expect(stored.map((row) => row.eventId)).toEqual(transcript.messages.map((row) => row.id));
    expect(stored.every((row) => row.hidden.length === 0)).toBe(true);
    const after = textsOf(await assemble());
    expect(after.length).toBe(ROWS);
    expect(after[0]).toBe("row 0");
    expect(await readOlder(archive, ref)).toBeNull();
  });

  test("goes on with turns while the older rows are missing, and stores everything once", async () => {
    speak(ROWS);
    await meet();
    const first = transcript.say("user", "a new question");
    const last = transcript.say("assistant", "a new answer");
    expect(await newEngine().commitTurn(transcript.turn(first, last))).toEqual({ status: "committed" });
    await readRest({ stopAfter: 2 });
    const another = transcript.say("user", "another question");
    const end = transcript.say("assistant", "another answer");
    await newEngine().commitTurn(transcript.turn(another, end));
    await readRest();
    const stored = await readStored();
    expect(stored.map((row) => row.eventId)).toEqual(transcript.messages.map((row) => row.id));
    expect(stored.every((row) => row.hidden.length === 0)).toBe(true);
  });

  test("places rows before a reset in the conversation that the reset closed", async () => {
    speak(700);
    transcript.reset("reset");
    speak(900);
    transcript.reset("new");
    speak(100);
    await meet();
    expect((await assemble()).length).toBe(100);
    await readRest();
    const { items } = await archive.listConversations({ limit: 10 });
    expect(items.map((conversation) => conversation.messages).toSorted()).toEqual([1000, 700]);
    expect((await readStored()).length).toBe(1_700);
    expect((await assemble()).length).toBe(100);
  });

  test("reads the rest by itself after the first turn, and status tells it", async () => {
    speak(ROWS);
    transcript.pageSize = 50;
    const engine = newEngine();
    const said: string[] = [];
    const fail = memory.fail.bind(memory);
    memory.fail = (part, error) => {
      said.push(`${part}: ${String(error)}`);
      return fail(part, error);
    };
    expect(await engine.bootstrap(session)).toMatchObject({ bootstrapped: true });
    expect(memory.importing.has(SESSION_ID)).toBe(true);
    while (memory.importing.size > 0) await new Promise((resolve) => setImmediate(resolve));
    expect((await readStored()).length).toBe(ROWS);
    expect(said.some((line) => /import: .*is being read, [\d,]+ of 1,200 rows/.test(line))).toBe(true);
    expect(memory.outages).toEqual([]);
  });

  test("shows all of it when the transcript is rewritten meanwhile", async () => {
    speak(ROWS);
    await meet();
    await readRest({ stopAfter: 2 });
    transcript.rewrite();
    await newEngine().bootstrap(session);
    while (memory.importing.size > 0) await new Promise((resolve) => setImmediate(resolve));
    const stored = await readStored();
    expect(stored.map((row) => row.eventId)).toEqual(transcript.messages.map((row) => row.id));
    expect(stored.every((row) => row.hidden.length === 0)).toBe(true);
    expect(await readOlder(archive, ref)).toBeNull();
  });
});

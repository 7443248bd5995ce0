import { mkdtemp } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { resolveSettings } from "@lossless/core";
import { openEngine } from "lossless-claw";
import type { Engine, MessageRow } from "@lossless/core";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { ContextEngine } from "../src/host/host.ts";
import { ProcessMemory } from "../src/host/process-memory.ts";
import { closeProven, makeEngine } from "./engine-parts.ts";
import { FakeTranscript, SESSION_ID, SESSION_KEY } from "./fake-transcript.ts";

const session = { sessionId: SESSION_ID, sessionKey: SESSION_KEY };

let folder: string;
let archive: Engine;
let transcript: FakeTranscript;
let warnings: string[];
let opened: number;
let memory: ProcessMemory;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "lossless-plugin-"));
  archive = await openEngine({ database: join(folder, "lcm.db"), settings: makeSettings(), thread: false });
  transcript = new FakeTranscript();
  warnings = [];
  opened = 0;
  memory = new ProcessMemory();
});

afterEach(() => closeProven(archive, folder));

function makeSettings(config: Record<string, unknown> = {}) {
  return resolveSettings({ config, configSource: "test", stateDir: folder }).settings;
}

/** A new instance, as the host makes one for every turn. */
function newEngine(config: Record<string, unknown> = {}, open?: () => Promise<Engine>): ContextEngine {
  return makeEngine({
    settings: makeSettings(config),
    folder,
    open:
      open ??
      (async () => {
        opened += 1;
        return archive;
      }),
    transcript,
    memory,
    warn: (text) => warnings.push(text),
  });
}

async function readStored(): Promise<MessageRow[]> {
  const { items } = await archive.listConversations({ limit: 100 });
  const rows: MessageRow[] = [];
  for (const { conversationId } of items.toReversed()) {
    rows.push(...(await archive.listMessages({ conversationId, limit: 1000 })).items);
  }
  return rows;
}

async function readText(row: MessageRow): Promise<string> {
  const stored = await archive.readMessage({ messageId: row.messageId });
  return (JSON.parse(Buffer.from(stored!.bytes).toString("utf8")) as { content: string }).content;
}

/** Every message row of the transcript is stored exactly once, and nothing else is. */
async function expectStoredOnce(): Promise<void> {
  const ids = transcript.messages.map((row) => row.id);
  const known = await archive.knownEvents({ sessionId: SESSION_ID, eventIds: ids });
  expect(known.toSorted()).toEqual(ids.toSorted());
  expect((await readStored()).length).toBe(ids.length);
}

/** Plays one turn through the transcript and the engine. */
async function playTurn(text: string): Promise<void> {
  const engine = newEngine();
  if (transcript.events.length > 0) await engine.bootstrap(session);
  const first = transcript.say("user", text);
  const last = transcript.say("assistant", `answer to ${text}`);
  expect(await engine.commitTurn(transcript.turn(first, last))).toEqual({ status: "committed" });
}

describe("commitTurn", () => {
  test("stores the rows of a turn under their entry ids, at the host's message numbers", async () => {
    const first = transcript.say("user", "what time is it?");
    transcript.say("assistant", [{ type: "toolCall", id: "call_1", name: "clock", arguments: {} }]);
    transcript.mark("custom");
    transcript.say("toolResult", [{ type: "text", text: "noon" }], { toolCallId: "call_1" });
    const last = transcript.say("assistant", "noon");
    await newEngine().commitTurn(transcript.turn(first, last));
    const rows = await readStored();
    expect(rows.map((row) => [row.eventId, row.position / 2 ** 20])).toEqual([
      ["e1", 1],
      ["e2", 2],
      ["e4", 3],
      ["e5", 4],
    ]);
    expect(await readText(rows[3]!)).toBe("noon");
  });

  test("answers a repeated advancement key as a duplicate and stores nothing again", async () => {
    const first = transcript.say("user", "one");
    const last = transcript.say("assistant", "two");
    const turn = transcript.turn(first, last);
    expect(await newEngine().commitTurn(turn)).toEqual({ status: "committed" });
    expect(await newEngine().commitTurn(turn)).toEqual({ status: "duplicate" });
    await expectStoredOnce();
  });

  test("records the key of a turn whose rows an earlier read has stored", async () => {
    const first = transcript.say("user", "one");
    const last = transcript.say("assistant", "two");
    await newEngine().bootstrap(session);
    expect(await newEngine().commitTurn(transcript.turn(first, last))).toEqual({ status: "committed" });
    expect(await newEngine().commitTurn(transcript.turn(first, last))).toEqual({ status: "duplicate" });
    await expectStoredOnce();
  });

  test("leaves rows behind the turn to the next one", async () => {
    const first = transcript.say("user", "one");
    const last = transcript.say("assistant", "two");
    const turn = transcript.turn(first, last);
    const next = transcript.say("user", "three");
    await newEngine().commitTurn(turn);
    expect((await readStored()).map((row) => row.eventId)).toEqual([first, last]);
    transcript.fence = next;
    await newEngine().bootstrap(session);
    transcript.fence = null;
    await newEngine().commitTurn(transcript.turn(next, transcript.say("assistant", "four")));
    await expectStoredOnce();
    expect(warnings).toEqual([]);
  });

  test("keeps a heartbeat that found nothing, and leaves it out of the context", async () => {
    await playTurn("hello");
    for (const [text, isQuiet] of [
      ["HEARTBEAT_OK", true],
      ["All is well. **HEARTBEAT_OK**", true],
      ["the build is red", false],
      ["the build is red, so HEARTBEAT_OK would be wrong", false],
      [`HEARTBEAT_OK, and a report: ${"the build is red. ".repeat(30)}`, false],
    ] as const) {
      const first = transcript.say("user", "anything to do?");
      const thinking = "nothing to do means HEARTBEAT_OK";
      const last = transcript.say("assistant", [
        { type: "thinking", thinking },
        { type: "text", text },
      ]);
      await newEngine().commitTurn({ ...transcript.turn(first, last), isHeartbeat: true });
      const hidden = (await readStored()).slice(-2).map((row) => row.hidden);
      expect(hidden).toEqual(isQuiet ? [["heartbeat"], ["heartbeat"]] : [[], []]);
    }
    await expectStoredOnce();
  });

  test("keeps equal texts apart", async () => {
    for (let turn = 0; turn < 5; turn++) await playTurn("ok");
    expect((await readStored()).length).toBe(10);
    await expectStoredOnce();
  });
});

describe("bootstrap", () => {
  test("closes the gap left by rows that no turn handed over", async () => {
    await playTurn("hello");
    transcript.say("user", "/lcm status");
    transcript.say("assistant", "fine");
    transcript.say("user", "a turn that failed");
    transcript.say("assistant", []);
    transcript.note("a sub-agent has finished");
    await playTurn("again");
    const rows = await readStored();
    expect(rows.filter((row) => row.role === "other")).toHaveLength(1);
    expect(rows).toHaveLength(transcript.messages.length + 1);
    expect(rows.map((row) => row.position)).toEqual(
      rows.map((row) => row.position).toSorted((a, b) => a - b),
    );
  });

  test("reads a long history in pages and reads it only once", async () => {
    transcript.pageSize = 7;
    for (let row = 0; row < 500; row++) transcript.say(row % 2 === 0 ? "user" : "assistant", "same text");
    expect(await newEngine().bootstrap(session)).toEqual({ bootstrapped: true, importedMessages: 500 });
    const reads = transcript.reads;
    expect(await newEngine().bootstrap(session)).toEqual({ bootstrapped: true, importedMessages: 0 });
    expect(transcript.reads - reads).toBeLessThanOrEqual(2);
    await expectStoredOnce();
  });

  test("stops before the row that the current turn starts with", async () => {
    await playTurn("one");
    transcript.fence = transcript.say("user", "two");
    expect(await newEngine().bootstrap(session)).toEqual({ bootstrapped: true, importedMessages: 0 });
    transcript.fence = null;
    expect(await newEngine().bootstrap(session)).toEqual({ bootstrapped: true, importedMessages: 1 });
  });

  test("says that there is nothing to read before the first turn", async () => {
    expect(await newEngine().bootstrap(session)).toMatchObject({ bootstrapped: false });
  });
});

describe("a branch that moves", () => {
  test("keeps a row that left the branch, hidden, and stores what took its place", async () => {
    await playTurn("one");
    const kept = transcript.messages.at(-1)!.id;
    const lost = transcript.say("user", "the gateway was killed here");
    await newEngine().bootstrap(session);
    transcript.moveLeaf(kept);
    const first = transcript.say("user", "again");
    await newEngine().commitTurn(transcript.turn(first, transcript.say("assistant", "answer")));
    await expectStoredOnce();
    const hidden = (await readStored()).filter((row) => row.hidden.length > 0);
    expect(hidden.map((row) => [row.eventId, row.hidden])).toEqual([[lost, ["branch"]]]);
  });

  test("stores a row that left the branch before it was ever read", async () => {
    await playTurn("one");
    const kept = transcript.messages.at(-1)!.id;
    const lost = transcript.say("user", "nobody saw this");
    transcript.moveLeaf(kept);
    await playTurn("two");
    await expectStoredOnce();
    const rows = await readStored();
    expect(rows.find((row) => row.eventId === lost)).toMatchObject({ hidden: ["branch"] });
    expect(rows.map((row) => row.eventId).indexOf(lost)).toBe(2);
  });

  test("reads everything again after a rewrite and adds nothing", async () => {
    for (const text of ["one", "two", "three"]) await playTurn(text);
    transcript.rewrite();
    expect(await newEngine().bootstrap(session)).toEqual({ bootstrapped: true, importedMessages: 0 });
    await playTurn("four");
    await expectStoredOnce();
  });
});

describe("a message that was edited in the host", () => {
  test("is stored as a revision by the next bootstrap, once, and shown", async () => {
    for (const text of ["one", "two", "three"]) await playTurn(text);
    const { id } = transcript.messages[2]!;
    transcript.edit(id, "two, corrected");
    expect(await newEngine().bootstrap(session)).toEqual({ bootstrapped: true, importedMessages: 1 });
    transcript.rewrite();
    expect(await newEngine().bootstrap(session)).toEqual({ bootstrapped: true, importedMessages: 0 });
    const engine = newEngine();
    await engine.bootstrap(session);
    const { messages } = await engine.assemble({ ...session, messages: [], tokenBudget: 10_000 });
    expect(JSON.stringify(messages)).toContain("two, corrected");
    expect(JSON.stringify(messages)).not.toContain('"two"');
    expect((await archive.status()).messages).toBe(7);
  });

  test("changes nothing else: rows off the branch stay hidden, resets stay where they are", async () => {
    await playTurn("one");
    transcript.reset("reset");
    await playTurn("two");
    transcript.edit(transcript.messages[0]!.id, "one, corrected");
    await newEngine().bootstrap(session);
    const { items } = await archive.listConversations({ limit: 10 });
    expect(items.map((row) => row.archiveCause).toSorted()).toEqual([null, "reset"].toSorted());
    expect((await archive.status()).messages).toBe(5);
  });
});

describe("reset and new", () => {
  test("archives the conversation at a reset and stores no row of it again", async () => {
    await playTurn("before");
    const reset = transcript.reset("reset");
    transcript.say("user", "/reset");
    transcript.say("assistant", "Session reset.");
    await playTurn("after");
    transcript.rewrite();
    await newEngine().bootstrap(session);
    await expectStoredOnce();
    const { items } = await archive.listConversations({ limit: 10 });
    expect(items.map((row) => [row.messages, row.archiveCause]).toSorted()).toEqual([
      [2, "reset"],
      [4, null],
    ]);
    expect(reset).toMatch(/^r/);
  });

  test("draws a line in the same conversation at /new", async () => {
    await playTurn("before");
    transcript.reset("new");
    await playTurn("after");
    expect((await archive.listConversations({ limit: 10 })).items).toHaveLength(1);
    await expectStoredOnce();
  });

  test("sees a reset that nothing follows", async () => {
    await playTurn("before");
    transcript.reset("reset");
    await newEngine().bootstrap(session);
    await newEngine().bootstrap(session);
    const { items } = await archive.listConversations({ limit: 10 });
    expect(items.filter((row) => row.archivedAt !== null)).toHaveLength(1);
    expect(items.length).toBeLessThanOrEqual(2);
  });
});

describe("when the transcript cannot be read", () => {
  async function commitUnread(): Promise<{ first: string; last: string }> {
    const first = transcript.say("user", "use the tool");
    transcript.say("assistant", [{ type: "toolCall", id: "call_1", name: "clock", arguments: {} }]);
    transcript.say("toolResult", [{ type: "text", text: "noon" }], { toolCallId: "call_1" });
    const last = transcript.say("assistant", "noon");
    transcript.broken = true;
    expect(await newEngine().commitTurn(transcript.turn(first, last))).toEqual({ status: "committed" });
    transcript.broken = false;
    return { first, last };
  }

  test("stores the turn as handed over and says so once", async () => {
    await commitUnread();
    expect((await readStored()).map((row) => row.eventId)).toEqual([
      "e1",
      "turn:turn-e1:1",
      "turn:turn-e1:2",
      "e4",
    ]);
    await commitUnread();
    expect(warnings).toHaveLength(1);
    expect(warnings[0]).toContain(
      "transcript of agent:main:test: could not be used for a turn (told to fail)",
    );
    expect(memory.outages.map(({ times }) => times)).toEqual([2]);
    await playTurn("readable");
    expect(memory.outages).toEqual([]);
  });

  test("gives the rows their entry ids with the next read and never adds them again", async () => {
    await playTurn("before");
    await commitUnread();
    await playTurn("after");
    transcript.rewrite();
    await newEngine().bootstrap(session);
    await expectStoredOnce();
  });

  test("answers the repeated key as a duplicate, with and without a transcript", async () => {
    const { first, last } = await commitUnread();
    expect(await newEngine().commitTurn(transcript.turn(first, last))).toEqual({ status: "duplicate" });
    transcript.broken = true;
    expect(await newEngine().commitTurn(transcript.turn(first, last))).toEqual({ status: "duplicate" });
    await expectStoredOnce();
  });

  test("stores an entry that no handed-over row stands for as unplaced", async () => {
    const first = transcript.say("user", "try");
    const failed = transcript.say("assistant", [], { responseId: "r-1" });
    transcript.say("assistant", "half", { responseId: "r-2" });
    const last = transcript.say("assistant", "done");
    const turn = transcript.turn(first, last);
    transcript.broken = true;
    await newEngine().commitTurn({ ...turn, messages: turn.messages.filter((_, index) => index !== 1) });
    transcript.broken = false;
    await newEngine().bootstrap(session);
    await expectStoredOnce();
    const rows = await readStored();
    expect(rows.find((row) => row.eventId === failed)).toMatchObject({ hidden: ["unplaced"] });
  });
});

describe("outside durable turns", () => {
  test("ingest asks for a read of the transcript and leaves the cursor where it is", async () => {
    const message = { role: "user", content: "hi", timestamp: 1 };
    transcript.say("user", "hi");
    expect(await newEngine().ingest({ ...session, message })).toEqual({ ingested: true });
    expect(await newEngine().ingest({ ...session, message })).toEqual({ ingested: false });
    expect((await archive.readSession({ sessionId: SESSION_ID }))?.cursor).toBeNull();
    await expectStoredOnce();
  });

  test("knows messages by what the host called them where there is no transcript", async () => {
    const messages = [
      { role: "user", content: "hi", idempotencyKey: "run:user" },
      { role: "assistant", content: "hello", responseId: "r-1" },
    ];
    expect(await newEngine().ingestBatch({ ...session, messages })).toEqual({ ingestedCount: 2 });
    await newEngine().afterTurn({ ...session, messages, prePromptMessageCount: 0 });
    expect((await readStored()).length).toBe(2);
  });
});

describe("what is not kept", () => {
  test.each([
    ["the engine is switched off", { enabled: false }],
    ["the session is ignored", { ignoreSessionPatterns: ["agent:*:test"] }],
    ["the session is stateless", { statelessSessionPatterns: ["agent:main:**"] }],
  ])("is not even opened when %s", async (_case, config) => {
    const first = transcript.say("user", "secret");
    const last = transcript.say("assistant", "ok");
    const engine = newEngine(config);
    expect(await engine.bootstrap(session)).toMatchObject({ bootstrapped: false });
    expect(await engine.commitTurn(transcript.turn(first, last))).toEqual({ status: "committed" });
    expect(await engine.ingestBatch({ ...session, messages: [{ role: "user", content: "secret" }] })).toEqual(
      { ingestedCount: 0 },
    );
    expect(await engine.compact(session)).toMatchObject({ reason: "the host did it" });
    expect(opened).toBe(0);
    expect(await readStored()).toEqual([]);
  });
});

test("declares the durable contract of the host", () => {
  expect(newEngine().info).toMatchObject({
    id: "lossless-claw",
    transcriptSemantics: {
      currentTurnFence: "before-current-turn-entry-v1",
      turnAdvancementIdempotency: "atomic-idempotent-v1",
    },
  });
});

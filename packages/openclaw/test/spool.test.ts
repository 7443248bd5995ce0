import { mkdtemp, readdir, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { EngineError, openEngine, resolveSettings, type Engine } from "@lossless/core";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { ContextEngine } from "../src/host.ts";
import { Notes } from "../src/notes.ts";
import { Spool } from "../src/spool.ts";
import { closeProven, makeEngine } from "./engine-parts.ts";
import { FakeTranscript, SESSION_ID, SESSION_KEY } from "./fake-transcript.ts";

const session = { sessionId: SESSION_ID, sessionKey: SESSION_KEY };

let folder: string;
let archive: Engine;
let transcript: FakeTranscript;
let notes: Notes;
let isDown: boolean;
let told: string[];

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "lossless-spool-"));
  archive = await openEngine({ database: join(folder, "lcm.db"), thread: false });
  transcript = new FakeTranscript();
  notes = new Notes();
  isDown = false;
  told = [];
});

afterEach(() => closeProven(archive, folder));

function newEngine(): ContextEngine {
  return makeEngine({
    settings: resolveSettings({ config: {}, configSource: "test", stateDir: folder }).settings,
    folder,
    open: async () => {
      if (isDown)
        throw new EngineError("database_busy", "cannot write the database: another process is holding it");
      return archive;
    },
    transcript,
    notes,
    tell: (text) => told.push(text),
  });
}

function speak(text: string) {
  const first = transcript.say("user", text);
  transcript.say("assistant", [{ type: "toolCall", id: `call-${text}`, name: "clock", arguments: {} }]);
  transcript.say("toolResult", [{ type: "text", text: "noon" }], { toolCallId: `call-${text}` });
  return transcript.turn(first, transcript.say("assistant", `answer to ${text}`));
}

async function listStored(): Promise<string[]> {
  const ids: string[] = [];
  for (const { conversationId } of (await archive.listConversations({ limit: 10 })).items)
    ids.push(
      ...(await archive.listMessages({ conversationId, limit: 1000 })).items.map((row) => row.eventId),
    );
  return ids;
}

const listSpool = async (): Promise<string[]> => await readdir(join(folder, "lcm-spool"));

describe("a database that cannot take a turn", () => {
  test("sends it to the spool, reports it committed once, and tells", async () => {
    isDown = true;
    const turn = speak("one");
    expect(await newEngine().commitTurn(turn)).toEqual({ status: "committed" });
    expect(await newEngine().commitTurn(turn)).toEqual({ status: "duplicate" });
    expect(await listSpool()).toHaveLength(1);
    expect(told).toHaveLength(1);
    const [name] = await listSpool();
    expect((await stat(join(folder, "lcm-spool", name!))).mode & 0o777).toBe(0o600);
    expect(notes.troubles.map((trouble) => trouble.part)).toContain("spool");
  });

  test("gets the turns in order when it is back, before the next one", async () => {
    await newEngine().commitTurn(speak("zero"));
    isDown = true;
    await newEngine().commitTurn(speak("one"));
    await newEngine().commitTurn(speak("two"));
    isDown = false;
    expect(await newEngine().commitTurn(speak("three"))).toEqual({ status: "committed" });
    expect(await listStored()).toEqual(transcript.messages.map((row) => row.id));
    expect(await listSpool()).toEqual([]);
    expect(notes.troubles).toEqual([]);
  });

  test("gets them also when the transcript cannot show them any more", async () => {
    isDown = true;
    const turn = speak("one");
    await newEngine().commitTurn(turn);
    isDown = false;
    transcript.broken = true;
    await newEngine().bootstrap(session);
    expect(await listStored()).toHaveLength(4);
    transcript.broken = false;
    await newEngine().bootstrap(session);
    expect(await listStored()).toHaveLength(4);
    expect(await newEngine().commitTurn(turn)).toEqual({ status: "duplicate" });
  });

  test("is met by a host that keeps the turn when the spool cannot be written either", async () => {
    isDown = true;
    await writeFile(join(folder, "lcm-spool"), "a file is in the way");
    await expect(newEngine().commitTurn(speak("one"))).rejects.toThrow();
    await rm(join(folder, "lcm-spool"));
  });
});

describe("draining", () => {
  const store = async (): Promise<void> => undefined;

  test("stops at the first turn that fails and keeps the rest", async () => {
    const spool = new Spool(join(folder, "lcm.db"));
    for (const text of ["one", "two", "three"]) await spool.add(speak(text));
    const seen: number[] = [];
    const failing = spool.drain(SESSION_ID, async (turn) => {
      seen.push(turn.admission.activeMessagePosition);
      if (seen.length === 2) throw new Error("still down");
    });
    await expect(failing).rejects.toThrow("still down");
    expect(seen).toEqual([0, 4]);
    expect(await new Spool(join(folder, "lcm.db")).size()).toBe(2);
    expect(await spool.size()).toBe(2);
  });

  test("is done by one process at a time; a lock left behind long ago is no lock", async () => {
    const spool = new Spool(join(folder, "lcm.db"));
    await spool.add(speak("one"));
    const other = new Spool(join(folder, "lcm.db"));
    await spool.drain(SESSION_ID, async () => {
      expect(await other.drain(SESSION_ID, store)).toBe(0);
    });
    await spool.add(speak("two"));
    const lock = join(folder, "lcm-spool", "drain.lock");
    await writeFile(lock, "");
    const { utimes } = await import("node:fs/promises");
    await utimes(lock, new Date(0), new Date(0));
    expect(await spool.drain(SESSION_ID, store)).toBe(1);
  });
});

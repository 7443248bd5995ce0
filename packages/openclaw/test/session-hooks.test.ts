import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openEngine } from "lossless-claw";
import type { Engine } from "@lossless/core";
import { afterEach, beforeEach, expect, test } from "vitest";
import { ProcessMemory } from "../src/host/process-memory.ts";
import { importSessions, listHostSessions, noteSessionEnd } from "../src/capture/session-hooks.ts";
import { FakeTranscript, SESSION_ID, SESSION_KEY } from "./fake-transcript.ts";

let folder: string;
let archive: Engine;
let transcript: FakeTranscript;
let memory: ProcessMemory;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "lossless-hooks-"));
  archive = await openEngine({ database: join(folder, "lcm.db"), thread: false });
  transcript = new FakeTranscript();
  memory = new ProcessMemory();
});

afterEach(async () => {
  expect((await archive.verify()).problems).toEqual([]);
  await archive.close();
  await rm(folder, { recursive: true, force: true });
});

const parts = (isCaptured = true) => ({
  lease: { open: async () => archive, inOrder: <T>(_id: string, task: () => Promise<T>) => task(), memory },
  reader: transcript.reader,
  isCaptured: () => isCaptured,
  logger: { info: () => undefined, warn: () => undefined, error: () => undefined },
});

const end = (reason: string) => ({ sessionId: SESSION_ID, sessionKey: SESSION_KEY, reason });

test.each(["daily", "idle", "deleted"])(
  "a session that ends (%s) is read to its end and archived",
  async (reason) => {
    transcript.say("user", "/lcm status");
    transcript.say("assistant", "fine");
    await noteSessionEnd(parts(), end(reason));
    await noteSessionEnd(parts(), end(reason));
    const { items } = await archive.listConversations({ limit: 10 });
    const [ended] = items.filter((row) => row.archivedAt !== null);
    expect(ended).toMatchObject({ archiveCause: reason, messages: 2 });
  },
);

test.each(["shutdown", "restart", "compaction", "unknown", "new", "reset"])(
  "an end by %s only asks for a read",
  async (reason) => {
    transcript.say("user", "hello");
    await noteSessionEnd(parts(), end(reason));
    const { items } = await archive.listConversations({ limit: 10 });
    expect(items.map((row) => [row.messages, row.archivedAt])).toEqual([[1, null]]);
  },
);

test("nothing is read of a session that is not kept, and a session without rows has no end", async () => {
  await noteSessionEnd(parts(), end("daily"));
  transcript.say("user", "secret");
  await noteSessionEnd(parts(false), end("daily"));
  expect((await archive.listConversations({ limit: 10 })).items).toEqual([]);
});

test("sessions that were there before are read once, the newest first", async () => {
  for (let row = 0; row < 6; row++) transcript.say(row % 2 === 0 ? "user" : "assistant", "old");
  const sessions = listHostSessions({
    config: { agents: { list: [{ id: "main" }] } },
    runtime: {
      state: { resolveStateDir: () => folder },
      agent: {
        session: {
          listSessionEntries: () => [
            { sessionKey: "agent:main:older", entry: { sessionId: "s0", updatedAt: 1 } },
            { sessionKey: SESSION_KEY, entry: { sessionId: SESSION_ID, updatedAt: 2 } },
            { sessionKey: "agent:main:empty" },
          ],
        },
      },
    },
  });
  expect(sessions.map((session) => session.sessionId)).toEqual([SESSION_ID, "s0"]);
  const signal = new AbortController().signal;
  expect(await importSessions(parts(), sessions.slice(0, 1), signal)).toBe(6);
  expect(await importSessions(parts(), sessions.slice(0, 1), signal)).toBe(0);
  expect(memory.outages).toEqual([]);
});

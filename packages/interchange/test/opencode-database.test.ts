/** The database of OpenCode, with the tables and rows that version 1.18 writes. */
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { makeTemporaryDirectory } from "@lossless/testkit";
import { openTestEngine, readStoredLines } from "@lossless/testkit/session-archive.ts";
import { expect, test } from "vitest";
import { detectHistory } from "../src/history.ts";
import { importPaths, importTranscript } from "../src/transcript/import.ts";

const SCHEMA = `
  PRAGMA journal_mode = WAL;
  CREATE TABLE session (id TEXT PRIMARY KEY, project_id TEXT NOT NULL, parent_id TEXT, directory TEXT NOT NULL, title TEXT NOT NULL,
    cost REAL DEFAULT 0 NOT NULL, tokens_input INTEGER DEFAULT 0 NOT NULL, model TEXT, time_created INTEGER NOT NULL, time_updated INTEGER NOT NULL);
  CREATE TABLE message (id TEXT PRIMARY KEY, session_id TEXT NOT NULL, time_created INTEGER NOT NULL, time_updated INTEGER NOT NULL, data TEXT NOT NULL);
  CREATE TABLE part (id TEXT PRIMARY KEY, message_id TEXT NOT NULL, session_id TEXT NOT NULL, time_created INTEGER NOT NULL,
    time_updated INTEGER NOT NULL, data TEXT NOT NULL);
  CREATE TABLE project (id TEXT PRIMARY KEY);`;
const START = 1_700_000_000_000;

/** OpenCode, as far as its database goes; it stays open, as that of a running program does. */
class FakeOpenCode {
  readonly path: string;
  readonly database: DatabaseSync;

  constructor(folder = makeTemporaryDirectory()) {
    this.path = join(folder, "opencode.db");
    this.database = new DatabaseSync(this.path);
    this.database.exec(SCHEMA);
  }

  start(id: string, at = START): void {
    this.database
      .prepare("INSERT INTO session VALUES (?, 'global', NULL, '/srv/app', 'Birds', 0, 0, ?, ?, ?)")
      .run(id, JSON.stringify({ id: "large", providerID: "fake" }), at, at);
  }

  say(session: string, id: string, data: string, at: number): void {
    this.database
      .prepare("INSERT INTO message VALUES (?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET data = excluded.data")
      .run(id, session, at, at, data);
  }

  add(session: string, message: string, id: string, data: string, at: number): void {
    this.database
      .prepare("INSERT INTO part VALUES (?, ?, ?, ?, ?, ?)")
      .run(id, message, session, at, at, data);
  }
}

const user = (at: number): string => `{"role":"user","time":{"created":${at}}}`;
const answer = (at: number, completed?: number): string =>
  JSON.stringify({
    role: "assistant",
    modelID: "large",
    time: { created: at, ...(completed ? { completed } : {}) },
  });

test("stores sessions with their parts, text of rows as it is, and a second import adds nothing", async () => {
  const opencode = new FakeOpenCode();
  opencode.start("ses_1");
  opencode.say("ses_1", "msg_a", user(START), START);
  opencode.add("ses_1", "msg_a", "prt_1", '{"type":"text","text":"Where is the héron?",  "n":1.0}', START);
  opencode.say("ses_1", "msg_b", answer(START + 1, START + 2), START + 1);
  opencode.add("ses_1", "msg_b", "prt_2", '{"type":"text","text":"In the reeds."}', START + 1);
  opencode.start("ses_2", START + 9);
  expect(await detectHistory(opencode.path)).toBeNull();
  const engine = await openTestEngine();
  const path = opencode.path;
  expect(await importTranscript({ engine, path })).toMatchObject({
    imported: 4,
    problems: [],
    format: "opencode",
  });
  const { items } = await engine.listConversations({ limit: 9 });
  expect(items).toHaveLength(2);
  expect(items[1]).toMatchObject({
    sessionId: "ses_1",
    agent: "opencode",
    project: "/srv/app",
    title: "Birds",
    model: "large",
  });
  const lines = (await readStoredLines(engine, items[1]?.conversationId ?? 0)).map(({ text }) => text);
  expect(lines[1]).toBe(
    Buffer.from(
      `{"id":"msg_a","sessionID":"ses_1","role":"user","time":{"created":${START}},"parts":[{"id":"prt_1","type":"text","text":"Where is the héron?",  "n":1.0}]}`,
    ).toString("latin1"),
  );
  const found = await engine.grep({ pattern: "reeds", mode: "full_text" });
  expect(found.hits).toMatchObject([{ role: "assistant", eventId: "msg_b" }]);
  opencode.database.exec("UPDATE session SET cost = 1, tokens_input = 5, time_updated = time_updated + 1");
  expect(await importTranscript({ engine, path })).toMatchObject({ imported: 0, revisions: 0, skipped: 4 });
  expect((await engine.verify()).problems).toEqual([]);
  opencode.database.close();
});

test("leaves an answer that is being written for the next look, and takes one that nobody finished", async () => {
  const opencode = new FakeOpenCode();
  const { path } = opencode;
  const now = Date.now();
  opencode.start("ses_1", now);
  opencode.say("ses_1", "msg_a", user(now), now);
  const engine = await openTestEngine();
  // The prompt is there, its words are not yet.
  expect(await importTranscript({ engine, path })).toMatchObject({
    imported: 1,
    problems: [{ code: "incomplete_line" }],
  });
  opencode.add("ses_1", "msg_a", "prt_0", '{"type":"text","text":"Where?"}', now);
  opencode.say("ses_1", "msg_b", answer(now + 1), now + 1);
  opencode.add("ses_1", "msg_b", "prt_1", '{"type":"text","text":"In the"}', now + 1);
  const first = await importTranscript({ engine, path });
  expect(first).toMatchObject({ imported: 1, revisions: 0, problems: [{ code: "incomplete_line" }] });
  opencode.database
    .prepare("UPDATE part SET data = ? WHERE id = 'prt_1'")
    .run('{"type":"text","text":"In the reeds."}');
  opencode.say("ses_1", "msg_b", answer(now + 1, now + 2), now + 2);
  expect(await importTranscript({ engine, path })).toMatchObject({ imported: 1, revisions: 0, problems: [] });
  // Cut off long ago.
  opencode.start("ses_2", START);
  opencode.say("ses_2", "msg_c", answer(START), START);
  expect(await importTranscript({ engine, path, since: START })).toMatchObject({ imported: 2, problems: [] });
  opencode.database.close();
});

test("puts what follows messages that were taken back after what was stored", async () => {
  const opencode = new FakeOpenCode();
  opencode.start("ses_1");
  const say = (number: number): void => {
    opencode.say("ses_1", `msg_${number}`, user(START + number), START + number);
    opencode.add("ses_1", `msg_${number}`, `prt_${number}`, `{"type":"text","text":"${number}"}`, START);
  };
  for (const number of [1, 2, 3, 4]) say(number);
  const engine = await openTestEngine();
  await importTranscript({ engine, path: opencode.path });
  opencode.database.exec("DELETE FROM message WHERE id IN ('msg_2', 'msg_3', 'msg_4')");
  for (const number of [5, 6]) say(number);
  await importTranscript({ engine, path: opencode.path });
  const { items } = await engine.listMessages({ conversationId: 1, limit: 20 });
  expect(items.slice(1).map(({ eventId }) => eventId)).toEqual([1, 2, 3, 4, 5, 6].map((at) => `msg_${at}`));
});

test("is found in a folder, read without its log, and another database is refused as before", async () => {
  const folder = makeTemporaryDirectory();
  const opencode = new FakeOpenCode(folder);
  opencode.start("ses_1");
  opencode.database.close();
  const engine = await openTestEngine();
  expect(await importPaths({ engine, paths: [folder] })).toMatchObject({
    imported: 1,
    conversations: 1,
    problems: [],
  });
  const other = join(makeTemporaryDirectory(), "other.db");
  const database = new DatabaseSync(other);
  database.exec("CREATE TABLE message (id TEXT)");
  database.close();
  expect(await detectHistory(other)).toBe("lossless-claw");
});

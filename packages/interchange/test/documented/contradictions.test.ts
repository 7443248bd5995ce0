/** Databases whose rows contradict each other: refused, with nothing of the conversation left. */

import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";

import { expect, onTestFinished, test } from "vitest";

import { deriveMessage } from "@lossless/core/formats";
import { SqliteStore } from "@lossless/sqlite";
import { importDocumented } from "../../src/documented/import.ts";

import { makeTemporaryDirectory } from "@lossless/testkit";

/** The documented tables, without the constraints that would keep such rows out. */
const LOOSE = `
CREATE TABLE conversations (conversation_id INTEGER, session_id TEXT, created_at TEXT, updated_at TEXT);
CREATE TABLE messages (message_id INTEGER, conversation_id INTEGER, seq INTEGER, role TEXT, content TEXT, token_count INTEGER, created_at TEXT);
CREATE TABLE message_parts (part_id TEXT, message_id INTEGER, session_id TEXT, part_type TEXT, ordinal INTEGER, text_content TEXT);
CREATE TABLE summaries (summary_id TEXT, conversation_id INTEGER, kind TEXT, content TEXT, token_count INTEGER, created_at TEXT);
CREATE TABLE summary_messages (summary_id TEXT, message_id INTEGER, ordinal INTEGER);
CREATE TABLE summary_parents (summary_id TEXT, parent_summary_id TEXT, ordinal INTEGER);
CREATE TABLE context_items (conversation_id INTEGER, ordinal INTEGER, item_type TEXT, message_id INTEGER, summary_id TEXT, created_at TEXT);
CREATE TABLE large_files (file_id TEXT, conversation_id INTEGER, storage_uri TEXT, created_at TEXT);
INSERT INTO conversations VALUES (1, 's1', '2026-03-01 10:00:00', '2026-03-01 10:00:00');
INSERT INTO messages VALUES (1, 1, 1, 'user', 'one', 1, '2026-03-01 10:00:00'), (2, 1, 2, 'assistant', 'two', 1, '2026-03-01 10:00:01');
INSERT INTO summaries VALUES ('sum_0000000000000001', 1, 'leaf', 'both', 1, '2026-03-01 10:00:02');
INSERT INTO summary_messages VALUES ('sum_0000000000000001', 1, 0), ('sum_0000000000000001', 2, 1);
`;

const SUMMARY = "'sum_0000000000000001'";

test.each([
  ["a summary made from itself", `INSERT INTO summary_parents VALUES (${SUMMARY}, ${SUMMARY}, 0)`],
  [
    "two rows of one summary",
    `INSERT INTO summaries SELECT summary_id, 1, kind, 'other', 1, created_at FROM summaries`,
  ],
  [
    "two rows of one message",
    "INSERT INTO messages SELECT message_id, 1, seq, role, 'other', 1, created_at FROM messages",
  ],
  [
    "two rows of one conversation",
    "INSERT INTO conversations SELECT 1, 's2', created_at, updated_at FROM conversations",
  ],
  [
    "a link that is there twice",
    "INSERT INTO summary_messages SELECT summary_id, message_id, 2 FROM summary_messages",
  ],
])("%s", async (_name, sql) => {
  const folder = makeTemporaryDirectory();
  const path = join(folder, "foreign.db");
  const database = new DatabaseSync(path);
  database.exec(LOOSE);
  database.exec(sql);
  database.close();
  const store = new SqliteStore({ path: join(folder, "lcm.db"), filesDir: join(folder, "f"), create: true });
  onTestFinished(() => store.close());
  const bring = importDocumented(store, { path, largeFileThresholdTokens: 25_000, now: 1_800_000_000_000 });
  await expect(bring).rejects.toMatchObject({ code: "invalid_input" });
  expect(await store.verify(deriveMessage, () => undefined)).toMatchObject({ ok: true, conversations: 0 });
});

test("an import that is cancelled leaves no empty conversation", async () => {
  const folder = makeTemporaryDirectory();
  const path = join(folder, "foreign.db");
  const database = new DatabaseSync(path);
  database.exec(LOOSE);
  database.close();
  const store = new SqliteStore({ path: join(folder, "lcm.db"), filesDir: join(folder, "f"), create: true });
  onTestFinished(() => store.close());
  const options = { path, largeFileThresholdTokens: 25_000, now: 1_800_000_000_000 };
  const cancelled = importDocumented(store, { ...options, signal: AbortSignal.abort() });
  await expect(cancelled).rejects.toMatchObject({ code: "aborted" });
  expect((await store.listConversations({ after: null, limit: 10 })).items).toEqual([]);
  expect(await importDocumented(store, options)).toMatchObject({ summaries: 1 });
  expect(await store.verify(deriveMessage, () => undefined)).toMatchObject({ ok: true, conversations: 1 });
});

test.each([
  [
    "a number that no number here can hold",
    "UPDATE messages SET seq = 9007199254740993 WHERE message_id = 2",
  ],
  ["a table without a column that its order needs", "ALTER TABLE messages DROP COLUMN conversation_id"],
])("%s is an error that names the file", async (_name, sql) => {
  const folder = makeTemporaryDirectory();
  const path = join(folder, "foreign.db");
  const database = new DatabaseSync(path);
  database.exec(LOOSE + sql);
  database.close();
  await expectCorrupt(folder, path);
});

/** A store that refused to import the file. */
async function expectCorrupt(folder: string, path: string): Promise<SqliteStore> {
  const store = new SqliteStore({ path: join(folder, "lcm.db"), filesDir: join(folder, "f"), create: true });
  onTestFinished(() => store.close());
  const bring = importDocumented(store, { path, largeFileThresholdTokens: 25_000, now: 1_800_000_000_000 });
  await expect(bring).rejects.toMatchObject({
    code: "database_corrupt",
    message: expect.stringContaining(path),
  });
  return store;
}

test("a database whose pages are damaged is an error that names the file, and nothing of it is stored", async () => {
  const folder = makeTemporaryDirectory();
  const path = join(folder, "foreign.db");
  const database = new DatabaseSync(path);
  database.exec(LOOSE);
  const root = database.prepare("SELECT rootpage FROM sqlite_schema WHERE name = 'messages'").get()?.[
    "rootpage"
  ];
  database.close();
  const file = readFileSync(path);
  file.fill(0xff, (Number(root) - 1) * 4096, (Number(root) - 1) * 4096 + 8);
  writeFileSync(path, file);
  const store = await expectCorrupt(folder, path);
  expect((await store.listConversations({ after: null, limit: 9 })).items).toEqual([]);
});

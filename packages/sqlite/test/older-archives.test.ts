/** Archives written by programs of every earlier schema version open, verify, and show and find the same as one written today. */
import { DatabaseSync } from "node:sqlite";
import { openEngine } from "lossless-claw";
import type { Engine } from "@lossless/core";
import { makeTemporaryFolder } from "@lossless/testkit";
import {
  CLAUDE_CODE_FOUND,
  listArchiveVersions,
  readArchiveMessages,
  readClaudeCodeLines,
  searchClaudeCodeLines,
  writeClaudeCodeArchive,
  writeOlderArchive,
} from "@lossless/testkit/older-archive.ts";
import { beforeAll, describe, expect, test } from "vitest";
import { SCHEMA_VERSION } from "../src/migrate.ts";

/**
 * Of these there is none. 1 and 2 were changed while they were being written, in the first hours of the project, and a program of today does not
 * open what was stored then. The others came in one commit with a later one, so that no program ever wrote them.
 */
const NEVER_WRITTEN = new Set([1, 2, 6, 7, 8, 10, 11]);
const QUERIES = [
  "crane pier",
  "overheated",
  "PIER_3_TEMP",
  "maintenance/report-7.md",
  "Behälter",
  "容器",
  "650 litres",
];

function query(path: string, sql: string): unknown[] {
  const database = new DatabaseSync(path, { readOnly: true });
  const rows = database.prepare(sql).all();
  database.close();
  return rows;
}

const SUMMARIES = "SELECT summary_id, content FROM summaries ORDER BY 1";

interface Dump {
  /** By session: event id and message of each version, in the order of their places. */
  readonly messages: Record<string, unknown[]>;
  /** By query: event ids of what was found. */
  readonly found: Record<string, string[]>;
}

async function dump(engine: Engine): Promise<Dump> {
  const messages: Dump["messages"] = {};
  for (const { conversationId, sessionKey } of (await engine.listConversations({ limit: 10 })).items) {
    const rows = (await engine.listMessages({ conversationId, limit: 500, order: "arrival" })).items;
    messages[sessionKey] = [];
    for (const { messageId, eventId } of rows) {
      const body = await engine.readMessage({ messageId });
      messages[sessionKey].push([eventId, JSON.parse(Buffer.from(body?.bytes ?? []).toString())]);
    }
  }
  const found: Dump["found"] = {};
  for (const pattern of QUERIES) {
    const { hits } = await engine.grep({ pattern, mode: "full_text", scope: "messages", limit: 100 });
    found[pattern] = hits.map((hit) => (hit.type === "message" ? hit.eventId : hit.type)).toSorted();
  }
  return { messages, found };
}

async function fill(engine: Engine): Promise<void> {
  for (const { session, messages } of readArchiveMessages()) await engine.ingest({ session, messages });
}

let today: Dump;
beforeAll(async () => {
  using folder = makeTemporaryFolder();
  const engine = await openEngine({ database: folder.file("lcm.db"), thread: false });
  await fill(engine);
  today = await dump(engine);
  expect(Object.entries(today.found).filter(([, found]) => found.length === 0)).toEqual([]);
  await engine.close();
});

test("there is an archive of every version that a program wrote: a migration comes with one of the version before it", () => {
  const versions = Array.from({ length: SCHEMA_VERSION - 1 }, (_, i) => i + 1);
  const wanted = versions.filter((version) => !NEVER_WRITTEN.has(version));
  expect(listArchiveVersions().filter((version) => version < SCHEMA_VERSION)).toEqual(wanted);
});

describe.each(listArchiveVersions())("an archive of schema %i", (version) => {
  test("opens, verifies, and holds and finds what one of today does", async () => {
    using folder = makeTemporaryFolder();
    const database = folder.file("lcm.db");
    writeOlderArchive(version, database);
    expect(query(database, "PRAGMA user_version")).toEqual([{ user_version: version }]);
    const summaries = query(database, SUMMARIES);
    expect(summaries.length).toBeGreaterThan(0);
    const engine = await openEngine({ database, thread: false });
    expect((await engine.verify()).problems).toEqual([]);
    expect(await dump(engine)).toEqual(today);
    const context = await engine.assemble({ sessionKey: "agent:main:s1", budgetTokens: 8_000 });
    expect(context?.messages.length).toBeGreaterThan(0);
    // The same messages once more: all are known.
    await fill(engine);
    expect(await dump(engine)).toEqual(today);
    expect((await engine.verify()).problems).toEqual([]);
    await engine.close();
    expect(query(database, SUMMARIES)).toEqual(summaries);
    expect(query(database, "PRAGMA user_version")).toEqual([{ user_version: SCHEMA_VERSION }]);
  });
});

test("a damaged message does not keep an archive from being upgraded", async () => {
  using folder = makeTemporaryFolder();
  const database = folder.file("lcm.db");
  writeOlderArchive(21, database);
  const editor = new DatabaseSync(database);
  editor.exec(`UPDATE sessions SET cursor = '{"import": "claude-code"}'`);
  editor.exec("UPDATE conversations SET created_at = 1");
  editor.exec("UPDATE messages SET encoding = 1, body = x'001122' WHERE message_id = 5");
  editor.close();
  const engine = await openEngine({ database, thread: false });
  expect((await engine.verify()).problems.map(({ id }) => id)).toContain("msg_5");
  await engine.close();
});

test("an edit that somebody made before an upgrade is still found after it", async () => {
  using folder = makeTemporaryFolder();
  const database = folder.file("lcm.db");
  writeOlderArchive(20, database);
  const editor = new DatabaseSync(database);
  editor.exec("UPDATE conversations SET archived_at = 1, archive_cause = 'reset' WHERE conversation_id = 1");
  editor.close();
  const engine = await openEngine({ database, thread: false });
  expect((await engine.verify()).problems.map(({ code, id }) => [code, id])).toContainEqual([
    "seal",
    "conversation 1",
  ]);
  await engine.close();
});

test("books of a host's requests that were indexed are kept, and found by no search after an upgrade", async () => {
  using folder = makeTemporaryFolder();
  const database = folder.file("lcm.db");
  writeClaudeCodeArchive(database);
  const upgraded = await openEngine({ database, thread: false });
  expect(await upgraded.verify()).toMatchObject({ problems: [] });
  await upgraded.close();
  expect(query(database, "SELECT message_id FROM index_pending")).toEqual([]);
  // The next program finds them indexed, with no terms.
  const engine = await openEngine({ database, thread: false });
  expect((await engine.status()).index).toEqual({ kind: "ready", messages: 10, pending: 0 });
  expect((await engine.verify()).problems).toEqual([]);
  expect(await searchClaudeCodeLines(engine)).toEqual(CLAUDE_CODE_FOUND);
  const lines = readClaudeCodeLines();
  for (const [index, line] of lines.entries()) {
    const body = await engine.readMessage({ messageId: index + 1 });
    expect(Buffer.from(body?.bytes ?? []).toString()).toBe(line);
  }
  await engine.close();
});

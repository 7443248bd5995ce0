/** Databases of the documented schema: in, proven, and out again as the same rows. */

import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";

import { describe, expect, onTestFinished, test } from "vitest";

import { openEngine } from "lossless-claw";
import { deriveMessage } from "@lossless/core/formats";
import { SqliteStore } from "@lossless/sqlite";
import { exportDocumented } from "../../src/documented/export.ts";
import { importDocumented } from "../../src/documented/import.ts";
import { exportArchive } from "../../src/archive/export-archive.ts";
import { importArchive } from "../../src/archive/import-archive.ts";

import { makeTemporaryDirectory } from "@lossless/testkit";
import { batchOf, makeEvent, say } from "@lossless/testkit/contract/parts.ts";

import { buildDocumented, dumpTables, type Generation } from "./build.ts";

const GENERATIONS: readonly Generation[] = ["0.1", "0.15", "1.0"];

function openStore(folder: string, name = "lcm.db"): SqliteStore {
  const store = new SqliteStore({
    path: join(folder, name),
    filesDir: join(folder, "lcm-files"),
    create: true,
  });
  onTestFinished(() => store.close());
  return store;
}

const bring = (store: SqliteStore, path: string) =>
  importDocumented(store, { path, largeFileThresholdTokens: 25_000, now: 1_800_000_000_000 });
const verifyStore = async (store: SqliteStore): Promise<unknown> =>
  (await store.verify(deriveMessage, () => undefined)).problems;
const hashFile = (path: string): string => createHash("sha256").update(readFileSync(path)).digest("hex");

describe.each(GENERATIONS)("a database of generation %s", (generation) => {
  test("gives every message, part, summary and link, proves, and adds nothing the second time", async () => {
    const folder = makeTemporaryDirectory();
    const path = buildDocumented(folder, generation);
    const before = { hash: hashFile(path), names: readdirSync(folder) };
    const store = openStore(makeTemporaryDirectory());
    const report = await bring(store, path);
    expect(report.summaries).toBe(7);
    expect(report.conversationIds).toHaveLength(3);
    expect(await verifyStore(store)).toEqual([]);
    expect({ hash: hashFile(path), names: readdirSync(folder) }).toEqual(before);
    const reasons = report.problems.map((problem) => problem.message).join("\n");
    expect(reasons).toContain("sum_0000000000000007 leads to no message");
    expect(reasons).toContain("sum_0000000000000006 overlaps or has gaps");
    expect(reasons).toContain("file_00000000000000bb is gone");
    if (generation === "1.0") expect(reasons).toContain("table turn_advancements (2 rows)");
    const again = await bring(store, path);
    expect(again).toMatchObject({ imported: 0, revisions: 0, summaries: 0 });
    expect(await verifyStore(store)).toEqual([]);
  });

  test("comes out as the same rows", async () => {
    const folder = makeTemporaryDirectory();
    const path = buildDocumented(folder, generation);
    const store = openStore(makeTemporaryDirectory());
    await bring(store, path);
    const out = join(folder, "out.db");
    await exportDocumented(store, { out, filesDir: "/nowhere" });
    expect(dumpTables(out, path)).toEqual(dumpTables(path, path));
  });
});

test("keeps families, order and the context of an imported database", async () => {
  const folder = makeTemporaryDirectory();
  const path = buildDocumented(folder, "0.15");
  const engine = await openEngine({ database: join(folder, "lcm.db"), thread: false });
  onTestFinished(() => engine.close());
  const store = openStore(folder);
  await bring(store, path);
  const { items } = await engine.listConversations({ sessionKey: "agent:main:telegram:42", limit: 5 });
  expect(items.map((row) => [row.archiveCause, row.owner])).toEqual([
    [null, "main"],
    ["manual-reset", "main"],
  ]);
  const context = await engine.assemble({ sessionKey: "agent:main:telegram:42", budgetTokens: 400 });
  const text = JSON.stringify(context?.messages);
  for (const shown of [
    "sum_0000000000000003",
    "sum_0000000000000004",
    "the file says yes",
    "live 9",
    "live 11",
  ])
    expect(text).toContain(shown);
  expect(text).not.toContain("live 2 ");
  const found = await engine.search({ query: "big file line", limit: 5 });
  expect(found.hits.length).toBeGreaterThan(0);
});

test("an imported database survives the archive format, and what is added since comes out too", async () => {
  const folder = makeTemporaryDirectory();
  const path = buildDocumented(folder, "0.15");
  const store = openStore(folder);
  await bring(store, path);
  await exportArchive(store, { out: join(folder, "a.lcmx") });
  const copyFolder = makeTemporaryDirectory();
  const copy = openStore(copyFolder);
  expect(
    (await importArchive(copy, { path: join(folder, "a.lcmx"), derive: deriveMessage, now: 1 })).problems,
  ).toEqual([]);
  expect(await verifyStore(copy)).toEqual([]);
  const engine = await openEngine({ database: join(copyFolder, "lcm.db"), thread: false });
  onTestFinished(() => engine.close());
  const session = { key: "agent:main:telegram:42", id: "uuid-2", owner: "main" };
  await engine.ingest({
    session,
    messages: [{ eventId: "n1", message: { role: "user", content: "said since" } }],
  });
  await engine.ingest({
    session,
    messages: [
      {
        eventId: "n2",
        message: {
          role: "assistant",
          content: [
            { type: "text", text: "answered" },
            { type: "toolCall", id: "c9", name: "ls", arguments: { path: "." } },
          ],
        },
      },
    ],
  });
  const out = join(folder, "out.db");
  const report = await exportDocumented(copy, { out, filesDir: copyFolder });
  expect(report).toMatchObject({ conversations: 3, messages: 24, summaries: 8 });
  const database = new DatabaseSync(out, { readOnly: true });
  onTestFinished(() => database.close());
  const rows = (sql: string): unknown[] =>
    database
      .prepare(sql)
      .all()
      .map((row) => ({ ...row }));
  expect(
    rows(
      "SELECT seq, role, content, transcript_entry_id FROM messages WHERE conversation_id = 2 AND seq > 17",
    ),
  ).toEqual([
    { seq: 18, role: "user", content: "said since", transcript_entry_id: "n1" },
    { seq: 19, role: "assistant", content: "answered", transcript_entry_id: "n2" },
  ]);
  expect(
    rows("SELECT part_type, tool_name, tool_call_id FROM message_parts WHERE tool_call_id = 'c9'"),
  ).toEqual([{ part_type: "tool", tool_name: "ls", tool_call_id: "c9" }]);
  expect(rows("SELECT rowid FROM messages_fts WHERE messages_fts MATCH 'since'")).toHaveLength(1);
  expect(rows("SELECT count(*) AS n FROM context_items WHERE conversation_id = 2")).toEqual([{ n: 11 }]);
});

test("others write while a long conversation is imported", async () => {
  const path = buildDocumented(makeTemporaryDirectory(), "1.0");
  const source = new DatabaseSync(path);
  source.exec(`
    WITH RECURSIVE n (i) AS (SELECT 1000 UNION ALL SELECT i + 1 FROM n WHERE i < 1600)
    INSERT INTO messages (conversation_id, seq, role, content, token_count, created_at)
    SELECT max(conversation_id), i, 'user', 'long ' || i, 3, '2026-03-01 10:00:00' FROM n, conversations GROUP BY i`);
  source.close();
  const folder = makeTemporaryDirectory();
  const store = openStore(folder);
  // Never waits: a lock that is held fails its write.
  const options = { path: join(folder, "lcm.db"), filesDir: join(folder, "lcm-files"), create: false };
  const other = new SqliteStore({ ...options, busyLimitMs: 0 });
  onTestFinished(() => other.close());
  const writes: Promise<unknown>[] = [];
  const onProgress = ({ lines }: { lines: number }): void => {
    if (lines > 250 && writes.length === 0)
      writes.push(other.append(batchOf([makeEvent("own", say("own"))])));
  };
  const request = { path, largeFileThresholdTokens: 25_000, now: 1_800_000_000_000 };
  const report = await importDocumented(store, { ...request, onProgress });
  expect(await writes[0]).toMatchObject({ results: [{ outcome: "stored" }] });
  expect(report.conversationIds).toHaveLength(3);
  expect(new Set(report.problems.map(({ message }) => message)).size).toBe(report.problems.length);
  expect(await verifyStore(store)).toEqual([]);
  expect(await bring(store, path)).toMatchObject({ imported: 0, revisions: 0, summaries: 0 });
});

test("a file that is no such database is refused by name", async () => {
  const folder = makeTemporaryDirectory();
  const own = openStore(folder);
  await expect(bring(own, join(folder, "lcm.db"))).rejects.toMatchObject({
    message: expect.stringContaining("archive of this program"),
  });
  const other = join(folder, "other.db");
  const database = new DatabaseSync(other);
  database.exec("CREATE TABLE t (a)");
  database.close();
  await expect(bring(own, other)).rejects.toMatchObject({
    message: expect.stringContaining("not of lossless-claw"),
  });
});

test("an owner that a database gives back changed is refused before anything is stored", async () => {
  const store = openStore(makeTemporaryDirectory());
  const path = buildDocumented(makeTemporaryDirectory(), "1.0");
  const options = { path, largeFileThresholdTokens: 25_000, now: 1_800_000_000_000, owner: "ma\0in" };
  await expect(importDocumented(store, options)).rejects.toMatchObject({
    code: "invalid_input",
    message: expect.stringContaining("owner must not contain"),
  });
  expect((await store.listConversations({ after: null, limit: 10 })).items).toEqual([]);
});

/** Exports for people and other programs. */

import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";

import { expect, onTestFinished, test } from "vitest";

import { resolveSettings } from "@lossless/core";
import type { Engine } from "@lossless/core";
import { openEngine } from "lossless-claw";
import { SqliteStore } from "@lossless/sqlite";
import { importDocumented } from "../src/documented/import.ts";
import { exportText } from "../src/formats/export-text.ts";
import { importTranscript } from "../src/transcript/import.ts";
import { exportRemnic } from "../src/formats/remnic.ts";
import { exportPage } from "../src/page/export-page.ts";

import { buildDocumented } from "./documented/build.ts";
import { makeTemporaryDirectory } from "@lossless/testkit";

const SESSION = { key: "agent:main:demo", id: "s1", owner: "main" };

async function fill(folder: string): Promise<Engine> {
  const database = join(folder, "lcm.db");
  const config = {
    databasePath: database,
    leafChunkTokens: 300,
    leafMinFanout: 3,
    condensedMinFanout: 2,
    freshTailCount: 4,
  };
  const engine = await openEngine({
    database,
    thread: false,
    settings: resolveSettings({ env: {}, config }).settings,
  });
  onTestFinished(() => engine.close());
  const messages = Array.from({ length: 60 }, (_, n) => ({
    eventId: `e${n}`,
    message: {
      role: n % 2 === 0 ? "user" : "assistant",
      content: `turn ${n} about pelicans `.repeat(12),
      timestamp: 1_700_000_000_000 + n,
    },
  }));
  await engine.ingest({ session: SESSION, messages });
  await engine.ingest({
    session: SESSION,
    messages: [
      {
        eventId: "evil",
        message: {
          role: "user",
          content: "<script>alert(1)</script> ````\n</pre> & more",
          timestamp: 1_700_000_001_000,
        },
      },
      {
        eventId: "call",
        message: {
          role: "assistant",
          content: [
            { type: "text", text: "look" },
            { type: "toolCall", id: "c1", name: "read", arguments: { path: "src/a.ts", n: 2 } },
          ],
        },
      },
      {
        eventId: "result",
        message: { role: "toolResult", toolCallId: "c1", toolName: "read", content: "const a = 1;" },
      },
    ],
  });
  return engine;
}

/** Publishes a summary of the first items of the cover. */
async function foldFirst(store: SqliteStore, items: number, from: number, number: number): Promise<void> {
  const head = await store.readCoverHead({ conversationId: 1, maxMessageTokens: 1_000_000 });
  const run = head.items
    .slice(from, from + items)
    .map(({ startPosition, seq, hidden, messageId, summaryId }) => ({
      startPosition,
      seq,
      hidden,
      versionId: messageId,
      summaryId,
    }));
  const summary = {
    summaryId: `sum_000000000000000${number}`,
    content: `pelicans, part ${number}`,
    tokens: 9,
    model: "m",
    level: "normal",
  } as const;
  expect(await store.storeSummary({ conversationId: 1, run, summary, state: "cover", now: 1 })).toMatchObject(
    { kind: "published" },
  );
}

function openStore(folder: string): SqliteStore {
  const store = new SqliteStore({
    path: join(folder, "lcm.db"),
    filesDir: join(folder, "lcm-files"),
    readOnly: true,
  });
  onTestFinished(() => store.close());
  return store;
}

test("Markdown quotes what was said and lets none of it act", async () => {
  const folder = makeTemporaryDirectory();
  await fill(folder);
  const store = openStore(folder);
  const markdown = await exportText(store, "markdown", { out: join(folder, "a.md") });
  expect(markdown).toMatchObject({ conversations: 1, messages: 63 });
  const text = readFileSync(join(folder, "a.md"), "utf8");
  expect(text).toContain("`````text\n<script>alert(1)</script> ````");
  expect(text).toContain("<details><summary>Tool call: read</summary>");
});

test.each([true, false])(
  "a page that is cancelled, dry run %s, says so within a turn and leaves no file",
  async (dryRun) => {
    const folder = makeTemporaryDirectory();
    await fill(folder);
    const before = readdirSync(folder);
    const cancelled = { aborted: false };
    const request = { out: join(folder, "a.html"), dryRun, signal: cancelled as AbortSignal };
    const store = openStore(folder);
    const progress: number[] = [];
    const onProgress = ({ done }: { done: number }): void => {
      progress.push(done);
      cancelled.aborted = true;
    };
    await expect(exportPage(store, { ...request, onProgress })).rejects.toMatchObject({ code: "aborted" });
    expect(progress).toHaveLength(1);
    await expect(exportPage(store, { ...request, conversationIds: [99] })).rejects.toMatchObject({
      code: "not_found",
    });
    expect(
      readdirSync(folder).filter((name) => !before.includes(name) && !name.startsWith("lcm.db")),
    ).toEqual([]);
  },
);

test("OpenAI messages can be imported again, calls and results kept together", async () => {
  const folder = makeTemporaryDirectory();
  const engine = await fill(folder);
  const out = join(folder, "a.jsonl");
  await exportText(openStore(folder), "openai", { out });
  const [line] = readFileSync(out, "utf8")
    .trim()
    .split("\n")
    .map((text) => JSON.parse(text) as { messages: object[] });
  expect(line?.messages.slice(-2)).toEqual([
    {
      role: "assistant",
      content: "look",
      tool_calls: [
        { id: "c1", type: "function", function: { name: "read", arguments: '{"path":"src/a.ts","n":2}' } },
      ],
    },
    { role: "tool", tool_call_id: "c1", content: "const a = 1;" },
  ]);
  const report = await importTranscript({ engine, path: out });
  expect(report).toMatchObject({ format: "openai", imported: 64, problems: [] });
});

test("choose conversations by session and by time", async () => {
  const folder = makeTemporaryDirectory();
  const engine = await fill(folder);
  await engine.ingest({
    session: { key: "k2", id: "s2", owner: "main" },
    messages: [{ message: { role: "user", content: "new", timestamp: 1_900_000_000_000 } }],
  });
  const store = openStore(folder);
  const choose = (choice: object) => exportText(store, "markdown", { out: join(folder, "b.md"), ...choice });
  expect(await choose({ sessionFilter: ["s2"] })).toMatchObject({ conversations: 1, messages: 1 });
  expect(await choose({ since: 1_800_000_000_000 })).toMatchObject({ conversations: 1, messages: 1 });
  expect(await choose({ owner: "nobody" })).toMatchObject({ conversations: 0 });
});

test("a Remnic database has true ranges, parents that point upward, an index that finds, and grows by nothing the second time", async () => {
  const folder = makeTemporaryDirectory();
  await fill(folder);
  const writable = new SqliteStore({ path: join(folder, "lcm.db"), filesDir: join(folder, "lcm-files") });
  for (const [items, from, number] of [
    [10, 0, 1],
    [8, 1, 2],
    [2, 0, 3],
    [5, 1, 4],
  ] as const)
    await foldFirst(writable, items, from, number);
  await writable.close();
  const store = openStore(folder);
  const out = join(folder, "memory", "state", "lcm.sqlite");
  const dry = await exportRemnic(store, { out, now: 1, dryRun: true });
  const first = await exportRemnic(store, { out, now: 1 });
  expect(first).toMatchObject({ messages: 63, events: 1, known: 0 });
  expect({ ...dry }).toEqual({ ...first });
  expect(await exportRemnic(store, { out, now: 2 })).toMatchObject({
    messages: 0,
    summaries: 0,
    events: 0,
    known: 63 + first.summaries,
  });
  const database = new DatabaseSync(out, { readOnly: true });
  onTestFinished(() => database.close());
  const all = (sql: string): Record<string, unknown>[] => database.prepare(sql).all();
  expect(all("PRAGMA foreign_key_check")).toEqual([]);
  expect(all("PRAGMA integrity_check")).toMatchObject([{ integrity_check: "ok" }]);
  const nodes = all("SELECT * FROM lcm_summary_nodes");
  expect(nodes.some((node) => Number(node["depth"]) > 0)).toBe(true);
  for (const node of nodes) {
    expect(Number(node["msg_start"])).toBeLessThanOrEqual(Number(node["msg_end"]));
    const parent = nodes.find((candidate) => candidate["id"] === node["parent_id"]);
    if (node["parent_id"] === null) continue;
    expect(Number(parent?.["depth"])).toBeGreaterThan(Number(node["depth"]));
    expect(Number(parent?.["msg_start"])).toBeLessThanOrEqual(Number(node["msg_start"]));
    expect(Number(parent?.["msg_end"])).toBeGreaterThanOrEqual(Number(node["msg_end"]));
  }
  expect(
    all(
      "SELECT m.turn_index FROM lcm_messages_fts f JOIN lcm_messages m ON m.id = f.rowid WHERE lcm_messages_fts MATCH 'pelicans'",
    ),
  ).toHaveLength(60);
  expect(
    all("SELECT count(*) AS n FROM lcm_summaries_fts WHERE lcm_summaries_fts MATCH 'pelicans'")[0]?.["n"],
  ).toBeGreaterThan(0);
  expect(
    all("SELECT kind, tool_name, file_path FROM lcm_message_parts WHERE tool_name = 'read' ORDER BY id"),
  ).toMatchObject([
    { kind: "tool_call", file_path: "src/a.ts" },
    { kind: "tool_result", file_path: null },
  ]);
  expect(all("SELECT msg_before, tokens_before, tokens_after FROM lcm_compaction_events")).toMatchObject([
    { msg_before: 63 },
  ]);
});

test("a documented database goes to Remnic with both segments of a session, equal times or not", async () => {
  const folder = makeTemporaryDirectory();
  const store = new SqliteStore({
    path: join(folder, "lcm.db"),
    filesDir: join(folder, "lcm-files"),
    create: true,
  });
  onTestFinished(() => store.close());
  await importDocumented(store, {
    path: buildDocumented(folder, "0.15"),
    largeFileThresholdTokens: 25_000,
    now: 1,
  });
  const out = join(folder, "remnic.sqlite");
  expect(await exportRemnic(store, { out, now: 1 })).toMatchObject({ messages: 22, events: 2 });
  const database = new DatabaseSync(out, { readOnly: true });
  onTestFinished(() => database.close());
  const turns = database
    .prepare("SELECT turn_index FROM lcm_messages WHERE session_id = 'uuid-1' ORDER BY id")
    .all();
  expect(turns.map((row) => row["turn_index"])).toEqual(Array.from({ length: 21 }, (_, index) => index));
  const condensed = database
    .prepare("SELECT msg_start, msg_end FROM lcm_summary_nodes WHERE id = 'sum_0000000000000003'")
    .get();
  expect(condensed).toMatchObject({ msg_start: 6, msg_end: 10 });
});

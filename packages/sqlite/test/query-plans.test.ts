/**
 * Which index each hot query takes. A new index is also offered to every query that was there before it, and SQLite may take it where it is
 * worse; then nothing is wrong and everything is slow, which no other test sees.
 */
import { openEngine } from "lossless-claw";
import type { Engine } from "@lossless/core";
import { resolveSettings } from "@lossless/core";
import { deriveMessage } from "@lossless/core/formats";
import { makeTemporaryFolder } from "@lossless/testkit";
import { DatabaseSync } from "node:sqlite";
import { expect, onTestFinished, test, vi } from "vitest";
import { BROUGHT, dropUnchanged, keepRows, makeNotes, takeAdded } from "../src/intake-rows.ts";
import { allowWrites } from "../src/seals.ts";
import { SqliteStore } from "../src/sqlite-store.ts";

const SESSION = { key: "agent:main:main", id: "s1", owner: "main" };
const MESSAGES = 120;

/** A folded conversation, and how each statement that some work prepares is carried out. */
async function openFolded() {
  const folder = makeTemporaryFolder();
  const path = folder.file("lcm.db");
  const config = { databasePath: path, leafChunkTokens: 1_500, freshTailCount: 8 };
  const { settings } = resolveSettings({ env: {}, config });
  const writer = await openEngine({ database: path, settings, thread: false });
  await writer.ingest({
    session: SESSION,
    messages: Array.from({ length: MESSAGES }, (_, index) => ({
      eventId: `e${index}`,
      message: {
        role: index % 2 === 0 ? "user" : "assistant",
        content: `Step ${index}. ${"Something was said about the parcels. ".repeat(40)}`,
      },
    })),
  });
  await writer.compact({ conversationId: 1, budgetTokens: 6_000 });
  await writer.close();
  const reader = new DatabaseSync(path);
  allowWrites(reader);
  onTestFinished(() => {
    reader.close();
    folder[Symbol.dispose]();
  });
  const planOf = (sql: string): string =>
    reader
      .prepare(`EXPLAIN QUERY PLAN ${sql}`)
      .all()
      .map(({ detail }) => String(detail))
      .join("; ");
  const planAll = async (work: (engine: Engine) => Promise<unknown>) => {
    // Statements are prepared once an engine: each piece of work gets its own.
    const engine = await openEngine({ database: path, settings, thread: false });
    const prepare = vi.spyOn(DatabaseSync.prototype, "prepare");
    try {
      await work(engine);
      return prepare.mock.calls
        .map(([sql]) => sql)
        .filter((sql) => /^\s*(WITH|SELECT|UPDATE|DELETE)\b/.test(sql))
        .map((sql) => ({ sql: sql.replaceAll(/\s+/g, " ").trim(), plan: planOf(sql) }));
    } finally {
      prepare.mockRestore();
      await engine.close();
    }
  };
  return { path, planAll, planOf };
}

/** The only plan among those of statements that hold a text. */
function planWith(plans: readonly { sql: string; plan: string }[], text: string): string {
  const found = plans.filter(({ sql }) => sql.includes(text));
  expect(
    found.map(({ sql }) => sql),
    text,
  ).toHaveLength(1);
  return found[0]?.plan ?? "";
}

const READS_TABLE = /\bSCAN (i|m|s|summaries|messages|context_items)\b/;

test("showing and folding a context walk no table, and take the index of states for what stands by", async () => {
  const { planAll } = await openFolded();
  const assembling = await planAll((engine) => engine.assemble({ conversationId: 1, budgetTokens: 3_000 }));
  const folding = await planAll((engine) => engine.compact({ conversationId: 1, budgetTokens: 2_000 }));
  for (const { sql, plan } of [...assembling, ...folding]) {
    expect(plan, sql).not.toMatch(READS_TABLE);
    expect(plan, sql).not.toContain("summary_outlines");
  }
  expect(planWith(assembling, "is_root, made_at_seq, stale FROM summaries")).toContain(
    "SEARCH summaries USING INDEX summaries_by_conversation (conversation_id=? AND state=?)",
  );
  expect(planWith(folding, "SELECT start_pos, end_pos FROM summaries")).toContain(
    "SEARCH summaries USING INDEX summaries_by_conversation (conversation_id=? AND state=? AND depth=?)",
  );
  for (const { sql, plan } of [...assembling, ...folding]) {
    if (sql.includes("INDEXED BY summary_times"))
      expect(plan, sql).toContain("SEARCH s USING COVERING INDEX summary_times (summary_id=?)");
    if (sql.includes("INDEXED BY items_by_depth")) expect(plan, sql).toContain("INDEX items_by_depth");
  }
});

test("a graph and the counts of its summaries are read from an index, in order, without a text", async () => {
  const { planAll } = await openFolded();
  const drawing = await planAll((engine) => engine.readGraph({ conversationId: 1 }));
  const outlines = planWith(drawing, "s.source_tokens");
  expect(outlines).toContain("COVERING INDEX summary_outlines (conversation_id=?)");
  expect(outlines).not.toContain("TEMP B-TREE");
  const counting = await planAll((engine) => engine.status({ sessionKey: SESSION.key }));
  expect(planWith(counting, "AS extractive")).toContain(
    "COVERING INDEX summary_outlines (conversation_id=?)",
  );
});

test("summaries that were found are placed by an index, and read by their numbers", async () => {
  const { planAll } = await openFolded();
  const request = { allConversations: true, pattern: "parcels", scope: "summaries", limit: 5 } as const;
  const finding = await planAll((engine) => engine.grep({ ...request, mode: "full_text" }));
  const placed = finding.filter(({ sql }) => sql.includes("summary_refs") && !sql.includes("s.*"));
  expect(placed.length).toBeGreaterThan(0);
  for (const { sql, plan } of placed.filter(({ sql }) => sql.includes("JOIN summaries")))
    expect(plan, sql).toContain("COVERING INDEX summary_times (summary_id=?)");
  const scanning = await planAll((engine) => engine.grep({ ...request, mode: "regex" }));
  for (const { sql, plan } of scanning.filter(({ sql }) => sql.includes("s.*")))
    expect(plan, sql).not.toMatch(READS_TABLE);
});

test("places and times of messages that were found are read from their index, without a row", async () => {
  const { planAll } = await openFolded();
  const request = { allConversations: true, scope: "messages", limit: 5 } as const;
  const find = (pattern: string, mode: "full_text" | "regex") => (engine: Engine) =>
    engine.grep({ ...request, pattern, mode });
  const finding = [
    ...(await planAll(find("parcels something", "full_text"))),
    ...(await planAll((engine) =>
      engine.grep({ ...request, pattern: "parcels", mode: "full_text", after: "at_60" }),
    )),
  ];
  const placed = finding.filter(({ sql }) => sql.includes("INDEXED BY message_places"));
  expect(placed.length).toBeGreaterThan(0);
  for (const { sql, plan } of placed) {
    const reads = plan.split("; ").filter((step) => /^S\w+ m\b/.test(step));
    for (const step of reads) expect(step, sql).toMatch(/COVERING INDEX (message_places|messages_by_seq) /);
  }
  // Whoever needs the texts gains nothing from a way over an index.
  for (const { sql, plan } of await planAll(find("par[c]els", "regex")))
    if (!sql.includes("INDEXED BY message_places")) expect(plan, sql).not.toContain("message_places");
});

test("the events of a large batch are looked up by their ids, not among all of the session", async () => {
  const { planAll } = await openFolded();
  const messages = Array.from({ length: 40 }, (_, index) => ({
    eventId: `new${index}`,
    message: { role: "user", content: "hi" },
  }));
  const storing = await planAll((engine) => engine.ingest({ session: SESSION, messages }));
  expect(planWith(storing, "event_id IN (SELECT value FROM json_each(?))")).toContain(
    "SEARCH event_ids USING PRIMARY KEY (session_ref=? AND event_id=?)",
  );
});

test("the proof of one conversation pages through its summaries in the order of an index, and reads no names of others", async () => {
  const { path, planOf } = await openFolded();
  const store = new SqliteStore({ path, filesDir: `${path}-files`, create: false });
  const prepare = vi.spyOn(DatabaseSync.prototype, "prepare");
  onTestFinished(() => prepare.mockRestore());
  expect(await store.bringIn((into) => into.proveMoved([1], deriveMessage))).toEqual([]);
  await store.close();
  const pages = prepare.mock.calls
    .map(([sql]) => sql)
    .filter((sql) => /previous_id FROM summaries t/.test(sql));
  expect(pages).not.toEqual([]);
  for (const sql of pages)
    expect(planOf(sql)).toMatch(/^SEARCH t USING INDEX summaries_by_conversation [^;]*$/);
  const names = prepare.mock.calls
    .map(([sql]) => sql)
    .filter((sql) => /count\(\*\) AS n FROM event_ids/.test(sql));
  expect(names).toHaveLength(1);
  for (const sql of names) expect(planOf(sql)).not.toMatch(/\bSCAN (e|m|messages)\b/);
});

/** The tables and indexes that a statement reads from their beginning on. */
function listWalked(database: DatabaseSync, sql: string): string[] {
  const schemas = database.prepare("PRAGMA database_list").all();
  const names = new Map(
    schemas.flatMap(({ seq, name }) =>
      database
        .prepare(`SELECT tbl_name, rootpage FROM ${String(name)}.sqlite_schema`)
        .all()
        .map((row) => [`${String(seq)}:${String(row["rootpage"])}`, String(row["tbl_name"])] as const),
    ),
  );
  const steps = database.prepare(`EXPLAIN ${sql}`).all();
  const cursors = new Map(
    steps
      .filter(({ opcode }) => /^Open(Read|Write)$/.test(String(opcode)))
      .map(({ p1, p2, p3 }) => [p1, names.get(`${String(p3)}:${String(p2)}`) ?? ""]),
  );
  return steps
    .filter(({ opcode }) => /^(Rewind|Last)$/.test(String(opcode)))
    .flatMap(({ p1 }) => cursors.get(p1) ?? []);
}

test("an intake looks rows up by their keys among those that it has, however many these are", async () => {
  const { path } = await openFolded();
  const beside = `${path}-beside`;
  await new SqliteStore({ path: beside, filesDir: `${path}-files`, create: true }).close();
  const file = new DatabaseSync(beside);
  const archive = new DatabaseSync(path);
  onTestFinished(() => [file, archive].forEach((database) => database.close()));
  file.exec(`PRAGMA foreign_keys = OFF; ATTACH '${path}' AS archive`);
  for (const table of BROUGHT) file.exec(makeNotes(table));
  allowWrites(archive);
  archive.exec(`PRAGMA foreign_keys = OFF; ATTACH '${beside}' AS intake`);
  const walked = BROUGHT.flatMap((table) => {
    // Without triggers: their steps have cursors of their own.
    const [triggers = "", drop = ""] = dropUnchanged(table).split(/(?=DELETE FROM)/);
    file.exec(triggers);
    return [
      ...keepRows(table, "true").flatMap((sql) => listWalked(file, sql)),
      ...listWalked(file, drop),
      ...listWalked(archive, takeAdded(table)),
    ].filter((name) => /^(kept|before)_/.test(name));
  });
  expect(walked).toEqual([]);
});

/**
 * Bytes of the database file, changed on every kind of page that SQLite has. Either `verify` finds fault, or everything that can be read is
 * as it was: all rows and columns that are proven, all bytes of messages, contexts and a set of searches.
 */
import { cpSync, readFileSync, writeFileSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { EngineError } from "@lossless/core";
import type { Engine } from "@lossless/core";
import { isUnproven } from "@lossless/core/testing";
import { openEngine } from "lossless-claw";
import { makeRandom, makeTemporaryFolder } from "@lossless/testkit";
import type { Random } from "@lossless/testkit";
import { rounds } from "@lossless/testkit/rounds.ts";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { HEADER_BYTES, mapPages } from "./pages.ts";
import type { PageKind, PageMap } from "./pages.ts";
import { buildProvenArchive } from "./proven-archive.ts";

const FLIPS = rounds({ test: 1, soak: 12 });
const QUERIES = ["valve sensor", '"list them"', "greenhouse", "pump 7 moved", "hunter2", "lorem ipsum"];
const PATTERNS = ["step 1[0-9]", "files?\\b", "fork$"];
const KINDS: readonly PageKind[] = [
  "header",
  "schema",
  "interior table",
  "leaf table",
  "interior index",
  "leaf index",
  "overflow",
  "free list",
  "free page",
  "pointer map",
];

const built = makeTemporaryFolder();
const work = makeTemporaryFolder();
const database = work.file("lcm.db");
let sound: Buffer;
let map: PageMap;
let before: string;

/** As it is, with every kind of page: deep trees, free pages, and pointers as a file has that gives back what it does not need. */
beforeAll(async () => {
  await buildProvenArchive(built.path);
  const path = built.file("lcm.db");
  const connection = new DatabaseSync(path);
  connection.exec(
    "PRAGMA journal_mode = DELETE; PRAGMA page_size = 512; PRAGMA auto_vacuum = INCREMENTAL; VACUUM",
  );
  connection.exec(
    "CREATE TABLE gone (a); INSERT INTO gone SELECT zeroblob(900) FROM messages, messages LIMIT 150; DROP TABLE gone",
  );
  connection.close();
  cpSync(built.path, work.path, { recursive: true });
  sound = readFileSync(path);
  map = mapPages(sound);
  before = (await readAll()) ?? "";
});
afterAll(() => {
  built[Symbol.dispose]();
  work[Symbol.dispose]();
});

describe("when bytes of the file change, verify finds fault or everything reads as before", () => {
  test("the archive is sound, and has every kind of page", () => {
    expect(before).not.toBe("");
    expect(KINDS.filter((kind) => !map.pages.has(kind))).toEqual([]);
  });

  test.each(KINDS)("%s", async (kind) => {
    const random = makeRandom(KINDS.indexOf(kind) + 1);
    for (let round = 0; round < FLIPS; round++) {
      const change = chooseChange(kind, random);
      const file = Buffer.from(sound);
      for (const [at, byte] of change) file[at] = byte;
      for (const end of ["-wal", "-shm", "-journal"]) writeFileSync(database + end, "");
      writeFileSync(database, file);
      const after = await readAll();
      if (after !== null) expect(after === before, `${kind}: ${JSON.stringify(change)}`).toBe(true);
    }
  });
});

/** Some bytes of one page: a bit, a byte, or a few bytes that follow each other. */
function chooseChange(kind: PageKind, random: Random): [at: number, byte: number][] {
  const page = random.pick(map.pages.get(kind) ?? [1]);
  const start = (page - 1) * map.pageSize + (kind === "schema" ? HEADER_BYTES : 0);
  const size =
    kind === "header" ? HEADER_BYTES : kind === "schema" ? map.pageSize - HEADER_BYTES : map.pageSize;
  // What a page begins with says what it is and where things are in it.
  const at = start + random.below(random.below(3) === 0 ? Math.min(16, size) : size);
  const length = Math.min(random.pick([1, 1, 1, 4]), start + size - at);
  return Array.from({ length }, (_, next) => {
    const old = sound[at + next] ?? 0;
    return [at + next, random.below(2) ? old ^ (1 << random.below(8)) : (old + 1 + random.below(255)) & 255];
  });
}

/** Everything, as one text; null when the archive is refused or `verify` finds fault. */
async function readAll(): Promise<string | null> {
  let engine: Engine | null = null;
  try {
    engine = await openEngine({ database, thread: false, create: false });
    const { problems } = await engine.verify();
    if (problems.length > 0) return null;
    return JSON.stringify([dumpTables(), await readThrough(engine)]);
  } catch (error) {
    // Not even opened, or ended by an error that says why.
    if (error instanceof EngineError && error.code !== "internal") return null;
    throw error;
  } finally {
    await engine?.close();
  }
}

function dumpTables(): unknown {
  const connection = new DatabaseSync(database, { readOnly: true });
  const tables = connection
    .prepare(
      "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT GLOB '*_fts_*' AND name NOT LIKE 'sqlite_%'",
    )
    .all()
    .map(({ name }) => String(name));
  const dump = tables.toSorted().map((table) => {
    const columns = connection
      .prepare("SELECT name FROM pragma_table_info(?)")
      .all(table)
      .map(({ name }) => String(name))
      .filter((column) => !isUnproven(table, column));
    if (columns.length === 0) return [table];
    const rows = connection.prepare(`SELECT ${columns.join(", ")} FROM ${table} NOT INDEXED`).all();
    return [table, rows.map((row) => JSON.stringify(row, toHex)).toSorted()];
  });
  connection.close();
  return dump;
}

const toHex = (_key: string, value: unknown): unknown =>
  value instanceof Uint8Array ? Buffer.from(value).toString("hex") : value;

async function readThrough(engine: Engine): Promise<unknown> {
  const seen: unknown[] = [];
  for (const { conversationId } of (await engine.listConversations({ limit: 50 })).items) {
    for (const { messageId, forgottenAt } of (await engine.listMessages({ conversationId, limit: 500 }))
      .items) {
      const body = forgottenAt === null ? await engine.readMessage({ messageId }) : null;
      seen.push([messageId, body === null ? null : Buffer.from(body.bytes).toString("latin1")]);
    }
    const context = await engine.assemble({ conversationId, budgetTokens: 2_000 });
    seen.push(context?.messages, (await engine.readGraph({ conversationId })).nodes);
  }
  for (const pattern of QUERIES) seen.push((await engine.grep({ pattern, mode: "full_text" })).hits);
  for (const pattern of PATTERNS) seen.push((await engine.grep({ pattern, mode: "regex" })).hits);
  return seen;
}

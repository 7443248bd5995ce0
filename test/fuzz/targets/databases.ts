/**
 * Databases of other programs. An input lists changes to a sound one: values of rows, and bytes of the file. Lines of `{"table", "row",
 * "column", "value"}`, `{"sql"}` and `{"at", "byte"}`.
 */
import { detectHistory, importTranscript } from "@lossless/interchange";
import { importHistory } from "lossless-claw/interchange";
import { openEngine } from "lossless-claw";
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import type { SQLInputValue } from "node:sqlite";
import { buildDocumented } from "../../../packages/interchange/test/documented/build.ts";
import { openMemoryEngine, prove } from "../memory-engine.ts";
import { accept, hold } from "../target.ts";
import type { Target } from "../target.ts";

const CHANGES = [
  "table",
  "row",
  "column",
  "value",
  "at",
  "byte",
  "sql",
  "DELETE FROM message",
  "DROP TABLE part",
  "PRAGMA user_version = 9",
];

export const openCodeTarget: Target = {
  name: "opencode-database",
  words: [
    ...CHANGES,
    "session",
    "message",
    "part",
    "id",
    "session_id",
    "message_id",
    "data",
    "time_created",
    "directory",
    "title",
  ],
  open: async (folder) => {
    const sound = join(folder, "sound.db");
    buildOpenCode(sound);
    return {
      run: async (input) => {
        const path = join(folder, "opencode.db");
        change(sound, path, input);
        const engine = openMemoryEngine();
        try {
          const first = await accept(() => importTranscript({ engine, path }));
          const again = await accept(() => importTranscript({ engine, path }));
          if (first !== null)
            hold(
              again?.imported === 0 && again.revisions === 0,
              "a second import stores something",
              first,
              again,
            );
          await prove(engine);
        } finally {
          await engine.close();
        }
      },
      close: async () => undefined,
    };
  },
};

export const documentedTarget: Target = {
  name: "documented-database",
  words: [
    ...CHANGES,
    "conversations",
    "messages",
    "message_parts",
    "summaries",
    "summary_messages",
    "summary_parents",
    "context_items",
    "large_files",
    "role",
    "content",
    "ordinal",
    "session_key",
    "created_at",
    "2026-03-01 10:00:00",
  ],
  open: async (folder) => {
    const generations = (["0.1", "0.15", "1.0"] as const).map((generation) => {
      mkdirSync(join(folder, generation));
      return buildDocumented(join(folder, generation), generation);
    });
    for (const path of generations) settle(path);
    return {
      run: async (input) => {
        const own = mkdtempSync(join(folder, "run-"));
        try {
          const path = join(own, "other.db");
          change(generations[input.length % generations.length] ?? "", path, input);
          await importBoth(join(own, "lcm.db"), path);
        } finally {
          rmSync(own, { recursive: true });
        }
      },
      close: async () => undefined,
    };
  },
};

async function importBoth(database: string, path: string): Promise<void> {
  const request = { database, path, largeFileThresholdTokens: 25_000 };
  const kind = await accept(() => detectHistory(path));
  if (kind === null) return;
  const first = await accept(() => importHistory(kind, request));
  const again = await accept(() => importHistory(kind, request));
  if (first !== null)
    hold(again?.imported === 0 && again.revisions === 0, "a second import stores something", first, again);
  const engine = await openEngine({ database, thread: false });
  try {
    await prove(engine);
  } finally {
    await engine.close();
  }
}

/** One file without a log, so that every byte of it counts. */
function settle(path: string): void {
  const database = new DatabaseSync(path);
  database.exec("PRAGMA journal_mode = DELETE; VACUUM");
  database.close();
}

/** Applies the lines of an input to a copy of a sound database. Changes that SQLite rejects are skipped. */
function change(sound: string, path: string, input: Buffer): void {
  for (const end of ["-journal", "-wal", "-shm"]) rmSync(path + end, { force: true });
  copyFileSync(sound, path);
  const lines = input.toString("utf8").split("\n").slice(0, 64).flatMap(parse);
  const database = new DatabaseSync(path, { enableForeignKeyConstraints: false });
  for (const line of lines) applyToRows(database, line);
  database.close();
  const bytes = readFileSync(path);
  for (const { at, byte } of lines)
    if (typeof at === "number" && typeof byte === "number" && Number.isSafeInteger(at))
      bytes[Math.abs(at) % bytes.length] = byte & 255;
  if (lines.some(({ at }) => at !== undefined)) writeFileSync(path, bytes);
}

function applyToRows(database: DatabaseSync, { sql, table, row, column, value }: Line): void {
  try {
    if (typeof sql === "string" && /^(?:DELETE|DROP|UPDATE|INSERT|ALTER|PRAGMA|CREATE)\b/i.test(sql))
      database.exec(sql);
    if (typeof table !== "string" || typeof column !== "string") return;
    const bound = typeof value === "object" && value !== null ? JSON.stringify(value) : value;
    database
      .prepare(
        `UPDATE "${table}" SET "${column}" = ? WHERE rowid = (SELECT rowid FROM "${table}" LIMIT 1 OFFSET ?)`,
      )
      .run((typeof bound === "boolean" ? Number(bound) : (bound ?? null)) as SQLInputValue, Number(row) | 0);
  } catch {
    // Skip a change that the database rejects.
  }
}

type Line = Readonly<Record<string, unknown>>;

function parse(line: string): Line[] {
  try {
    const value: unknown = JSON.parse(line);
    return typeof value === "object" && value !== null ? [value as Line] : [];
  } catch {
    // A line that is not JSON changes nothing.
    return [];
  }
}

function buildOpenCode(path: string): void {
  const database = new DatabaseSync(path);
  database.exec(`
    CREATE TABLE session (id TEXT PRIMARY KEY, project_id TEXT NOT NULL, parent_id TEXT, directory TEXT NOT NULL, title TEXT NOT NULL, model TEXT,
      time_created INTEGER NOT NULL, time_updated INTEGER NOT NULL);
    CREATE TABLE message (id TEXT PRIMARY KEY, session_id TEXT NOT NULL, time_created INTEGER NOT NULL, time_updated INTEGER NOT NULL, data TEXT NOT NULL);
    CREATE TABLE part (id TEXT PRIMARY KEY, message_id TEXT NOT NULL, session_id TEXT NOT NULL, time_created INTEGER NOT NULL,
      time_updated INTEGER NOT NULL, data TEXT NOT NULL);
    INSERT INTO session VALUES ('s1', 'p', NULL, '/srv/app', 'Birds', '{"id":"large"}', 1700000000000, 1700000000000),
      ('s2', 'p', 's1', '/srv/app', 'Fish', NULL, 1700000000500, 1700000000500);
    INSERT INTO message VALUES ('m1', 's1', 1700000000000, 1700000000000, '{"role":"user","time":{"created":1700000000000}}'),
      ('m2', 's1', 1700000000001, 1700000000002, '{"role":"assistant","modelID":"large","time":{"created":1700000000001,"completed":1700000000002}}'),
      ('m3', 's2', 1700000000003, 1700000000003, '{"role":"user","time":{"created":1700000000003}}');
    INSERT INTO part VALUES ('p1', 'm1', 's1', 1700000000000, 1700000000000, '{"type":"text","text":"Where is the heron?"}'),
      ('p2', 'm2', 's1', 1700000000001, 1700000000001, '{"type":"text","text":"In the reeds."}'),
      ('p3', 'm2', 's1', 1700000000001, 1700000000001, '{"type":"tool","tool":"ls","callID":"c1","state":{"status":"completed","input":{},"output":"a"}}'),
      ('p4', 'm3', 's2', 1700000000003, 1700000000003, '{"type":"text","text":"And the carp?"}');`);
  database.close();
}

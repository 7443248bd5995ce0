/**
 * Upgrades a database to the current schema, or refuses it. `application_id` identifies the file and `user_version` its age; table names
 * are only used to give a better message.
 */
import { APPLICATION_ID, EngineError } from "@lossless/core/adapter";
import { statfsSync } from "node:fs";
import { dirname } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { allRows } from "./connection.ts";
import type { Connection } from "./connection.ts";
import * as archive from "./migrations/0001-archive.ts";
import * as folding from "./migrations/0002-folding.ts";
import * as recall from "./migrations/0003-recall.ts";
import * as stale from "./migrations/0004-stale.ts";
import * as summaryTimes from "./migrations/0005-summary-times.ts";
import * as publishedSeq from "./migrations/0006-published-seq.ts";
import * as vectors from "./migrations/0007-vectors.ts";
import * as vault from "./migrations/0008-vault.ts";
import * as forks from "./migrations/0009-forks.ts";
import * as summaryOutlines from "./migrations/0010-summary-outlines.ts";
import * as wordBlocks from "./migrations/0011-word-blocks.ts";
import * as cacheAnswers from "./migrations/0012-cache-answers.ts";
import * as eventIdsBehind from "./migrations/0013-event-ids-behind.ts";
import * as recallParts from "./migrations/0014-recall-parts.ts";
import * as previousContext from "./migrations/0015-previous-context.ts";
import * as seals from "./migrations/0016-seals.ts";
import * as eventIdsAtOnce from "./migrations/0017-event-ids-at-once.ts";
import * as imports from "./migrations/0018-imports.ts";
import * as indexPending from "./migrations/0019-index-pending.ts";
import * as vectorsPending from "./migrations/0020-vectors-pending.ts";
import * as origins from "./migrations/0021-origins.ts";
import * as labelsAndTimes from "./migrations/0022-labels-and-times.ts";
import * as messagePlaces from "./migrations/0023-message-places.ts";
import * as messageTimes from "./migrations/0024-message-times.ts";
import { sealAll } from "./seals.ts";

interface Migration {
  readonly version: number;
  readonly sql: string;
  /** Changes rows before `sql` changes the schema, in the same transaction. */
  readonly fill?: (connection: Connection, onProgress: ProgressFn) => void;
  /** Changes rows after `sql` has changed the schema, in the same transaction. */
  readonly finish?: (connection: Connection, onProgress: ProgressFn) => void;
  /** Free space that `fill` needs. */
  readonly countBytes?: (connection: Connection) => number;
  /** Everything is sealed as it is after the schema has become the newest one. */
  readonly reseals?: boolean;
}

/** Called between the steps of long work; not before the first, nor after the last. */
type ProgressFn = (done: number, total: number) => void;

const MIGRATIONS: readonly Migration[] = [
  archive,
  folding,
  recall,
  stale,
  summaryTimes,
  publishedSeq,
  vectors,
  vault,
  forks,
  summaryOutlines,
  wordBlocks,
  cacheAnswers,
  eventIdsBehind,
  recallParts,
  previousContext,
  seals,
  eventIdsAtOnce,
  imports,
  indexPending,
  vectorsPending,
  origins,
  labelsAndTimes,
  messagePlaces,
  messageTimes,
];

export const SCHEMA_VERSION = MIGRATIONS.length;

/** One transaction: any interruption leaves the old schema and rows. */
export function migrate(connection: Connection, onProgress: ProgressFn = () => undefined): void {
  checkOrigin(connection);
  connection.refuseNewerThan(SCHEMA_VERSION);
  connection.enableWal();
  if (readPragma(connection, "user_version") === SCHEMA_VERSION) return;
  if (connection.readOnly) {
    throw new EngineError(
      "database_foreign",
      `cannot read the database ${connection.path}: its schema is older than this program`,
      {
        step: { kind: "update_schema" },
      },
    );
  }
  connection.write(() => {
    // Another process may have migrated while this one waited for the lock.
    checkOrigin(connection);
    const from = readPragma(connection, "user_version");
    const missing = MIGRATIONS.filter((candidate) => candidate.version > from);
    for (const migration of missing) {
      checkSpace(connection, migration);
      const report: ProgressFn = (done, total) => {
        if (done < total) onProgress(done, total);
      };
      migration.fill?.(connection, report);
      connection.exec(migration.sql);
      migration.finish?.(connection, report);
      connection.exec(`PRAGMA user_version = ${migration.version}`);
    }
    if (missing.some(({ reseals }) => reseals)) sealAll(connection);
    connection.exec(`PRAGMA application_id = ${APPLICATION_ID}`);
  });
}

/** Before anything is filled: otherwise a full disk would show only at the end of a long upgrade. */
function checkSpace(connection: Connection, { countBytes }: Migration): void {
  const needed = countBytes?.(connection) ?? 0;
  if (needed === 0) return;
  const { bavail, bsize } = statfsSync(dirname(connection.path));
  const free = bavail * bsize;
  if (needed <= free) return;
  throw new EngineError(
    "database_full",
    `cannot upgrade the database ${connection.path}: that may take ${formatMegabytes(needed)} MB, and ${formatMegabytes(free)} MB are free`,
    { hint: "free some space and open it again; the file was not changed" },
  );
}

const formatMegabytes = (bytes: number): string => (Math.ceil(bytes / 1e5) / 10).toFixed(1);

const OBJECTS = `
  SELECT type, name, sql FROM sqlite_schema
  WHERE name NOT LIKE 'sqlite_%' AND name NOT GLOB 'messages_fts_*' AND name NOT GLOB 'summaries_fts_*' ORDER BY name`;

/** The differences between the schema of a database and the one that the migrations make, in words; the full-text index checks itself. */
export function compareSchema(connection: Connection): string[] {
  const wanted = (expectedSchema ??= makeSchema());
  const found = new Map(connection.all<SchemaObject>(OBJECTS).map((row) => [row.name, row]));
  return [
    ...[...wanted.values()].flatMap(({ type, name, sql }) => {
      if (!found.has(name)) return [`the ${type} ${name} is missing`];
      const isSame = dropComments(found.get(name)?.sql) === dropComments(sql);
      return isSame ? [] : [`the ${type} ${name} is not as this program made it`];
    }),
    ...[...found.values()].flatMap(({ type, name }) =>
      wanted.has(name) ? [] : [`the ${type} ${name} was not created by this program`],
    ),
  ];
}

/** SQLite keeps the comments of a statement; those of early versions were worded differently. No literal of the schema contains `--`. */
const dropComments = (sql: string | null | undefined): string =>
  (sql ?? "").replaceAll(/--[^\n]*/g, "").replaceAll(/\s+/g, " ");

let expectedSchema: ReadonlyMap<string, SchemaObject> | null = null;

function makeSchema(): ReadonlyMap<string, SchemaObject> {
  const database = new DatabaseSync(":memory:");
  try {
    for (const { sql } of MIGRATIONS) database.exec(sql);
    const rows = allRows<SchemaObject>(database.prepare(OBJECTS));
    return new Map(rows.map((row) => [row.name, row]));
  } finally {
    database.close();
  }
}

interface SchemaObject {
  readonly type: string;
  readonly name: string;
  readonly sql: string | null;
}

function checkOrigin(connection: Connection): void {
  const applicationId = readPragma(connection, "application_id");
  const version = readPragma(connection, "user_version");
  const path = connection.path;
  if (applicationId === APPLICATION_ID) return;
  const tables = connection
    .all<{ name: string }>(
      "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%' LIMIT 50",
    )
    .map((row) => row.name);
  if (applicationId === 0 && version === 0 && tables.length === 0) return;
  const documented = tables.includes("context_items") && tables.includes("conversations");
  throw new EngineError(
    "database_foreign",
    documented
      ? `cannot open the database ${path}: it was written by another lossless-claw implementation`
      : `cannot open the database ${path}: it belongs to another program`,
    { step: { kind: "choose_database" } },
  );
}

function readPragma(connection: Connection, name: "application_id" | "user_version"): number {
  const row = connection.get<Record<string, number>>(`PRAGMA ${name}`);
  return Number(row?.[name] ?? 0);
}

/**
 * Brings a database to the current schema, or refuses it. A row of `archive_schema` marks an archive and has the version of its schema.
 *
 * Every transaction that writes reads that row. A migration changes the table itself, so it waits for every running writer, and later ones read
 * the new version: a program that does not know it can no longer write.
 */
import { APPLICATION_ID, EngineError } from "@lossless/core/adapter";
import { TABLE_NAMES, tables } from "@lossless/core/ports";
import type { Connection, Sql, WriteSql } from "./connection.ts";
import { statement } from "./connection.ts";
import * as archive from "./migrations/0001-archive.ts";
import * as labelsAndTimes from "./migrations/0002-labels-and-times.ts";
import { sql as textIndex } from "./migrations/0001-text-index.ts";
import * as owners from "./migrations/0003-owners.ts";
import * as links from "./migrations/0004-links.ts";
import * as forgettingMarks from "./migrations/0005-forgetting-marks.ts";

interface Migration {
  readonly version: number;
  readonly sql: string;
  /** Changes existing rows once the schema is the newest one; in the same transaction. */
  readonly finish?: (sql: WriteSql) => Promise<void>;
}

/** The number of partitions is decided once, when the tables are created; later changes work either way. */
const listMigrations = (partitions: number): readonly Migration[] => [
  { version: archive.version, sql: archive.makeSql(partitions) + textIndex },
  labelsAndTimes,
  owners,
  links,
  forgettingMarks,
];
const MIGRATIONS = listMigrations(0);

export const SCHEMA_VERSION = MIGRATIONS.length;

/** The number of the advisory lock of migrations; any number that no other program uses would do. */
const MIGRATION_LOCK = APPLICATION_ID;
const CREATE_VERSION = `
  CREATE TABLE IF NOT EXISTS archive_schema (application_id bigint PRIMARY KEY, version bigint NOT NULL)`;
/** Changing the table waits for every transaction that has read it. */
const setVersion = (version: number): string => `
  ALTER TABLE archive_schema ALTER COLUMN version SET DEFAULT ${version};
  INSERT INTO archive_schema (application_id) VALUES (${APPLICATION_ID})
  ON CONFLICT (application_id) DO UPDATE SET version = excluded.version`;

export interface MigrateOptions {
  readonly create: boolean;
  /** The newest version that the program knows; tests use an older one. */
  readonly known?: number;
  /** Runs at the end of an upgrade, in its transaction. */
  readonly onUpgraded?: (sql: WriteSql) => Promise<void>;
}

/** One transaction: if it fails, the old schema and rows stay. */
export async function migrate(connection: Connection, options: MigrateOptions): Promise<void> {
  const { known = SCHEMA_VERSION } = options;
  const found = await readVersion(connection);
  connection.checkSchemaVersion(found, known);
  if (found < known) await upgrade(connection, found, { ...options, known });
  connection.refuseNewerThan(known);
}

async function upgrade(
  connection: Connection,
  found: number,
  { create, known, onUpgraded }: MigrateOptions & { readonly known: number },
): Promise<void> {
  if (found === 0 && !create) {
    throw new EngineError(
      "database_missing",
      `cannot open the database ${connection.name}: it has no archive`,
      {
        step: { kind: "create_database" },
      },
    );
  }
  if (connection.readOnly) {
    throw new EngineError(
      "database_foreign",
      `cannot read the database ${connection.name}: its schema is older than this program`,
      { step: { kind: "update_schema" } },
    );
  }
  await connection.write(async (sql) => {
    await sql.get("SELECT pg_advisory_xact_lock($1)", MIGRATION_LOCK);
    // Another process may have migrated while this one waited for the lock.
    const from = await readVersion(sql);
    connection.checkSchemaVersion(from, known);
    const missing = listMigrations(connection.partitions).filter(
      ({ version }) => version > from && version <= known,
    );
    if (missing.length === 0) return;
    const steps = [CREATE_VERSION, ...missing.map((migration) => migration.sql), setVersion(known)];
    sql.post(...steps.map((step) => statement(step)));
    if (from > 0) for (const { finish } of missing) await finish?.(sql);
    await onUpgraded?.(sql);
  });
}

/** The archive's own table, and tables with names that the archive needs. One statement: another process may make them all at this moment. */
const FIND_TABLES = `
  SELECT relname::text AS name FROM pg_class
  WHERE relkind IN ('r', 'p', 'v', 'm', 'f') AND pg_table_is_visible(oid)
    AND (relname = 'archive_schema' OR relnamespace = current_schema()::regnamespace AND relname = ANY($1::text[]))
  ORDER BY relname`;

/** 0 where there is no archive yet. */
async function readVersion(sql: Sql): Promise<number> {
  const tables = await sql.all<{ name: string }>(FIND_TABLES, [...TABLE_NAMES]);
  if (!tables.some(({ name }) => name === "archive_schema")) {
    const [first] = tables;
    if (first === undefined) return 0;
    throw new EngineError(
      "database_foreign",
      `cannot open the database: it belongs to another program, which has a table ${first.name}`,
      { step: { kind: "choose_database" } },
    );
  }
  const row = await sql.get<{ version: number }>(
    "SELECT version FROM archive_schema WHERE application_id = $1",
    APPLICATION_ID,
  );
  return row?.version ?? 0;
}

/** Columns of tables, whether the reader may use them or not; a view shows a part of the table with its name and `_by_role`. */
const COLUMNS = `
  SELECT regexp_replace(c.relname, '_by_role$', '')::text AS "table", a.attname::text AS name, format_type(a.atttypid, NULL) AS type,
    NOT a.attnotnull AS "isNullable"
  FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
  WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind IN ('r', 'p') AND a.attnum > 0 AND NOT a.attisdropped`;
/** Indexes, constraints and triggers by name; those that the server created for its own purposes are excluded. */
const NAMES = `
  SELECT 'index' AS kind, indexname::text AS name FROM pg_indexes WHERE schemaname = current_schema()
  UNION ALL SELECT 'constraint', conname::text FROM pg_constraint WHERE connamespace = current_schema()::regnamespace
  UNION ALL SELECT 'trigger', tgname::text FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid
    WHERE NOT tgisinternal AND c.relnamespace = current_schema()::regnamespace`;
const MADE = /CREATE (?:UNIQUE )?(INDEX|TRIGGER) (\w+)|ADD (CONSTRAINT) (\w+)/g;
const TYPE_NAMES = { integer: "bigint", real: "double precision", text: "text", blob: "bytea", any: "jsonb" };

interface ColumnRow {
  readonly table: string;
  readonly name: string;
  readonly type: string;
  readonly isNullable: boolean;
}

/** The differences between the schema of a database and that of the migrations, in words. */
export async function compareSchema(sql: Sql): Promise<string[]> {
  const [columns, names] = await Promise.all([
    sql.all<ColumnRow>(COLUMNS),
    sql.all<{ kind: string; name: string }>(NAMES),
  ]);
  const found = new Map(columns.map((row) => [`${row.table}.${row.name}`, row]));
  const wrong = TABLE_NAMES.flatMap((table) =>
    Object.entries(tables[table].columns).flatMap(([name, { type, isNullable }]) => {
      const row = found.get(`${table}.${name}`);
      if (!row) return [`the column ${name} of the table ${table} is missing`];
      const isSame = row.type === TYPE_NAMES[type] && row.isNullable === isNullable;
      return isSame ? [] : [`the column ${name} of the table ${table} is not as this program made it`];
    }),
  );
  const known = new Set(names.map(({ kind, name }) => `${kind} ${name}`));
  return [...wrong, ...listMade().flatMap((made) => (known.has(made) ? [] : [`the ${made} is missing`]))];
}

const listMade = (): string[] =>
  MIGRATIONS.flatMap(({ sql }) =>
    [...sql.matchAll(MADE)].map(
      ([, kind = "", name = "", other = "", otherName = ""]) =>
        `${(kind || other).toLowerCase()} ${name || otherName}`,
    ),
  );

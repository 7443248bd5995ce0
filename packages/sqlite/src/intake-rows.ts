/**
 * The statements between an archive and the file of an intake beside it. Rows of the archive that an intake needs are first copied into its
 * file (`keep`); triggers record the original of each row that is changed there; at the end new and changed rows are transferred, if the
 * changed ones are still the same in the archive.
 *
 * Invariant: in the file, `kept_<table>` has the key of every row copied from the archive, `before_<table>` the complete originals of those
 * that were changed or deleted.
 */
import { tables } from "@lossless/core/ports";
import type { TableName } from "@lossless/core/ports";

/** The tables of conversations, referenced ones first. The rest is bookkeeping, which the archive makes itself. */
export const BROUGHT = [
  "sessions",
  "conversations",
  "placements",
  "turns",
  "messages",
  "imports",
  "event_ids",
  "ledger",
  "large_files",
  "message_parts",
  "redactions",
  "sealed_values",
  "summaries",
  "summary_messages",
  "summary_parents",
  "context_items",
  "boundaries",
  "fork_items",
  "message_vectors",
] as const satisfies readonly TableName[];

export type BroughtTable = (typeof BROUGHT)[number];

const columnsOf = (table: BroughtTable): string[] => Object.keys(tables[table].columns);
const keyOf = (table: BroughtTable): readonly string[] => tables[table].key;
const list = (columns: readonly string[], of = ""): string => columns.map((column) => of + column).join(", ");
/** With their types: values of another type would be compared without the key's index. */
const declare = (table: BroughtTable, columns: readonly string[]): string =>
  Object.entries(tables[table].columns)
    .flatMap(([name, { type }]) => (columns.includes(name) ? `${name} ${type}` : []))
    .join(", ");
const selectKeys = (table: BroughtTable, from: string): string => `SELECT ${list(keyOf(table))} FROM ${from}`;
const isSameRow = (table: BroughtTable, a: string, b: string): string =>
  keyOf(table)
    .map((column) => `${a}.${column} = ${b}.${column}`)
    .join(" AND ");

/** Rows that another table has, or has not, by the key. Not `(a, b) NOT IN`: to be sure that none is null, SQLite would read all of the other table for each row. */
const has = (table: BroughtTable, row: string, other: string): string =>
  `EXISTS (SELECT 1 FROM ${other} h WHERE ${isSameRow(table, "h", row)})`;

/** Tables and triggers of the file in which an intake begins. The triggers end with the connection. */
export const makeNotes = (table: BroughtTable): string => {
  const [all, key] = [columnsOf(table), list(keyOf(table))];
  const note = `
    INSERT OR IGNORE INTO before_${table} (${list(all)})
    SELECT ${list(all, "old.")} WHERE ${has(table, "old", `kept_${table}`)};`;
  return `
    CREATE TABLE kept_${table} (${declare(table, keyOf(table))}, PRIMARY KEY (${key})) WITHOUT ROWID;
    CREATE TABLE before_${table} (${declare(table, all)}, PRIMARY KEY (${key}));
    CREATE TEMP TRIGGER changed_${table} AFTER UPDATE ON main.${table} BEGIN ${note} END;
    CREATE TEMP TRIGGER deleted_${table} AFTER DELETE ON main.${table} BEGIN ${note} END;`;
};

/** Copies rows of the attached archive into the file, each once. */
export const keepRows = (table: BroughtTable, where: string): readonly string[] => [
  `INSERT INTO main.${table} (${list(columnsOf(table))})
   SELECT ${list(columnsOf(table))} FROM archive.${table} AS a
   WHERE ${where} AND NOT ${has(table, "a", `main.kept_${table}`)}`,
  `INSERT OR IGNORE INTO main.kept_${table} (${list(keyOf(table))})
   ${selectKeys(table, `archive.${table}`)} WHERE ${where}`,
];

/** Keeps in the file only what has to be transferred. */
export const dropUnchanged = (table: BroughtTable): string => `
  DROP TRIGGER temp.changed_${table};
  DROP TRIGGER temp.deleted_${table};
  DELETE FROM main.${table} AS m
  WHERE ${has(table, "m", `main.kept_${table}`)} AND NOT ${has(table, "m", `main.before_${table}`)};`;

/** A row that the intake changed and that has changed or vanished in the archive. */
export const findConflict = (table: BroughtTable): string => `
  SELECT 1 FROM intake.before_${table} b LEFT JOIN main.${table} m ON ${isSameRow(table, "m", "b")}
  WHERE ${columnsOf(table)
    .map((column) => `m.${column} IS NOT b.${column}`)
    .join(" OR ")} LIMIT 1`;

/** A vector that a changed message got meanwhile: whether it may keep it was decided without it. */
export const FIND_NEW_VECTOR = `
  SELECT 1 FROM intake.before_messages b CROSS JOIN main.message_vectors v USING (message_id)
  WHERE NOT EXISTS (
    SELECT 1 FROM intake.kept_message_vectors k WHERE k.message_id = v.message_id AND k.space_id = v.space_id) LIMIT 1`;

export const takeDeleted = (table: BroughtTable): string => `
  DELETE FROM main.${table} WHERE (${list(keyOf(table))}) IN (
    ${selectKeys(table, `intake.before_${table} b`)}
    WHERE NOT ${has(table, "b", `intake.${table}`)})`;

/** Looked up by their keys: they are few compared with the rows of the archive. */
export const takeChanged = (table: BroughtTable): string => {
  const set = columnsOf(table)
    .filter((column) => !keyOf(table).includes(column))
    .map((column) => `${column} = i.${column}`);
  return `
    UPDATE main.${table} AS m SET ${set.join(", ")} FROM intake.${table} i
    WHERE ${isSameRow(table, "i", "m")}
      AND (${list(keyOf(table), "m.")}) IN (${selectKeys(table, `intake.before_${table}`)})`;
};

export const takeAdded = (table: BroughtTable): string => `
  INSERT INTO main.${table} (${list(columnsOf(table))}) SELECT ${list(columnsOf(table))} FROM intake.${table} AS i
  WHERE NOT ${has(table, "i", `intake.before_${table}`)}`;

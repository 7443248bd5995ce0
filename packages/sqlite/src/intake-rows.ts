/**
 * The statements between an archive and the file of an intake beside it. Rows of the archive that an intake touches are copied into its file
 * first (`keep`); what is changed of them there is noted as it was before, by triggers; at the end what is new and what changed comes
 * over, if what changed is in the archive still as it was.
 *
 * Invariant: in the file, `kept_<table>` has the key of every row that came from the archive, `before_<table>` those of them that were changed
 * or deleted, whole, as they came.
 */
import { tables } from "@lossless/core/ports";
import type { TableName } from "@lossless/core/ports";

/** What conversations are made of, those that others refer to first. The rest is bookkeeping, which the archive makes itself. */
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

/** Tables and triggers of the file in which an intake begins. The triggers end with the connection. */
export const makeNotes = (table: BroughtTable): string => {
  const [all, key] = [columnsOf(table), list(keyOf(table))];
  const note = `
    INSERT OR IGNORE INTO before_${table} (${list(all)})
    SELECT ${list(all, "old.")} WHERE EXISTS (SELECT 1 FROM kept_${table} k WHERE ${isSameRow(table, "k", "old")});`;
  return `
    CREATE TABLE kept_${table} (${declare(table, keyOf(table))}, PRIMARY KEY (${key})) WITHOUT ROWID;
    CREATE TABLE before_${table} (${declare(table, all)}, PRIMARY KEY (${key}));
    CREATE TEMP TRIGGER changed_${table} AFTER UPDATE ON main.${table} BEGIN ${note} END;
    CREATE TEMP TRIGGER deleted_${table} AFTER DELETE ON main.${table} BEGIN ${note} END;`;
};

/** Copies rows of the attached archive into the file, each once. */
export const keepRows = (table: BroughtTable, where: string): readonly string[] => [
  `INSERT INTO main.${table} (${list(columnsOf(table))})
   SELECT ${list(columnsOf(table))} FROM archive.${table}
   WHERE ${where} AND (${list(keyOf(table))}) NOT IN (${selectKeys(table, `main.kept_${table}`)})`,
  `INSERT OR IGNORE INTO main.kept_${table} (${list(keyOf(table))})
   ${selectKeys(table, `archive.${table}`)} WHERE ${where}`,
];

/** Leaves in the file only what has to come over. */
export const dropUnchanged = (table: BroughtTable): string => `
  DROP TRIGGER temp.changed_${table};
  DROP TRIGGER temp.deleted_${table};
  DELETE FROM main.${table}
  WHERE (${list(keyOf(table))}) IN (${selectKeys(table, `main.kept_${table}`)})
    AND (${list(keyOf(table))}) NOT IN (${selectKeys(table, `main.before_${table}`)});`;

/** A row that the intake changed and that is not in the archive as it was. */
export const findConflict = (table: BroughtTable): string => `
  SELECT 1 FROM intake.before_${table} b LEFT JOIN main.${table} m ON ${isSameRow(table, "m", "b")}
  WHERE ${columnsOf(table)
    .map((column) => `m.${column} IS NOT b.${column}`)
    .join(" OR ")} LIMIT 1`;

/** A vector that a changed message has got meanwhile: whether it may keep it was decided without it. */
export const FIND_NEW_VECTOR = `
  SELECT 1 FROM intake.before_messages b CROSS JOIN main.message_vectors v USING (message_id)
  WHERE NOT EXISTS (
    SELECT 1 FROM intake.kept_message_vectors k WHERE k.message_id = v.message_id AND k.space_id = v.space_id) LIMIT 1`;

export const takeDeleted = (table: BroughtTable): string => `
  DELETE FROM main.${table} WHERE (${list(keyOf(table))}) IN (
    ${selectKeys(table, `intake.before_${table} b`)}
    WHERE NOT EXISTS (SELECT 1 FROM intake.${table} i WHERE ${isSameRow(table, "i", "b")}))`;

/** Found by their keys: they are few beside the rows of the archive. */
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
  INSERT INTO main.${table} (${list(columnsOf(table))}) SELECT ${list(columnsOf(table))} FROM intake.${table}
  WHERE (${list(keyOf(table))}) NOT IN (${selectKeys(table, `intake.before_${table}`)})`;

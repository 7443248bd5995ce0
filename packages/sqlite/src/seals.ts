/**
 * Maintains seals (defined in `archive/seals.ts`). Triggers that exist only on this program's connections record what a transaction
 * changes, and that is sealed again before it commits. So every way of writing is covered, and an edit by any other program leaves a seal
 * that does not match. A program from before there were seals can no longer store anything (`refuse_older_programs`): it would leave rows
 * without one.
 */
import type { DatabaseSync, SQLInputValue } from "node:sqlite";
import { hashSeal, SEAL_KINDS, SEALED } from "@lossless/core/adapter";
import type { SealedRow, SealKind } from "@lossless/core/adapter";
import type { Connection } from "./connection.ts";

const TABLES = SEAL_KINDS.flatMap((kind) => SEALED[kind].map((sealed) => ({ ...sealed, kind })));

/** Every id of a kind. */
const selectIds = ([{ table, id }]: (typeof SEALED)[SealKind]): string => `SELECT ${id} AS id FROM ${table}`;

const FACTS = Object.fromEntries(
  SEAL_KINDS.map((kind) => [
    kind,
    SEALED[kind].map(({ table, id, columns, order }) => {
      const sorted = order.length === 0 ? "" : ` ORDER BY ${order.join(", ")}`;
      return `SELECT ${columns.join(", ")} FROM ${table} WHERE ${id} = ?${sorted}`;
    }),
  ]),
);

const SET_SEAL =
  "INSERT INTO seals (kind, id, hash) VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET hash = excluded.hash";
const DROP_SEAL = "DELETE FROM seals WHERE kind = ? AND id = ?";

/** From now on, seals what transactions of this connection change. */
export function keepSeals(connection: Connection): void {
  const changed = new Map<string, Set<SQLInputValue>>(SEAL_KINDS.map((kind) => [kind, new Set()]));
  connection.database.function("note_unsealed", { directOnly: false }, (kind, id) => {
    changed.get(String(kind))?.add(id);
    return null;
  });
  allowWrites(connection.database);
  watchSealed(connection);
  connection.onCommit({
    before: () => {
      for (const kind of SEAL_KINDS) for (const id of changed.get(kind) ?? []) seal(connection, kind, id);
    },
    ended: () => {
      for (const ids of changed.values()) ids.clear();
    },
  });
}

/** Gives a connection the function without which the schema refuses to store: only connections that maintain seals may. */
export function allowWrites(database: DatabaseSync): void {
  database.function("needs_newer_lossless_claw", { directOnly: false }, () => null);
}

/** Creates the triggers, also again after the connection has dropped them, as a change of `temp_store` does. */
export function watchSealed(connection: Connection): void {
  for (const { table, kind, id, columns, isPartial } of TABLES) {
    const note = (row: "old" | "new"): string => `SELECT note_unsealed('${kind}', ${row}.${id});`;
    const update = isPartial ? `UPDATE OF ${columns.join(", ")}` : "UPDATE";
    connection.exec(`
      CREATE TEMP TRIGGER IF NOT EXISTS sealed_${table}_insert AFTER INSERT ON main.${table} BEGIN ${note("new")} END;
      CREATE TEMP TRIGGER IF NOT EXISTS sealed_${table}_update AFTER ${update} ON main.${table} BEGIN ${note("old")} ${note("new")} END;
      CREATE TEMP TRIGGER IF NOT EXISTS sealed_${table}_delete AFTER DELETE ON main.${table} BEGIN ${note("old")} END;
    `);
  }
}

/** Seals everything as it is. */
export function sealAll(connection: Connection): void {
  for (const kind of SEAL_KINDS)
    for (const { id } of connection.all<{ id: number | string }>(selectIds(SEALED[kind])))
      seal(connection, kind, id);
}

function seal(connection: Connection, kind: SealKind, id: SQLInputValue): void {
  const facts = hashFactsOf(connection, kind, id);
  if (facts === null) connection.run(DROP_SEAL, kind, String(id));
  else connection.run(SET_SEAL, kind, String(id), facts);
}

/** Null when there is no such row. */
function hashFactsOf(connection: Connection, kind: SealKind, id: SQLInputValue): Buffer | null {
  const facts = (FACTS[kind] ?? []).map((sql) => connection.list<SealedRow>(sql, id));
  return facts[0]?.length === 0 ? null : hashSeal(kind, facts);
}

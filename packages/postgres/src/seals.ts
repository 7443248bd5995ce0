/**
 * Maintains seals (`archive/seals.ts` defines them): what a change set touches is recorded, and sealed again before the transaction commits.
 * This is not a trigger: an edit by any other program must leave a seal that does not match.
 *
 * Invariant: rows of sealed tables are written by change sets only.
 */
import { hashSeal, SEAL_KINDS, SEALED } from "@lossless/core/adapter";
import type { SealedRow, SealKind } from "@lossless/core/adapter";
import type { ChangePart, Changes, TableName, Value, Values } from "@lossless/core/ports";
import type { Statement, WriteSql } from "./connection.ts";
import { statement } from "./connection.ts";
import { renderFind } from "./table-reads.ts";

type Id = number | string;

interface Sealed {
  readonly kind: SealKind;
  readonly id: string;
  readonly columns: readonly string[];
  readonly order: readonly string[];
  readonly isPartial: boolean;
}

const BY_TABLE = new Map<TableName, Sealed>(
  SEAL_KINDS.flatMap((kind) =>
    SEALED[kind].map(({ table, id, columns, order, isPartial = false }) => [
      table,
      { kind, id, columns, order, isPartial },
    ]),
  ),
);

/** What one transaction has touched so far. */
class Touched {
  readonly #ids = new Map<SealKind, Set<Id>>(SEAL_KINDS.map((kind) => [kind, new Set()]));
  /** Ids that are being queried. */
  #asked: Promise<void>[] = [];

  add(kind: SealKind, id: Value | undefined): void {
    if (typeof id === "number" || typeof id === "string") this.#ids.get(kind)?.add(id);
  }

  ask(found: Promise<void>): void {
    // Its failure is also the transaction's, which reports it.
    found.catch(() => undefined);
    this.#asked.push(found);
  }

  async take(): Promise<(readonly [kind: SealKind, ids: readonly Id[]])[]> {
    await Promise.all(this.#asked);
    this.#asked = [];
    const taken = SEAL_KINDS.map((kind) => [kind, [...(this.#ids.get(kind) ?? [])]] as const);
    for (const ids of this.#ids.values()) ids.clear();
    return taken.filter(([, ids]) => ids.length > 0);
  }
}

const touched = new WeakMap<WriteSql, Touched>();

/** Call before the rows of a part are sent. */
export function noteSealed(sql: WriteSql, changes: Changes): void {
  for (const part of changes.parts) notePart(sql, part);
}

function notePart(sql: WriteSql, { inserts, updates, deletes }: ChangePart): void {
  for (const [table, rows] of inserts) note(sql, table, rows, rows);
  for (const [table, keys] of deletes) note(sql, table, keys, keys);
  for (const [table, patches] of updates) {
    const changed = [...patches.values()].filter(({ set }) => isSealed(table, set));
    note(
      sql,
      table,
      changed.map(({ key }) => key),
      changed.map(({ key, set }) => ({ ...key, ...set })),
    );
  }
}

function isSealed(table: TableName, set: Values): boolean {
  const sealed = BY_TABLE.get(table);
  return sealed !== undefined && (!sealed.isPartial || sealed.columns.some((column) => column in set));
}

/** Uses the rows known here; if they do not name what they belong to, it is queried by their keys, before they change. */
function note(sql: WriteSql, table: TableName, keys: readonly Values[], rows: readonly Values[]): void {
  const sealed = BY_TABLE.get(table);
  if (sealed === undefined || rows.length === 0) return;
  const all = begin(sql);
  for (const row of rows) all.add(sealed.kind, row[sealed.id]);
  const unknown = keys.filter((key) => !(sealed.id in key));
  if (unknown.length === 0) return;
  const found = sql.ask<{ id: Id }>(unknown.map((key) => renderFind(table, `${sealed.id} AS id`, key)));
  all.ask(found.then((lists) => lists.flat().forEach(({ id }) => all.add(sealed.kind, id))));
}

function begin(sql: WriteSql): Touched {
  const known = touched.get(sql);
  if (known) return known;
  const made = new Touched();
  touched.set(sql, made);
  sql.beforeCommit(() => sealTouched(sql, made));
  return made;
}

async function sealTouched(sql: WriteSql, all: Touched): Promise<void> {
  const changed = await all.take();
  const seals = await Promise.all(changed.map(([kind, ids]) => hashAll(sql, kind, ids)));
  sql.post(...seals.flatMap((one, i) => renderSeals(changed[i]?.[0] ?? "session", one)));
}

/** The hash over the facts of each; null for deleted ones. */
async function hashAll(
  sql: WriteSql,
  kind: SealKind,
  ids: readonly Id[],
): Promise<(readonly [Id, string | null])[]> {
  const answers = await sql.ask<Values>(SEALED[kind].map(({ table }) => renderFacts(table, ids)));
  const facts = SEALED[kind].map(({ id, columns }, i) => {
    const rows = Map.groupBy(answers[i] ?? [], (row) => row[id]);
    return (of: Id): SealedRow[] =>
      (rows.get(of) ?? []).map((row) => columns.map((column) => row[column] ?? null));
  });
  return ids.map((id) => {
    const found = facts.map((rowsOf) => rowsOf(id));
    return [id, found[0]?.length === 0 ? null : hashSeal(kind, found).toString("hex")];
  });
}

function renderFacts(table: TableName, ids: readonly Id[]): Statement {
  const { id, columns, order } = BY_TABLE.get(table) ?? { id: "", columns: [], order: [] };
  const type = typeof ids[0] === "string" ? "text" : "bigint";
  const wanted = [...new Set([id, ...columns])].join(", ");
  const sorted = [id, ...order].join(", ");
  return statement(`SELECT ${wanted} FROM ${table} WHERE ${id} = ANY($1::${type}[]) ORDER BY ${sorted}`, ids);
}

function renderSeals(kind: SealKind, hashes: readonly (readonly [Id, string | null])[]): Statement[] {
  const kept = hashes.filter(([, hash]) => hash !== null);
  const gone = hashes.filter(([, hash]) => hash === null).map(([id]) => String(id));
  const statements: Statement[] = [];
  if (kept.length > 0) {
    statements.push(
      statement(
        `INSERT INTO seals (kind, id, hash) SELECT $1, id, decode(hash, 'hex') FROM unnest($2::text[], $3::text[]) v (id, hash)
         ON CONFLICT (kind, id) DO UPDATE SET hash = excluded.hash`,
        kind,
        kept.map(([id]) => String(id)),
        kept.map(([, hash]) => hash),
      ),
    );
  }
  if (gone.length > 0)
    statements.push(statement("DELETE FROM seals WHERE kind = $1 AND id = ANY($2::text[])", kind, gone));
  return statements;
}

/**
 * A change set: what a plan wants written, row by row, as plain values. It is applied as a whole, in one transaction: deletes, inserts,
 * updates, then the work of the text index.
 *
 * Invariant: a row has at most one update, however often it was changed, because a database that applies a set of updates at once applies
 * only one of two. A delete and an insert of the same key replace the row.
 */
import { assert } from "../model/errors.ts";
import { tables } from "./tables.ts";
import type { Key, Row, TableName, Value } from "./tables.ts";

/** A row of any table, as an adapter binds it. */
export type Values = Readonly<Record<string, Value>>;

export interface Update {
  readonly key: Values;
  readonly set: Values;
}

/** What the text index of the adapter has to do, in the same transaction. */
export interface IndexWork {
  readonly kind: "add-summary";
  readonly summaryId: string;
  readonly conversationId: number;
  readonly content: string;
}

/** Takes rows: a change set keeps them, a connection writes them at once. */
export interface RowWriter {
  insert<T extends TableName>(table: T, row: Row<T>): void;
  update<T extends TableName>(table: T, key: Key<T>, set: Partial<Row<T>>): void;
}

export class Changes implements RowWriter {
  readonly inserts = new Map<TableName, Values[]>();
  readonly updates = new Map<TableName, Map<string, Update>>();
  readonly deletes = new Map<TableName, Values[]>();
  readonly index: IndexWork[] = [];

  insert<T extends TableName>(table: T, row: Row<T>): void {
    listOf(this.inserts, table).push(row);
  }

  update<T extends TableName>(table: T, key: Key<T>, set: Partial<Row<T>>): void {
    let updates = this.updates.get(table);
    if (!updates) this.updates.set(table, (updates = new Map()));
    const name = nameOf(table, key);
    const before = updates.get(name)?.set;
    updates.set(name, { key, set: { ...before, ...set } as Values });
  }

  /** By its key, or all rows whose key begins like this. */
  delete<T extends TableName>(table: T, key: Partial<Key<T>>): void {
    const front: readonly string[] = tables[table].key.slice(0, Object.keys(key).length);
    assert(front.length > 0 && front.every((column) => column in key), `the front of the key of ${table}`);
    listOf(this.deletes, table).push(key as Values);
  }

  done<T>(result: T): { readonly result: T; readonly changes: Changes } {
    return { result, changes: this };
  }
}

/** The values of a key as one text. */
export const nameOf = (table: TableName, row: Values): string =>
  JSON.stringify(tables[table].key.map((column) => row[column]));

function listOf<K, V>(lists: Map<K, V[]>, key: K): V[] {
  let list = lists.get(key);
  if (!list) lists.set(key, (list = []));
  return list;
}

/**
 * A change set: the rows a plan writes, as plain values. It is applied as a whole, in one transaction: files first, then its parts in
 * order, each with its deletes, inserts and updates, then the work of the text index.
 *
 * Invariant: inside a part a row has at most one update, however often it was changed, because a database that applies a set of updates at
 * once applies only one of two. A delete and an insert of the same key replace the row.
 */
import { assert } from "../model/errors.ts";
import type { ReadTerms } from "../text/index.ts";
import { tables } from "./tables.ts";
import type { Key, Row, TableName, Value } from "./tables.ts";

/** A row of any table, as an adapter binds it. */
export type Values = Readonly<Record<string, Value>>;

export interface Update {
  readonly key: Values;
  readonly set: Values;
}

/** Large content that is moved out of a message. Named by its content: writing it twice, or for nothing, does no harm. */
export interface FileToWrite {
  /** Name among the blobs. */
  readonly blob: string;
  readonly content: Uint8Array;
  /** Only this change set refers to it: if that is rolled back with others, the file is removed too. */
  readonly isNew?: boolean;
}

/** What the adapter's text index has to do, in the same transaction. */
export type IndexWork =
  | {
      readonly kind: "add-summary";
      readonly summaryId: string;
      readonly conversationId: number;
      readonly content: string;
    }
  | { readonly kind: "remove-summary"; readonly summaryId: string }
  | { readonly kind: "remove-message"; readonly messageId: number }
  | {
      readonly kind: "add-message";
      readonly messageId: number;
      readonly conversationId: number;
      /** Length of the message, to limit the queue. */
      readonly bytes: number;
      readonly readTerms: ReadTerms;
      /** Called when the terms will not be read again. */
      readonly release?: (() => void) | undefined;
    };

/** Takes rows: a change set collects them, a connection writes them at once. */
export interface RowWriter {
  insert<T extends TableName>(table: T, row: Row<T>): void;
  update<T extends TableName>(table: T, key: Key<T>, set: Partial<Row<T>>): void;
  /** By its key, or all rows with this prefix of the key. */
  delete<T extends TableName>(table: T, key: Partial<Key<T>>): void;
  /** Later rows are written after earlier ones: they may take a name that a row has just given up. */
  divide(): void;
}

/** Rows that are written at once. */
export class ChangePart {
  readonly inserts = new Map<TableName, Values[]>();
  readonly updates = new Map<TableName, Map<string, Update>>();
  readonly deletes = new Map<TableName, Values[]>();
}

export class Changes implements RowWriter {
  readonly parts: ChangePart[] = [];
  readonly files: FileToWrite[] = [];
  readonly index: IndexWork[] = [];
  #part = this.#begin();
  #rows = 0;

  /** How many rows it changes; a row that is changed twice counts twice. */
  get size(): number {
    return this.#rows;
  }

  insert<T extends TableName>(table: T, row: Row<T>): void {
    this.#rows += 1;
    listOf(this.#part.inserts, table).push(row);
  }

  update<T extends TableName>(table: T, key: Key<T>, set: Partial<Row<T>>): void {
    this.#rows += 1;
    let updates = this.#part.updates.get(table);
    if (!updates) this.#part.updates.set(table, (updates = new Map()));
    const name = nameOf(table, key);
    const before = updates.get(name);
    updates.set(name, { key, set: (before ? { ...before.set, ...set } : set) as Values });
  }

  delete<T extends TableName>(table: T, key: Partial<Key<T>>): void {
    const front: readonly string[] = tables[table].key.slice(0, Object.keys(key).length);
    assert(front.length > 0 && front.every((column) => column in key), `the front of the key of ${table}`);
    this.#rows += 1;
    listOf(this.#part.deletes, table).push(key as Values);
  }

  divide(): void {
    this.#part = this.#begin();
  }

  /** Everything in it, as a separate change set. */
  take(): Changes {
    const taken = new Changes();
    taken.parts.splice(0, 1, ...this.parts.splice(0));
    taken.files.push(...this.files.splice(0));
    taken.index.push(...this.index.splice(0));
    this.#part = this.#begin();
    this.#rows = 0;
    return taken;
  }

  done<T>(result: T): { readonly result: T; readonly changes: Changes } {
    return { result, changes: this };
  }

  #begin(): ChangePart {
    const part = new ChangePart();
    this.parts.push(part);
    return part;
  }
}

/** The values of a key as one text. */
export function nameOf(table: TableName, row: Values): string {
  const { key } = tables[table];
  const [only = ""] = key;
  return key.length === 1 ? String(row[only]) : JSON.stringify(key.map((column) => row[column]));
}

function listOf<K, V>(lists: Map<K, V[]>, key: K): V[] {
  let list = lists.get(key);
  if (!list) lists.set(key, (list = []));
  return list;
}

/**
 * The tables of an archive as maps, on which plans run: rules are tested without a database, and one written here is a mistake. Answers and
 * rows are copied on their way, so that nobody shares an object with the archive.
 */
import { answerAll, nameOf, TABLE_NAMES } from "@lossless/core/ports";
import type {
  Changes,
  HeadRow,
  ItemPlace,
  Plan,
  Reads,
  Row,
  RunRow,
  SourceLink,
  SummarySpan,
  TableName,
  Values,
} from "@lossless/core/ports";

export class MemoryArchive implements Reads {
  readonly #tables = new Map<TableName, Map<string, Values>>(TABLE_NAMES.map((name) => [name, new Map()]));
  /** How often the last plan asked. */
  asks = 0;

  write<T>(plan: () => Plan<T>): T {
    const { value, asks } = answerAll(plan(), this);
    this.asks = asks;
    this.#apply(value.changes);
    return value.result;
  }

  load(table: TableName, rows: readonly Values[]): void {
    for (const row of rows) this.#insert(table, row);
  }

  list<T extends TableName>(table: T): Row<T>[] {
    return [...this.#rowsOf(table).values()].map((row) => structuredClone(row) as Row<T>);
  }

  #apply({ deletes, inserts, updates }: Changes): void {
    for (const [table, keys] of deletes) for (const key of keys) this.#delete(table, key);
    for (const [table, rows] of inserts) for (const row of rows) this.#insert(table, row);
    for (const [table, changed] of updates)
      for (const { key, set } of changed.values()) this.#update(table, key, set);
  }

  #insert(table: TableName, row: Values): void {
    const name = nameOf(table, row);
    if (this.#rowsOf(table).has(name)) throw new Error(`${table} has a row ${name} already`);
    this.#rowsOf(table).set(name, structuredClone(row));
  }

  #update(table: TableName, key: Values, set: Values): void {
    const name = nameOf(table, key);
    const row = this.#rowsOf(table).get(name);
    if (row === undefined) throw new Error(`${table} has no row ${name}`);
    this.#rowsOf(table).set(name, { ...row, ...structuredClone(set) });
  }

  #delete(table: TableName, key: Values): void {
    const rows = this.#rowsOf(table);
    for (const [name, row] of rows)
      if (Object.entries(key).every(([column, value]) => row[column] === value)) rows.delete(name);
  }

  #rowsOf(table: TableName): Map<string, Values> {
    const rows = this.#tables.get(table);
    if (rows === undefined) throw new Error(`there is no table ${table}`);
    return rows;
  }

  lockHead(conversationId: number): HeadRow | null {
    return this.list("conversations").find((row) => row.conversation_id === conversationId) ?? null;
  }

  run(conversationId: number, first: ItemPlace, last: ItemPlace): RunRow[] {
    return this.list("context_items")
      .filter((item) => item.conversation_id === conversationId)
      .filter((item) => compare(item, first) >= 0 && compare(item, last) <= 0)
      .sort((a, b) => a.start_pos - b.start_pos || a.seq - b.seq)
      .map((item) => this.#toRunRow(item));
  }

  #toRunRow(item: Row<"context_items">): RunRow {
    const message = this.list("messages").find((row) => row.message_id === item.message_id);
    const summary = this.list("summaries").find((row) => row.summary_id === item.summary_id);
    return {
      ...item,
      version_id: message?.newest ?? message?.message_id ?? null,
      earliest_at: message?.created_at ?? summary?.earliest_at ?? 0,
      latest_at: message?.created_at ?? summary?.latest_at ?? 0,
      descendant_count: summary?.descendant_count ?? null,
      end_seq: summary?.end_seq ?? null,
      stale: summary?.stale ?? null,
    };
  }

  summaries(summaryIds: readonly string[]): SummarySpan[] {
    return this.list("summaries").filter((row) => summaryIds.includes(row.summary_id));
  }

  sources(summaryIds: readonly string[]): SourceLink[] {
    const messages = this.list("summary_messages").map((link) => ({ ...link, source_id: null }));
    const summaries = this.list("summary_parents").map((link) => ({
      ...link,
      message_id: null,
      source_id: link.parent_summary_id,
    }));
    return [...messages, ...summaries]
      .filter((link) => summaryIds.includes(link.summary_id))
      .sort((a, b) => a.ordinal - b.ordinal);
  }

  madeAhead(conversationId: number): SummarySpan[] {
    return this.list("summaries").filter(
      (row) =>
        row.conversation_id === conversationId && (row.state === "prepared" || row.state === "reserve"),
    );
  }

  staleSummaries(conversationId: number): SummarySpan[] {
    return this.list("summaries").filter(
      (row) => row.conversation_id === conversationId && row.state === "cover" && row.stale === 1,
    );
  }
}

const compare = (item: Row<"context_items">, place: ItemPlace): number =>
  item.start_pos - place.startPosition || item.seq - place.seq;

/** The heads of the conversations that one write changes: each read once, and saved once. */
import type { ForkOrigin } from "../model/chain.ts";
import { must } from "../model/errors.ts";
import type { SessionRef } from "../model/message.ts";
import type { Changes, RowWriter } from "./changes.ts";
import { describeConversation, Head } from "./head.ts";
import { Conflict, read } from "./plan.ts";
import type { Asking } from "./plan.ts";
import type { HeadRow, NumberedTable } from "./reads.ts";

/** The source of heads and new ids: a plan's answers, or the connection. */
export interface HeadSource {
  readHead(conversationId: number): HeadRow | undefined;
  nextId(table: NumberedTable): number;
}

/** Heads and ids that a plan has asked for. */
export function answerHeads(
  rows: readonly (HeadRow | null)[],
  numbers: Readonly<Partial<Record<NumberedTable, readonly number[]>>> = {},
): HeadSource {
  const byId = new Map(rows.flatMap((row) => (row ? [[row.conversation_id, row] as const] : [])));
  const free = new Map(Object.entries(numbers).map(([table, ids]) => [table, ids.values()]));
  return {
    readHead: (id) => byId.get(id),
    nextId: (table) => must(free.get(table)?.next().value, `a number of ${table}`),
  };
}

/** The heads of conversations, for a plan that begins none. */
export function* lockHeads(changes: Changes, conversationIds: readonly number[]): Asking<Heads> {
  return new Heads(answerHeads(yield* read.lockHeads([...new Set(conversationIds)])), changes);
}

/**
 * For a plan that must ask first to know which conversations it changes: asks, locks them, and asks again, because on a server others may have
 * changed them before the lock was this plan's. Only the second answer counts. The lock and the first questions after it are one set.
 */
export function* askLocked<T>(
  changes: Changes,
  ask: () => Asking<T>,
  namesIds: (found: T) => readonly number[],
): Asking<{ readonly found: T; readonly heads: Heads }> {
  const ids = new Set(namesIds(yield* ask()));
  const again = ask();
  let step = again.next([]);
  const [rows, ...answers] = yield [read.lockHeads([...ids]), ...(step.done ? [] : step.value)];
  if (!step.done) step = again.next(answers);
  while (!step.done) step = again.next(yield step.value);
  if (namesIds(step.value).some((id) => !ids.has(id)))
    throw new Conflict("another conversation is concerned now");
  return { found: step.value, heads: new Heads(answerHeads(rows as HeadRow[]), changes) };
}

export class Heads {
  readonly writer: RowWriter;
  readonly #source: HeadSource;
  readonly #heads = new Map<number, Head>();

  constructor(source: HeadSource, writer: RowWriter) {
    this.#source = source;
    this.writer = writer;
  }

  of(conversationId: number): Head {
    let head = this.#heads.get(conversationId);
    if (!head) {
      const row = must(this.#source.readHead(conversationId), `conversation ${conversationId}`);
      this.#heads.set(conversationId, (head = new Head(row)));
    }
    return head;
  }

  /** Begins a conversation. */
  create(
    session: SessionRef,
    now: number,
    fork: (ForkOrigin & { readonly position: number }) | null = null,
  ): Head {
    const row = describeConversation(this.nextId("conversations"), session, now, fork);
    this.writer.insert("conversations", row);
    const head = new Head(row);
    this.#heads.set(row.conversation_id, head);
    return head;
  }

  nextId(table: NumberedTable): number {
    return this.#source.nextId(table);
  }

  get ids(): number[] {
    return [...this.#heads.keys()];
  }

  save(now: number): void {
    for (const head of this.#heads.values()) head.save(this.writer, now);
  }
}

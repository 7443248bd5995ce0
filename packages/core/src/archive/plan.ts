/**
 * A write as a plan: a generator without input or output that asks the archive for rows, in sets, and ends with a change set. An adapter
 * answers and applies: a local one directly, a server with one round trip for each set.
 *
 * Rules for plans. A question is a value: `yield*` asks one, {@link together} asks several at once. A plan does not see what it has not
 * flushed yet. It is made by a function that may be called again: no clock, no randomness, no long work. Locks come first in their set;
 * what was asked before them only says what to lock, and is asked again (`askLocked`).
 */
import type { Changes } from "./changes.ts";
import { READ_NAMES } from "./reads.ts";
import type { Reads } from "./reads.ts";

type ReadName = keyof Reads;
type Query<K extends ReadName> = Parameters<Reads[K]>;
type Answer<K extends ReadName> = ReturnType<Reads[K]>;

/** One question: the name of a read, and its parameters. */
export class Question<K extends ReadName = ReadName> {
  readonly name: K;
  readonly query: Query<K>;

  constructor(name: K, query: Query<K>) {
    this.name = name;
    this.query = query;
  }

  *[Symbol.iterator](): Asking<Answer<K>> {
    const [answer] = yield [this];
    return answer as Answer<K>;
  }
}

/** What a plan has so far, to be written in its transaction before it continues: its next questions see it. */
class Flush {
  readonly changes: Changes;

  constructor(changes: Changes) {
    this.changes = changes;
  }
}

/** Part of a plan: asks questions, and returns something. */
export type Asking<T> = Generator<readonly (Question | Flush)[], T, readonly unknown[]>;
export type Plan<T> = Asking<Done<T>>;

export interface Done<T> {
  readonly result: T;
  readonly changes: Changes;
}

/** Thrown by a plan, or by what applies it, when an assumption no longer holds: the plan is run again from the start. */
export class Conflict extends Error {}

type Answers<Q extends readonly Question[]> = {
  [I in keyof Q]: Q[I] extends Question<infer K> ? Answer<K> : never;
};

/** Asks several questions at once. */
export function* together<const Q extends readonly Question[]>(...questions: Q): Asking<Answers<Q>> {
  return (yield questions) as Answers<Q>;
}

/** Writes the changes so far; the change set continues empty. */
export function* flush(changes: Changes): Asking<void> {
  yield [new Flush(changes.take())];
}

/** Rows that a plan collects before it flushes them: enough that a round trip is negligible, and few enough for any memory. */
const MAX_ROWS = 1_000;

/** Writes the changes so far if they are many: work on a whole conversation must not collect it in memory. */
export function* flushIfLong(changes: Changes): Asking<void> {
  if (changes.size >= MAX_ROWS) yield* flush(changes);
}

/** `read.lockHead(7)` is a question. */
export const read = Object.fromEntries(
  READ_NAMES.map((name) => [name, (...query: Query<ReadName>) => new Question(name, query)]),
) as { readonly [K in ReadName]: (...query: Query<K>) => Question<K> };

/** Runs a plan with direct answers, and counts how often it asks. Errors are thrown at the question, so that a plan can handle them. */
export function answerAll<T>(
  plan: Asking<T>,
  reads: Reads,
  apply: (changes: Changes) => void,
): { readonly value: T; readonly asks: number } {
  let asks = 0;
  let step = plan.next([]);
  while (!step.done) {
    const asked = step.value;
    if (asked.some((part) => part instanceof Question)) asks += 1;
    let answers: unknown[];
    try {
      answers = asked.map((part) => (part instanceof Flush ? apply(part.changes) : answer(reads, part)));
    } catch (error) {
      step = plan.throw(error);
      continue;
    }
    step = plan.next(answers);
  }
  return { value: step.value, asks };
}

function answer(reads: Reads | ReadsLater, { name, query }: Question): unknown {
  const ask = reads[name] as (this: unknown, ...query: unknown[]) => unknown;
  return ask.apply(reads, query);
}

/** Reads with asynchronous answers. Each sends its statements at once, so that a set of questions shares a round trip. */
export type ReadsLater = { readonly [K in ReadName]: (...query: Query<K>) => Promise<Answer<K>> };

/**
 * Like {@link answerAll} if a set of questions takes a round trip. Nobody waits for applied changes: they are visible to the next answer.
 */
export async function answerLater<T>(
  plan: Asking<T>,
  reads: ReadsLater,
  apply: (changes: Changes) => void,
): Promise<{ readonly value: T; readonly asks: number }> {
  let asks = 0;
  let step = plan.next([]);
  while (!step.done) {
    const asked = step.value;
    if (asked.some((part) => part instanceof Question)) asks += 1;
    let answers: readonly unknown[];
    try {
      answers = await Promise.all(
        asked.map((part) => (part instanceof Flush ? apply(part.changes) : answer(reads, part))),
      );
    } catch (error) {
      step = plan.throw(error);
      continue;
    }
    step = plan.next(answers);
  }
  return { value: step.value, asks };
}

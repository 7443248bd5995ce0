/**
 * A write as a plan: a generator without input or output that asks the archive for rows, in sets, and ends with a change set. An adapter
 * answers and applies: one that is near at once, a server with one round trip for each set.
 *
 * Rules for plans. A question is a value: `yield*` asks one, {@link together} asks several at once. A plan does not see what it has not
 * handed over yet. It is made by a function that may be called again: no clock, no chance, nothing that takes long. Locks come first in
 * their set.
 */
import type { Changes } from "./changes.ts";
import { READ_NAMES } from "./reads.ts";
import type { Reads } from "./reads.ts";

type ReadName = keyof Reads;
type Query<K extends ReadName> = Parameters<Reads[K]>;
type Answer<K extends ReadName> = ReturnType<Reads[K]>;

/** One question: the name of a read, and what it is asked with. */
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

/** What a plan has so far, to be written in its transaction before it goes on: what it asks afterwards sees it. */
class Flush {
  readonly changes: Changes;

  constructor(changes: Changes) {
    this.changes = changes;
  }
}

/** A part of a plan: asks, and returns something. */
export type Asking<T> = Generator<readonly (Question | Flush)[], T, readonly unknown[]>;
export type Plan<T> = Asking<Done<T>>;

export interface Done<T> {
  readonly result: T;
  readonly changes: Changes;
}

/** Thrown by a plan, or by what applies it, when something it rests on is no longer so: it is run again from the start. */
export class Conflict extends Error {}

type Answers<Q extends readonly Question[]> = {
  [I in keyof Q]: Q[I] extends Question<infer K> ? Answer<K> : never;
};

/** Asks several questions at once. */
export function* together<const Q extends readonly Question[]>(...questions: Q): Asking<Answers<Q>> {
  return (yield questions) as Answers<Q>;
}

/** Has what there is written now; the change set goes on empty. */
export function* flush(changes: Changes): Asking<void> {
  yield [new Flush(changes.take())];
}

/** Rows that a plan gathers before it hands them over: enough that a trip is nothing beside them, and few enough for any memory. */
const MAX_ROWS = 1_000;

/** Has what there is written if it is much: work over a whole conversation must not gather it in memory. */
export function* flushIfLong(changes: Changes): Asking<void> {
  if (changes.size >= MAX_ROWS) yield* flush(changes);
}

/** `read.lockHead(7)` is a question. */
export const read = Object.fromEntries(
  READ_NAMES.map((name) => [name, (...query: Query<ReadName>) => new Question(name, query)]),
) as { readonly [K in ReadName]: (...query: Query<K>) => Question<K> };

/** Runs a plan where answers come at once, and counts how often it asks. What fails is thrown at the question, so that a plan can go on. */
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

/** Reads whose answers come later. What each needs of its database it sends off at once, so that a set of questions travels together. */
export type ReadsLater = { readonly [K in ReadName]: (...query: Query<K>) => Promise<Answer<K>> };

/** Like {@link answerAll} where a set of questions takes a round trip. Nobody waits for what is applied: it is there before the next answer. */
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

/**
 * What a verb of the engine is: a plain function over the engine's state, and how it is served. Threads, cancellation, progress and index
 * flushes follow from these declarations; no other code names verbs.
 */
import type { EngineState } from "./state.ts";

/**
 * `writer`: the writing thread. `reader`: the read-only thread beside it, for calls that may take long, so that a search or a proof never
 * delays a commit. `every`: each open thread, the writing one last; the thread ends with it.
 */
export type ServingThread = "writer" | "reader" | "every";

export interface Verb<Args extends readonly unknown[] = readonly [never], Result = unknown> {
  readonly run: (engine: EngineState, ...args: Args) => Promise<Result>;
  readonly thread: ServingThread;
  /** Must find recently stored messages: the index is flushed first. */
  readonly flushedIndex?: boolean;
  /** The request carries a `signal`. */
  readonly cancellable?: boolean;
  /** The request carries `onProgress`. */
  readonly progress?: boolean;
  /** Erases messages: afterwards every thread drops the texts that searches keep in memory. */
  readonly erasesTexts?: boolean;
  /** How the request is posted to the other thread, where a plain copy would cost too much or change it. It must not keep the request alive. */
  readonly post?: (request: never) => Posted;
}

export interface Posted {
  readonly request: unknown;
  /** Transferred instead of copied. */
  readonly transfer: ArrayBuffer[];
}

type Carries<Args extends readonly unknown[], Name extends string> = Args extends readonly []
  ? false
  : Name extends keyof NonNullable<Args[0]>
    ? true
    : false;

/** The options of a table entry. The compiler refuses flags that do not match the request. */
type Serving<Args extends readonly unknown[]> = Pick<Verb, "flushedIndex" | "erasesTexts" | "post"> &
  (Carries<Args, "signal"> extends true ? { readonly cancellable: true } : { readonly cancellable?: false }) &
  (Carries<Args, "onProgress"> extends true ? { readonly progress: true } : { readonly progress?: false });

type Options<Args extends readonly unknown[]> =
  Record<never, never> extends Serving<Args> ? [serving?: Serving<Args>] : [serving: Serving<Args>];

/** A verb that the writing thread serves. */
export function writer<Args extends readonly unknown[], Result>(
  run: (engine: EngineState, ...args: Args) => Promise<Result>,
  ...[serving]: Options<Args>
): Verb<Args, Result> {
  return { ...serving, run, thread: "writer" };
}

/** A verb that the reading thread serves. What it has to write goes through `engine.writer`. */
export function reader<Args extends readonly unknown[], Result>(
  run: (engine: EngineState, ...args: Args) => Promise<Result>,
  ...[serving]: Options<Args>
): Verb<Args, Result> {
  return { ...serving, run, thread: "reader" };
}

/** A verb that every open thread serves. */
export function every<Result>(run: (engine: EngineState) => Promise<Result>): Verb<[], Result> {
  return { run, thread: "every" };
}

/** The methods that a table of verbs declares. */
export type Methods<Table> = {
  [Name in keyof Table]: Table[Name] extends Verb<infer Args, infer Result>
    ? (...args: Args) => Promise<Result>
    : never;
};

/** The parts of a request that cannot be copied to another thread. */
export interface Callbacks {
  readonly signal?: AbortSignal;
  readonly onProgress?: (done: number, total: number) => void;
}

/** Takes the callbacks out of a request. */
export function splitRequest(verb: Verb, request: unknown): Callbacks & { readonly sent: unknown } {
  if (!verb.cancellable && !verb.progress) return { sent: request };
  const { signal, onProgress, ...sent } = (request ?? {}) as Callbacks;
  return { sent, signal, onProgress };
}

/** Puts callbacks into a request that came from another thread. */
export function joinRequest(verb: Verb, sent: unknown, { signal, onProgress }: Callbacks): unknown {
  if (!verb.cancellable && !verb.progress) return sent;
  return { ...(sent as object), ...(verb.cancellable && { signal }), ...(verb.progress && { onProgress }) };
}

/** Drops the texts that searches by regular expression keep in memory. */
export async function dropTexts({ recall }: EngineState): Promise<void> {
  await recall.scanner.drop();
}

/** Runs a verb in this thread. */
export async function runVerb(engine: EngineState, verb: Verb, request: unknown): Promise<unknown> {
  if (verb.flushedIndex) await engine.store.flushIndex();
  // The table has checked the type of the request; here the verb is one of many.
  const result = await verb.run(engine, request as never);
  if (verb.erasesTexts) await dropTexts(engine);
  return result;
}

/** An object with a method for each verb, all served by one function. */
export function makeMethods<Table extends Readonly<Record<string, Verb>>>(
  table: Table,
  serve: (name: keyof Table & string, verb: Verb, request: unknown) => Promise<unknown>,
): Methods<Table> {
  const methods = Object.entries(table).map(([name, verb]) => [
    name,
    (request: unknown) => serve(name, verb, request),
  ]);
  return Object.fromEntries(methods) as Methods<Table>;
}

/** What the two sides of the engine's thread say to each other. Everything here can be cloned between threads. */
import type { CompleteRequest, CompleteResult, ModelRef } from "./model/complete.ts";
import type { EmbedRequest, EmbedResult } from "./model/embed.ts";
import { ERROR_CODES, EngineError } from "./model/errors.ts";
import type { ErrorCode } from "./model/errors.ts";
import type { EngineEvent } from "./model/events.ts";
import type { Arrival } from "./model/message.ts";
import type { Settings } from "./model/settings.ts";
import type { PreparedMessage } from "./store/store.ts";
import type { SqliteStoreOptions } from "./store/sqlite/sqlite-store.ts";

export interface WorkerStart {
  readonly store: SqliteStoreOptions;
  readonly settings: Settings;
  /** The host has a way to a model; calls go back to its thread. */
  readonly hasComplete: boolean;
  /** The same for vectors. */
  readonly hasEmbed: boolean;
  readonly hostModel?: ModelRef | null;
}

export type ToWorker =
  | { kind: "call"; id: number; method: string; request: unknown; wantsProgress: boolean }
  | { kind: "cancel"; id: number }
  | { kind: "completed"; id: number; result: CompleteResult | EmbedResult };

/** What the worker asks of a model on the host's thread. */
export type ModelCall =
  | { readonly port: "complete"; readonly request: CompleteRequest }
  | { readonly port: "embed"; readonly request: EmbedRequest };

export type FromWorker =
  | { kind: "ready" }
  | { kind: "failed"; error: SerializedError }
  | { kind: "result"; id: number; value: unknown; events: readonly EngineEvent[] }
  | { kind: "error"; id: number; error: SerializedError }
  | { kind: "progress"; id: number; done: number; total: number }
  | { kind: "events"; events: readonly EngineEvent[] }
  | { kind: "complete"; id: number; call: ModelCall }
  | { kind: "complete-cancel"; id: number };

export interface SerializedError {
  readonly code: string | null;
  readonly message: string;
  readonly hint: string | null;
  readonly stack: string | null;
}

export function serializeError(error: unknown): SerializedError {
  if (error instanceof EngineError) {
    return { code: error.code, message: error.message, hint: error.hint ?? null, stack: error.stack ?? null };
  }
  const { message, stack } = error instanceof Error ? error : new Error(String(error));
  return { code: null, message, hint: null, stack: stack ?? null };
}

export function deserializeError(error: SerializedError): Error {
  if (error.code !== null && error.code in ERROR_CODES) {
    return new EngineError(
      error.code as ErrorCode,
      error.message,
      error.hint === null ? {} : { hint: error.hint },
    );
  }
  const plain = new Error(error.message);
  if (error.stack !== null) plain.stack = error.stack;
  return plain;
}

/**
 * Arrivals on their way to the worker: the bytes of all in one block, which is handed over instead of copied. A message with very long
 * texts travels as it is, because the host's thread can copy it ten times faster than write it as JSON; the worker does that.
 */
export interface PackedArrivals {
  readonly block: Uint8Array<ArrayBuffer>;
  /** `length` is null where the message itself is there. */
  readonly arrivals: readonly (Omit<Arrival, "bytes"> & { readonly length: number | null })[];
}

/** Writing a text of this length as JSON takes about a millisecond. */
const LONG_TEXT_CHARS = 300_000;
/** More values than this are not looked at: such a message is long for other reasons. */
const MAX_VALUES = 2_000;

export function packArrivals(
  arrivals: readonly Arrival[],
  toBytes: (arrival: Arrival) => Uint8Array,
): PackedArrivals {
  const bodies = arrivals.map((arrival) => (travelsWhole(arrival) ? null : toBytes(arrival)));
  const block = new Uint8Array(bodies.reduce((sum, body) => sum + (body?.byteLength ?? 0), 0));
  let at = 0;
  for (const body of bodies) {
    if (body === null) continue;
    block.set(body, at);
    at += body.byteLength;
  }
  return {
    block,
    arrivals: arrivals.map(({ message, bytes: _bytes, ...rest }, i) => {
      const length = bodies[i]?.byteLength ?? null;
      return length === null ? { ...rest, message, length } : { ...rest, length };
    }),
  };
}

/** True for a long message that a copy between threads leaves exactly as it is: plain objects, arrays and scalars only. */
function travelsWhole({ message, bytes }: Arrival): boolean {
  if (bytes !== undefined) return false;
  const values: unknown[] = [message];
  let chars = 0;
  for (let visited = 0; values.length > 0; visited++) {
    const value = values.pop();
    if (typeof value === "string") chars += value.length;
    else if (typeof value === "object" && value !== null) {
      if (visited > MAX_VALUES || !isPlainContainer(value)) return false;
      for (const member of Object.values(value)) values.push(member);
    } else if (typeof value === "function" || typeof value === "symbol" || typeof value === "bigint")
      return false;
  }
  return chars > LONG_TEXT_CHARS;
}

function isPlainContainer(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value);
  const isPlain = prototype === Object.prototype || prototype === null || Array.isArray(value);
  return isPlain && !("toJSON" in value);
}

/** Prepared messages on their way to the worker: what is bytes in one block, which is handed over instead of copied. */
export interface PackedPrepared {
  readonly block: Uint8Array<ArrayBuffer>;
  readonly messages: readonly (Omit<PreparedMessage, NotCloned> & {
    readonly lengths: readonly [body: number, salt: number, commitment: number];
    /** Analysed before they travel: that is what the other thread is spared. */
    readonly terms: ReturnType<PreparedMessage["readTerms"]>;
  })[];
}

type NotCloned = "body" | "salt" | "commitment" | "readTerms";

export function packPrepared(prepared: readonly PreparedMessage[]): PackedPrepared {
  const pieces = prepared.flatMap(({ body, salt, commitment }) => [body, salt, commitment]);
  const block = new Uint8Array(pieces.reduce((sum, piece) => sum + piece.byteLength, 0));
  let at = 0;
  for (const piece of pieces) {
    block.set(piece, at);
    at += piece.byteLength;
  }
  const messages = prepared.map(({ body, salt, commitment, readTerms, ...rest }) => ({
    ...rest,
    terms: readTerms(),
    lengths: [body.byteLength, salt.byteLength, commitment.byteLength] as const,
  }));
  return { block, messages };
}

export function unpackPrepared({ block, messages }: PackedPrepared): PreparedMessage[] {
  let at = 0;
  const take = (length: number): Uint8Array => block.subarray(at, (at += length));
  return messages.map(({ lengths: [body, salt, commitment], terms, ...rest }) => ({
    ...rest,
    readTerms: () => terms,
    body: take(body),
    salt: take(salt),
    commitment: take(commitment),
  }));
}

export function unpackArrivals(packed: PackedArrivals): Arrival[] {
  let at = 0;
  return packed.arrivals.map(({ length, ...rest }) => {
    if (length === null) return rest;
    const bytes = packed.block.subarray(at, at + length);
    at += length;
    return { ...rest, bytes };
  });
}

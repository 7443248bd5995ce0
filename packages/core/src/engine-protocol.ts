/** What the two sides of the engine's thread say to each other. Everything here can be cloned between threads. */
import type { CompleteRequest, CompleteResult, ModelRef } from "./model/complete.ts";
import { ERROR_CODES, EngineError } from "./model/errors.ts";
import type { ErrorCode } from "./model/errors.ts";
import type { EngineEvent } from "./model/events.ts";
import type { Arrival } from "./model/message.ts";
import type { Settings } from "./model/settings.ts";
import type { SqliteStoreOptions } from "./store/sqlite/sqlite-store.ts";

export interface WorkerStart {
  readonly store: SqliteStoreOptions;
  readonly settings: Settings;
  /** The host has a way to a model; calls go back to its thread. */
  readonly hasComplete: boolean;
  readonly hostModel: ModelRef | null;
}

export type ToWorker =
  | { kind: "call"; id: number; method: string; request: unknown; wantsProgress: boolean }
  | { kind: "cancel"; id: number }
  | { kind: "completed"; id: number; result: CompleteResult };

export type FromWorker =
  | { kind: "ready" }
  | { kind: "failed"; error: SerializedError }
  | { kind: "result"; id: number; value: unknown }
  | { kind: "error"; id: number; error: SerializedError }
  | { kind: "progress"; id: number; done: number; total: number }
  | { kind: "event"; event: EngineEvent }
  | { kind: "complete"; id: number; request: CompleteRequest }
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
    return new EngineError(error.code as ErrorCode, error.message, error.hint === null ? {} : { hint: error.hint });
  }
  const plain = new Error(error.message);
  if (error.stack !== null) plain.stack = error.stack;
  return plain;
}

/** Arrivals with all their bytes in one block, which is handed over instead of copied. */
export interface PackedArrivals {
  readonly block: Uint8Array<ArrayBuffer>;
  readonly arrivals: readonly (Omit<Arrival, "message" | "bytes"> & { readonly length: number })[];
}

export function packArrivals(arrivals: readonly Arrival[], toBytes: (arrival: Arrival) => Uint8Array): PackedArrivals {
  const bodies = arrivals.map(toBytes);
  const block = new Uint8Array(bodies.reduce((sum, body) => sum + body.byteLength, 0));
  let at = 0;
  for (const body of bodies) {
    block.set(body, at);
    at += body.byteLength;
  }
  return {
    block,
    arrivals: arrivals.map(({ message: _message, bytes: _bytes, ...rest }, i) => ({
      ...rest,
      length: bodies[i]?.byteLength ?? 0,
    })),
  };
}

export function unpackArrivals(packed: PackedArrivals): Arrival[] {
  let at = 0;
  return packed.arrivals.map(({ length, ...rest }) => {
    const bytes = packed.block.subarray(at, at + length);
    at += length;
    return { ...rest, bytes };
  });
}

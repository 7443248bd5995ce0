/** The messages between the engine's threads. Everything here can be cloned between threads. */
import type { CompleteRequest, ModelRef } from "../model/complete.ts";
import type { EmbedRequest } from "../model/embed.ts";
import { ERROR_CODES, EngineError } from "../model/errors.ts";
import type { ErrorCode } from "../model/errors.ts";
import type { EngineEvent } from "../model/events.ts";
import type { NextStep } from "../model/next-step.ts";
import type { Settings } from "../settings/settings.ts";
import type { OpenStoreOptions } from "../store/open-store.ts";
import type { WriterPort } from "./state.ts";

export interface WorkerStart {
  readonly store: Omit<OpenStoreOptions, "derive" | "onEvent"> & { readonly address: string };
  readonly settings: Settings;
  /** The host can call a model; calls go back to its thread. */
  readonly hasComplete: boolean;
  /** The same for vectors. */
  readonly hasEmbed: boolean;
  readonly hostModel?: ModelRef | null;
  /** The read-only thread: what it has to write goes to the other one. */
  readonly isReader: boolean;
}

export type ToWorker =
  | { kind: "call"; id: number; verb: string; request: unknown; wantsProgress: boolean }
  | { kind: "cancel"; id: number }
  | { kind: "served"; id: number; outcome: CallResult };

/**
 * What a worker asks the caller's thread for: a model, whose runtime is there; or, from the read-only thread, a verb of the writing thread.
 */
export type HostCall =
  | { readonly port: "complete"; readonly request: CompleteRequest }
  | { readonly port: "embed"; readonly request: EmbedRequest }
  | { readonly port: "writer"; readonly verb: keyof WriterPort; readonly request: unknown };

export type CallResult = { readonly value: unknown } | { readonly error: SerializedError };

export type FromWorker =
  | { kind: "ready" }
  | { kind: "failed"; error: SerializedError }
  | { kind: "result"; id: number; value: unknown; events: readonly EngineEvent[] }
  | { kind: "error"; id: number; error: SerializedError }
  | { kind: "progress"; id: number; done: number; total: number }
  | { kind: "events"; events: readonly EngineEvent[] }
  | { kind: "ask-host"; id: number; call: HostCall }
  | { kind: "cancel-host"; id: number };

export interface SerializedError {
  readonly code: string | null;
  readonly message: string;
  readonly hint: string | undefined;
  readonly step: NextStep | undefined;
  readonly stack: string | null;
}

export function serializeError(error: unknown): SerializedError {
  if (error instanceof EngineError) {
    const { code, message, hint, step, stack = null } = error;
    return { code, message, hint, step, stack };
  }
  const { message, stack } = error instanceof Error ? error : new Error(String(error));
  return { code: null, message, hint: undefined, step: undefined, stack: stack ?? null };
}

export function deserializeError(error: SerializedError): Error {
  if (error.code !== null && error.code in ERROR_CODES) {
    return new EngineError(error.code as ErrorCode, error.message, error);
  }
  const plain = new Error(error.message);
  if (error.stack !== null) plain.stack = error.stack;
  return plain;
}

/**
 * One call to a model with a time limit that cancels it. Whatever the implementation does, the call ends at the limit or when the caller
 * aborts: the signal is passed on, and an implementation that ignores it is abandoned.
 */
import type { CompleteResult } from "../model/complete.ts";

/** How a model fails, for any request. */
export type ModelFailure = Extract<CompleteResult, { kind: "failure" }>;

/** A port to a model: for completions, or for vectors. */
type Port<Request, Answer> = (request: Request, signal: AbortSignal) => Promise<Answer>;

/** The maximum of a timer; a longer one would fire at once. */
const MAX_TIMER_MS = 2 ** 31 - 1;

export async function callModel<Request, Answer extends { readonly kind: string }>(
  port: Port<Request, Answer | ModelFailure>,
  request: Request,
  options: { readonly signal: AbortSignal; readonly timeoutMs: number },
): Promise<Answer | ModelFailure> {
  const limit = new AbortController();
  const timer = setTimeout(() => limit.abort(), Math.min(options.timeoutMs, MAX_TIMER_MS));
  const either = AbortSignal.any([options.signal, limit.signal]);
  const ended = new AbortController();
  try {
    const result = await Promise.race([
      runGuarded(port, request, either),
      waitForAbort(either, ended.signal),
    ]);
    if (!isFailure(result)) return result;
    if (options.signal.aborted) return ABORTED;
    if (limit.signal.aborted) return timedOut(options.timeoutMs);
    // Something else cancelled it: for us the model was unavailable.
    return result.failure === "aborted" ? { ...result, failure: "unavailable" } : result;
  } finally {
    clearTimeout(timer);
    ended.abort();
  }
}

const isFailure = (answer: { readonly kind: string }): answer is ModelFailure => answer.kind === "failure";

const ABORTED: ModelFailure = {
  kind: "failure",
  failure: "aborted",
  message: "the caller cancelled the call",
};

const NOTHING_RETURNED: ModelFailure = {
  kind: "failure",
  failure: "invalid_response",
  message: "the model call returned no result",
};

function timedOut(timeoutMs: number): ModelFailure {
  return { kind: "failure", failure: "timeout", message: `no answer within ${timeoutMs} ms` };
}

/** The port forbids exceptions and empty results; a host that throws or returns nothing anyway must not stop a fold. */
async function runGuarded<Request, Answer extends { readonly kind: string }>(
  port: Port<Request, Answer | ModelFailure>,
  request: Request,
  signal: AbortSignal,
): Promise<Answer | ModelFailure> {
  try {
    const answer: Partial<Answer | ModelFailure> | null | undefined = await port(request, signal);
    return typeof answer?.kind === "string" ? (answer as Answer | ModelFailure) : NOTHING_RETURNED;
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    return { kind: "failure", failure: "unavailable", message };
  }
}

function waitForAbort(signal: AbortSignal, ended: AbortSignal): Promise<ModelFailure> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve(ABORTED);
    signal.addEventListener("abort", () => resolve(ABORTED), { once: true, signal: ended });
  });
}

/**
 * Records the cost of a model call in the ledger and notifies the host. Used by everything that calls a model, so that calls are counted
 * the same way for every purpose.
 *
 * Invariant: a ledger that cannot be written never costs the caller its answer, which is already paid for.
 */
import type { CompleteFailureKind, CompleteRequest, CompleteResult } from "../model/complete.ts";
import type { EngineEvent, EventSink } from "../model/events.ts";
import { estimateTextTokens } from "../text/tokens.ts";
import type { SpendRecord } from "../store/folding.ts";
import { nameCandidate } from "./candidates.ts";

export interface SpendDesk {
  readonly recordSpend: (record: SpendRecord) => Promise<unknown>;
  readonly emit: EventSink;
  /** Which part of the engine to name if the ledger cannot be written. */
  readonly part: Extract<EngineEvent, { kind: "degraded" }>["part"];
}

export async function recordSpend(desk: SpendDesk, record: SpendRecord): Promise<void> {
  try {
    await desk.recordSpend(record);
  } catch (error) {
    const cause = error instanceof Error ? error.message : String(error);
    desk.emit({ kind: "degraded", part: desk.part, message: `cannot record a model call: ${cause}` });
  }
  emitSpend(desk.emit, record);
}

/** Tells of a call whose record is in the ledger. */
export function emitSpend(emit: EventSink, record: SpendRecord): void {
  const { purpose, provider, model, inputTokens, outputTokens } = record;
  emit({ kind: "spend", purpose, model: nameCandidate({ provider, model }), inputTokens, outputTokens });
}

/** One completed call, as a ledger entry. */
export function describeSpend(
  request: CompleteRequest,
  result: CompleteResult,
  { conversationId, at, now }: { conversationId: number | null; at: number; now: number },
): Omit<SpendRecord, "outcome"> {
  const answered =
    result.kind === "text" ? result.model : (request.model ?? { provider: "host", model: "default" });
  return {
    at,
    conversationId,
    purpose: request.purpose,
    provider: answered.provider,
    model: answered.model,
    ...measureUsage(request, result),
    durationMs: Math.max(0, Math.round(now - at)),
  };
}

/** How a call without a gate ended. */
export const nameOutcome = (result: CompleteResult): string =>
  result.kind === "text" ? "accepted" : `failed:${result.failure}`;

/** Failures for which the provider may have read the prompt and will charge for it. */
const CHARGED: ReadonlySet<CompleteFailureKind> = new Set(["timeout", "aborted", "invalid_response"]);

function measureUsage(
  request: CompleteRequest,
  result: CompleteResult,
): Pick<SpendRecord, "inputTokens" | "outputTokens"> {
  const estimateInput = (): number => estimateTextTokens(request.system) + estimateTextTokens(request.user);
  if (result.kind === "failure")
    return { inputTokens: CHARGED.has(result.failure) ? estimateInput() : 0, outputTokens: 0 };
  return {
    inputTokens: countReported(result.inputTokens) ?? estimateInput(),
    outputTokens: countReported(result.outputTokens) ?? estimateTextTokens(result.text),
  };
}

/** The ledger takes integers only; a host may report anything. */
function countReported(tokens: number | null): number | null {
  return tokens !== null && Number.isFinite(tokens) && tokens >= 0 ? Math.round(tokens) : null;
}

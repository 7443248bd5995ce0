/**
 * One call to a language model with a time limit, recorded in the ledger. The summariser has its own, because its gate decides how a call
 * is recorded.
 */
import type { Complete, CompleteRequest, CompleteResult } from "../model/complete.ts";
import { callModel } from "../summarize/model-call.ts";
import { describeSpend, nameOutcome, recordSpend } from "../summarize/spend.ts";
import type { SpendDesk } from "../summarize/spend.ts";
import type { EngineState } from "./state.ts";

export interface MeteredCall {
  readonly request: CompleteRequest;
  readonly signal: AbortSignal;
  readonly timeoutMs: number;
  readonly conversationId: number | null;
  /** Which part of the engine to name if the ledger cannot be written. */
  readonly part: SpendDesk["part"];
}

export async function callMetered(
  { writer, emit, clock }: EngineState,
  complete: Complete,
  { request, signal, timeoutMs, conversationId, part }: MeteredCall,
): Promise<CompleteResult> {
  const at = clock.now();
  const result = await callModel(complete, request, { signal, timeoutMs });
  const spent = describeSpend(request, result, { conversationId, at, now: clock.now() });
  const desk = { recordSpend: writer.recordSpend, emit, part };
  await recordSpend(desk, { ...spent, outcome: nameOutcome(result) });
  return result;
}

/** What a model call cost, recorded with what was made of its answer. */
import type { SpendRecord } from "../store/folding.ts";
import type { Changes } from "./changes.ts";
import { read } from "./plan.ts";

type Spent = SpendRecord | null | undefined;

/** The number that the record will have. */
export const askSpendId = (spent: Spent) => read.ids("spend", spent ? 1 : 0);

export function addSpend(changes: Changes, [spend_id]: readonly number[], spent: Spent): void {
  if (!spent || spend_id === undefined) return;
  const { at, conversationId, purpose, provider, model, inputTokens, outputTokens, durationMs, outcome } =
    spent;
  changes.insert("spend", {
    spend_id,
    at,
    conversation_id: conversationId,
    purpose,
    provider,
    model,
    input_tokens: inputTokens,
    output_tokens: outputTokens,
    duration_ms: durationMs,
    outcome,
  });
}

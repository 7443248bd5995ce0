/** One call to the embedding model: its deadline, its ledger entry, and the checks on the result. Shared by filling and questions. */
import type { EmbedRequest, EmbedResult } from "../model/embed.ts";
import { estimateTextTokens } from "../text/tokens.ts";
import { normalizeVector } from "../model/vector.ts";
import type { SpendRecord } from "../store/folding.ts";
import { callModel } from "../summarize/model-call.ts";
import type { ModelFailure } from "../summarize/model-call.ts";
import { recordSpend } from "../summarize/spend.ts";
import type { EngineState } from "./state.ts";

export interface Embedded {
  readonly kind: "vectors";
  /** Of length one. */
  readonly vectors: readonly Float32Array[];
  /** Not recorded yet: vectors that are stored are stored with it. */
  readonly spent: SpendRecord;
}

/** Never throws for what a model does; only a database that fails does. A call that gave no vectors is in the ledger when this returns. */
export async function callEmbedding(
  engine: EngineState,
  request: EmbedRequest,
  limits: { readonly signal: AbortSignal; readonly timeoutMs: number },
): Promise<Embedded | ModelFailure> {
  const { embed, guards, clock, settings } = engine;
  if (embed === null) return failWith("unavailable", "no model is configured");
  if (!(await guards.allowsTokens()))
    return failWith("denied", "the day's tokens are used up (spendMaxTokensPerDay)");
  const at = clock.now();
  const result = await callModel(embed, request, limits);
  const spent = {
    at,
    conversationId: null,
    purpose: "embed",
    provider: settings.embedding.loader ?? nameHost(settings.embedding.baseUrl),
    model: request.model,
    inputTokens: result.kind === "failure" ? 0 : countTokens(request, result),
    outputTokens: 0,
    durationMs: Math.max(0, Math.round(clock.now() - at)),
    outcome: result.kind === "failure" ? `failed:${result.failure}` : "accepted",
  };
  const checked = result.kind === "failure" ? result : checkVectors(result.vectors, request.texts.length);
  if (checked.kind === "vectors") return { ...checked, spent };
  await recordCall(engine, spent);
  return checked;
}

export const recordCall = ({ writer, emit }: EngineState, spent: SpendRecord): Promise<void> =>
  recordSpend({ recordSpend: writer.recordSpend, emit, part: "vectors" }, spent);

export const failWith = (failure: ModelFailure["failure"], message: string): ModelFailure => ({
  kind: "failure",
  failure,
  message,
});

function countTokens({ texts }: EmbedRequest, { usage }: Extract<EmbedResult, { kind: "vectors" }>): number {
  return usage.inputTokens ?? texts.reduce((sum, text) => sum + estimateTextTokens(text), 0);
}

/** Checks the number and values of the vectors, and normalises them to length one. */
function checkVectors(
  vectors: readonly Float32Array[],
  count: number,
): Omit<Embedded, "spent"> | ModelFailure {
  if (vectors.length !== count)
    return failWith("invalid_response", `${count} texts were sent and ${vectors.length} vectors returned`);
  const good = vectors.map(normalizeVector).filter((vector) => vector !== null);
  return good.length === count
    ? { kind: "vectors", vectors: good }
    : failWith("invalid_response", "a vector contains only zeros, or something that is not a number");
}

/** Never cuts between the halves of a surrogate pair. */
export function cutToChars(text: string, maxChars: number): string {
  if (text.length <= maxChars) return text;
  const unit = text.charCodeAt(maxChars - 1);
  return text.slice(0, unit >= 0xd800 && unit <= 0xdbff ? maxChars - 1 : maxChars);
}

const nameHost = (baseUrl: string | null): string =>
  baseUrl !== null && URL.canParse(baseUrl) ? new URL(baseUrl).hostname : "";

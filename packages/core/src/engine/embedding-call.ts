/** One call to the embedding model: its deadline, its ledger entry, and the checks on the result. Shared by filling and questions. */
import type { EmbedRequest, EmbedResult } from "../model/embed.ts";
import { estimateTextTokens } from "../text/tokens.ts";
import { normalizeVector } from "../model/vector.ts";
import { callModel } from "../summarize/model-call.ts";
import type { ModelFailure } from "../summarize/model-call.ts";
import { recordSpend } from "../summarize/spend.ts";
import type { EngineState } from "./state.ts";

export interface Embedded {
  readonly kind: "vectors";
  /** Of length one. */
  readonly vectors: readonly Float32Array[];
  readonly inputTokens: number;
}

/** Never throws because of the model, only when the database fails. */
export async function callEmbedding(
  { embed, guards, writer, emit, clock, settings }: EngineState,
  request: EmbedRequest,
  limits: { readonly signal: AbortSignal; readonly timeoutMs: number },
): Promise<Embedded | ModelFailure> {
  if (embed === null) return failWith("unavailable", "no model is configured");
  if (!(await guards.allowsTokens()))
    return failWith("denied", "the tokens of the day are used up (spendMaxTokensPerDay)");
  const at = clock.now();
  const result = await callModel(embed, request, limits);
  const inputTokens = result.kind === "failure" ? 0 : countTokens(request, result);
  const spent = {
    at,
    conversationId: null,
    purpose: "embed",
    provider: settings.embedding.loader ?? nameHost(settings.embedding.baseUrl),
    model: request.model,
    inputTokens,
    outputTokens: 0,
    durationMs: Math.max(0, Math.round(clock.now() - at)),
    outcome: result.kind === "failure" ? `failed:${result.failure}` : "accepted",
  };
  await recordSpend({ recordSpend: writer.recordSpend, emit, part: "vectors" }, spent);
  return result.kind === "failure" ? result : checkVectors(result.vectors, request.texts.length, inputTokens);
}

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
  inputTokens: number,
): Embedded | ModelFailure {
  if (vectors.length !== count)
    return failWith("invalid_response", `${count} texts were sent and ${vectors.length} vectors returned`);
  const good = vectors.map(normalizeVector).filter((vector) => vector !== null);
  return good.length === count
    ? { kind: "vectors", vectors: good, inputTokens }
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

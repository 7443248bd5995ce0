/**
 * One call to the model that makes vectors: its deadline, its place in the ledger, and what an answer must be to count. Shared by filling
 * and by questions.
 */
import type { ModelRef } from "../model/complete.ts";
import type { Embed, EmbedRequest, EmbedResult } from "../model/embed.ts";
import { EngineError } from "../model/errors.ts";
import type { Clock, EventSink } from "../model/events.ts";
import type { Settings } from "../model/settings.ts";
import { estimateTextTokens } from "../model/tokens.ts";
import { normalizeVector } from "../model/vector.ts";
import type { Store } from "../store/store.ts";
import { nameCandidate } from "../summarize/candidates.ts";
import { GuardBook } from "../summarize/guards.ts";
import { callModel } from "../summarize/model-call.ts";
import type { ModelFailure } from "../summarize/model-call.ts";

export interface EmbeddingParts {
  readonly store: Store;
  readonly settings: Settings;
  readonly clock: Clock;
  readonly emit: EventSink;
  readonly embed: Embed | null;
  /** First wait after a failure that may pass; the next are twice as long each. */
  readonly retryMs?: number | undefined;
}

export interface Embedded {
  readonly kind: "vectors";
  /** Of length one. */
  readonly vectors: readonly Float32Array[];
  readonly inputTokens: number;
}

export class EmbeddingCalls {
  readonly #parts: EmbeddingParts;
  readonly #guards: GuardBook;

  constructor(parts: EmbeddingParts) {
    this.#parts = parts;
    this.#guards = new GuardBook(parts);
  }

  /** Never throws for what a model does; only a database that fails does. */
  async call(
    request: EmbedRequest,
    limits: { readonly signal: AbortSignal; readonly timeoutMs: number },
  ): Promise<Embedded | ModelFailure> {
    const { embed } = this.#parts;
    if (embed === null) return failWith("unavailable", "no model is configured");
    if (!(await this.#guards.allowsTokens()))
      return failWith("denied", "the tokens of the day are used up (spendMaxTokensPerDay)");
    const started = Date.now();
    const result = await callModel(embed, request, limits);
    const inputTokens = result.kind === "failure" ? 0 : countTokens(request, result);
    const outcome = result.kind === "failure" ? result.failure : "accepted";
    await this.#record(request.model, inputTokens, Date.now() - started, outcome);
    return result.kind === "failure"
      ? result
      : checkVectors(result.vectors, request.texts.length, inputTokens);
  }

  async #record(model: string, inputTokens: number, durationMs: number, outcome: string): Promise<void> {
    const { store, clock, emit, settings } = this.#parts;
    const ref: ModelRef = { provider: nameHost(settings.embedding.baseUrl), model };
    const spent = { purpose: "embed", inputTokens, outputTokens: 0 };
    try {
      await store.recordSpend({
        ...spent,
        ...ref,
        at: clock.now(),
        conversationId: null,
        durationMs,
        outcome,
      });
    } catch (error) {
      // A reader has nowhere to write it; that must not keep a question from its answer.
      if (!(error instanceof EngineError)) throw error;
      const message = `cannot write down what was spent: ${error.message}`;
      emit({ kind: "degraded", part: "vectors", message });
    }
    emit({ kind: "spend", model: nameCandidate(ref), ...spent });
  }
}

export const failWith = (failure: ModelFailure["failure"], message: string): ModelFailure => ({
  kind: "failure",
  failure,
  message,
});

function countTokens({ texts }: EmbedRequest, { usage }: Extract<EmbedResult, { kind: "vectors" }>): number {
  return usage.inputTokens ?? texts.reduce((sum, text) => sum + estimateTextTokens(text), 0);
}

/** Number and values of an answer; on the way, length one. */
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

/** Does not end between the halves of a character. */
export function cutToChars(text: string, maxChars: number): string {
  if (text.length <= maxChars) return text;
  const unit = text.charCodeAt(maxChars - 1);
  return text.slice(0, unit >= 0xd800 && unit <= 0xdbff ? maxChars - 1 : maxChars);
}

const nameHost = (baseUrl: string | null): string =>
  baseUrl !== null && URL.canParse(baseUrl) ? new URL(baseUrl).hostname : "";

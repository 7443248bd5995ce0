/**
 * What folding asks for: one summary of one run. `compact` is handed a function of this type and knows nothing of models, prompts or
 * guards. It always ends in a text, because the last level needs no model; only an abort ends without one.
 */
import type { RunItem, SpendRecord } from "../store/folding.ts";
import type { BriefTexts } from "./prompts.ts";

export interface SummarizeRequest {
  readonly conversationId: number;
  readonly purpose: "leaf" | "condensed" | "reserve";
  /** Depth of the summary that is made. */
  readonly depth: number;
  /** Oldest first; hidden items carry no text and are not read. */
  readonly run: readonly RunItem[];
  /** What a summary of the run was made from, oldest first; absent where the summaries of the run must be taken as they are. */
  readonly readSources?: ((summaryId: string) => Promise<readonly RunItem[]>) | undefined;
  /** The summary before the run, for continuity. */
  readonly previous: string | null;
  readonly targetTokens: number;
  readonly sourceTokens: number;
  /** Asked for with this call; stands in for the setting, also when empty. */
  readonly customInstructions?: string;
  /** Briefs of the operator's own, in the place of ours. */
  readonly briefs?: BriefTexts;
  /**
   * Stores an answer that was accepted, with what it cost, in one transaction. Called before anything else is done with the answer, so that whoever
   * goes on after a crash does not ask for it again. Without it only the cost is recorded.
   */
  readonly keep?: ((result: SummarizeResult, spent: SpendRecord) => Promise<unknown>) | undefined;
  readonly signal: AbortSignal;
}

export interface SummarizeResult {
  readonly content: string;
  readonly tokens: number;
  /** `provider/model`, or `extractive`. */
  readonly model: string;
  readonly level: "normal" | "aggressive" | "extractive";
}

export type Summarize = (request: SummarizeRequest) => Promise<SummarizeResult>;

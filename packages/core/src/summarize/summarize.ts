/**
 * What folding requests: one summary of one run. `compact` receives a function of this type and knows nothing about models, prompts or
 * guards. It always returns a text, because the last level needs no model; only an abort ends without one.
 */
import type { RunItem, SpendRecord } from "../store/folding.ts";
import type { BriefTexts } from "./prompts.ts";

export interface SummarizeRequest {
  readonly conversationId: number;
  readonly purpose: "leaf" | "condensed" | "reserve";
  /** Depth of the summary to make. */
  readonly depth: number;
  /** Oldest first; hidden items have no text and are not read. */
  readonly run: readonly RunItem[];
  /** The sources of a summary in the run, oldest first; absent if the summaries of the run must be used as they are. */
  readonly readSources?: ((summaryId: string) => Promise<readonly RunItem[]>) | undefined;
  /** The summary before the run, for continuity. */
  readonly previous: string | null;
  /** Nothing that is shown comes before the run: its first request is the goal. */
  readonly isStart: boolean;
  readonly targetTokens: number;
  readonly sourceTokens: number;
  /** For this call only; replaces the setting, even when empty. */
  readonly customInstructions?: string;
  /** The operator's own briefs, instead of the built-in ones. */
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

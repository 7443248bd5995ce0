/**
 * Summaries that say less than they should: written without a model because none was available, truncated by another program, empty, full
 * of a model's reasoning, no shorter than what they represent, or older than what is below them.
 */
import type { Settings } from "../../settings/settings.ts";
import { estimateTextTokens } from "../../text/tokens.ts";
import type { DoubtfulSummary } from "../../store/repair.ts";
import { listCandidates } from "../../summarize/candidates.ts";
import { FALLBACK_MARKER } from "../../summarize/extractive.ts";
import { stripReasoning } from "../../summarize/gate.ts";
import type { CheckInput, Finding } from "../finding.ts";

const PAGE = 256;
/** A marker counts at the beginning or near the end; in the middle it is something that people talked about. */
const TAIL_CHARS = 80;
const TRUNCATED = /\[Truncated (?:from [\d,.]+ tokens|for context management)[^\]]*\]/;
const TRUNCATED_FIRST = new RegExp(`^${TRUNCATED.source}`);
/** The cost of a prompt besides its sources. */
const PROMPT_TOKENS = 700;

export async function checkSummaries(input: CheckInput): Promise<Finding[]> {
  const findings: Finding[] = [];
  const extractive = new Map<number, Tally>();
  const hasModel = listCandidates(input.settings).some((candidate) => candidate !== null);
  for await (const summary of walkPublished(input)) {
    const damage = findDamage(summary);
    if (damage !== null) findings.push(toFinding(summary, damage, input));
    else if (hasModel && summary.level === "extractive") count(extractive, summary, input);
  }
  return [...findings, ...[...extractive].map(([id, tally]) => describeExtractive(id, tally))];
}

async function* walkPublished({ engine }: CheckInput): AsyncGenerator<DoubtfulSummary> {
  for (let after = ""; ;) {
    const page = await engine.listPublished({ after, limit: PAGE });
    yield* page;
    const last = page.at(-1);
    if (last === undefined || page.length < PAGE) return;
    after = last.summaryId;
  }
}

export type Damage = "stand_in" | "truncated" | "empty" | "reasoning" | "not_smaller" | "stale";

/** The worst thing about a summary, or null. */
export function findDamage(
  summary: Pick<DoubtfulSummary, "content" | "model" | "tokens" | "sourceTokens" | "isStale">,
): Damage | null {
  const text = summary.content.trim();
  if (text === "") return "empty";
  const tail = text.slice(-TAIL_CHARS);
  if (
    text.startsWith(FALLBACK_MARKER) ||
    tail.includes(FALLBACK_MARKER) ||
    summary.model === "emergency-fallback"
  )
    return "stand_in";
  if (TRUNCATED.test(tail) || TRUNCATED_FIRST.test(text)) return "truncated";
  if (stripReasoning(text) !== text) return "reasoning";
  if (summary.isStale) return "stale";
  if (summary.sourceTokens > 0 && summary.tokens >= summary.sourceTokens) return "not_smaller";
  return null;
}

const SAYS: Readonly<Record<Damage, string>> = {
  stand_in: "was written without a model after a failure",
  truncated: "was cut off instead of written",
  empty: "is empty",
  reasoning: "holds a model's reasoning",
  not_smaller: "is not shorter than its sources",
  stale: "is older than its sources",
};

/** What is wrong with it, as words to follow its name. */
export const describeDamage = (damage: Damage): string => SAYS[damage];

function toFinding(summary: DoubtfulSummary, damage: Damage, input: CheckInput): Finding {
  const { summaryId, conversationId } = summary;
  return {
    code: `summary_${damage}`,
    severity:
      damage === "empty" || damage === "reasoning" ? "error" : damage === "not_smaller" ? "info" : "warning",
    id: summaryId,
    message: `${summaryId} of conversation ${conversationId} ${describeDamage(damage)}`,
    step: { kind: "repair", conversationId, summaryId },
    cost: estimateFor(summary, input),
  };
}

/** The approximate cost of one call for a summary of this size. `tokens` are those of its present text. */
export function estimateCost(
  { depth, sourceTokens, tokens }: { depth: number; sourceTokens: number; tokens: number },
  settings: Pick<Settings, "leafTargetTokens" | "condensedTargetTokens">,
): Required<Finding>["cost"] {
  const target = depth === 0 ? settings.leafTargetTokens : settings.condensedTargetTokens;
  return {
    inputTokens: sourceTokens + PROMPT_TOKENS,
    outputTokens: Math.min(target, Math.max(tokens, Math.ceil(sourceTokens / 3))),
  };
}

function estimateFor(summary: DoubtfulSummary, { settings }: CheckInput): Required<Finding>["cost"] {
  const { depth, sourceTokens, content } = summary;
  return estimateCost({ depth, sourceTokens, tokens: estimateTextTokens(content) }, settings);
}

interface Tally {
  summaries: number;
  inputTokens: number;
  outputTokens: number;
}

function count(tallies: Map<number, Tally>, summary: DoubtfulSummary, input: CheckInput): void {
  const tally = tallies.get(summary.conversationId) ?? { summaries: 0, inputTokens: 0, outputTokens: 0 };
  const cost = estimateFor(summary, input);
  tally.summaries += 1;
  tally.inputTokens += cost.inputTokens;
  tally.outputTokens += cost.outputTokens;
  tallies.set(summary.conversationId, tally);
}

function describeExtractive(
  conversationId: number,
  { summaries, inputTokens, outputTokens }: Tally,
): Finding {
  return {
    code: "summary_extractive",
    severity: "info",
    id: `conversation ${conversationId}`,
    message: `${summaries} of the summaries of conversation ${conversationId} were written without the model that the settings name`,
    step: { kind: "rewrite_extractive", conversationId },
    cost: { inputTokens, outputTokens },
  };
}

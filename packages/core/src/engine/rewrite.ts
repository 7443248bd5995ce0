/** Regenerates published summaries from their sources, and dissolves them into what they represent. */
import { measureSummary } from "../assemble/measure-summary.ts";
import { condensedTarget } from "../compact/policy.ts";
import { countReplaced, startsConversation } from "../compact/steps.ts";
import { EngineError } from "../model/errors.ts";
import { makeSummaryId } from "../model/ids.ts";
import { nameSource } from "../store/folding.ts";
import type { RunItem, SpendRecord, SummaryNode, SummaryText } from "../store/folding.ts";
import { keepTrying } from "../store/keep-trying.ts";
import type { DissolveResult } from "../store/repair.ts";
import { FALLBACK_MARKER } from "../summarize/extractive.ts";
import type { BriefTexts } from "../summarize/prompts.ts";
import type { SummarizeRequest, SummarizeResult } from "../summarize/summarize.ts";
import type { EngineState } from "./state.ts";

export interface RewriteRequest {
  readonly summaryId: string;
  /** Only makes the new text; the only write is to the spending ledger. */
  readonly dryRun: boolean;
  /** Writes it without a model. */
  readonly isExtractive?: boolean;
  /** Accepts only a text that a model wrote, or that was requested without one: not a fallback after a failure. */
  readonly mustHeal?: boolean;
  readonly customInstructions?: string;
  /** Custom briefs instead of the built-in ones. */
  readonly briefs?: BriefTexts;
  /** A text from an earlier dry run that was reviewed: it is used as it is, and nothing is regenerated. */
  readonly text?: ReviewedText;
  readonly signal?: AbortSignal;
}

/** The result of a dry run of a rewrite, passed back. */
export interface ReviewedText {
  readonly content: string;
  readonly model: string;
  readonly level: SummaryText["level"];
  /** What it was made from. If that has changed since, the text is refused. */
  readonly sourceKeys: readonly string[];
}

export interface RewriteResult {
  readonly oldId: string;
  /** The summary that replaced it; null for a dry run, if the text did not change, or if it would not have healed. */
  readonly newId: string | null;
  readonly before: { readonly content: string; readonly tokens: number; readonly model: string };
  readonly after: {
    readonly content: string;
    readonly tokens: number;
    readonly model: string;
    readonly level: SummaryText["level"];
  };
  /** No model wrote an acceptable text, and `after` is a fallback: the old text is better, whatever it is. */
  readonly isStandIn: boolean;
  /** What the new text was made from, by the archive's names. */
  readonly sourceKeys: readonly string[];
}

export interface DissolveRequest {
  readonly summaryId: string;
  readonly dryRun: boolean;
}

export async function rewriteSummary(engine: EngineState, request: RewriteRequest): Promise<RewriteResult> {
  const { store, clock } = engine;
  const node = await needPublished(engine, request.summaryId);
  const run = await store.readSources(node.summaryId);
  const sourceKeys = run.map(nameSource);
  if (request.text !== undefined && request.text.sourceKeys.join() !== sourceKeys.join())
    throw changedMeanwhile(node.summaryId);
  const summaryId = makeSummaryId((size) => clock.random(size));
  /** Null: the summary changed meanwhile. The cost is stored all the same, so that this must not be tried again. */
  const put = async (text: NewText, spent: SpendRecord | null): Promise<RewriteResult | null> => {
    const { content, model, level } = text;
    const tokens = measure(engine, content, node.depth, run);
    const answer = {
      oldId: node.summaryId,
      before: { content: node.content, tokens: node.tokens, model: node.model },
      after: { content, tokens, model, level },
      isStandIn: content.startsWith(FALLBACK_MARKER),
      sourceKeys,
    };
    // The same text over changed sources is new: it rests on them as they are now.
    const isNoBetter =
      (content === node.content && !node.isStale) || (request.mustHeal === true && answer.isStandIn);
    if (request.dryRun || isNoBetter) {
      if (spent !== null) await store.recordSpend(spent);
      return { ...answer, newId: null };
    }
    const summary = { summaryId, content, tokens, model, level, spent };
    const outcome = await store.replaceSummary({ oldId: node.summaryId, summary, sourceKeys }, clock.now());
    return outcome.kind === "stale" ? null : { ...answer, newId: outcome.summaryId };
  };
  const need = (result: RewriteResult | null): RewriteResult => {
    if (result === null) throw changedMeanwhile(node.summaryId);
    return result;
  };
  if (request.text !== undefined) return need(await put(request.text, null));
  const signal = request.signal ?? engine.closing.signal;
  const kept: (RewriteResult | null)[] = [];
  const keep = request.dryRun
    ? undefined
    : async (text: NewText, spent: SpendRecord): Promise<unknown> =>
        kept.push(await keepTrying(() => put(text, spent), signal));
  const readSources = (id: string): Promise<readonly RunItem[]> => store.readSources(id);
  const text = await writeText(engine, node, run, { ...request, keep }, readSources);
  const [result = await put(text, null)] = kept;
  return need(result);
}

type NewText = Pick<SummaryText, "content" | "model" | "level">;

async function needPublished(engine: EngineState, summaryId: string): Promise<SummaryNode> {
  const node = await engine.store.readSummary(summaryId);
  if (node?.state === "cover") return node;
  const why = node === null ? "there is no such summary" : `it is ${node.state}, no context uses it`;
  throw new EngineError("not_found", `cannot rewrite ${summaryId}: ${why}`, {
    step: { kind: "list", what: "summaries" },
  });
}

/** Without `readSources`, only the run itself is used: messages that are being forgotten are still stored. */
export async function writeText(
  engine: EngineState,
  node: SummaryNode,
  run: readonly RunItem[],
  request: RewriteRequest & Pick<SummarizeRequest, "keep">,
  readSources?: (summaryId: string) => Promise<readonly RunItem[]>,
): Promise<SummarizeResult> {
  const { settings, summarize, extract } = engine;
  const { depth } = node;
  const inputTokens = sumShown(run);
  const { customInstructions, briefs, keep } = request;
  return (request.isExtractive ? extract : summarize)({
    conversationId: node.conversationId,
    purpose: node.kind,
    depth,
    run,
    readSources,
    previous: null,
    isStart: await startsConversation(engine.store, node.conversationId, run),
    targetTokens: depth === 0 ? settings.leafTargetTokens : condensedTarget(settings, inputTokens),
    sourceTokens: countReplaced(
      (summary) => measureSummary(summary, settings.timezone),
      { depth, inputTokens },
      run,
    ),
    signal: request.signal ?? new AbortController().signal,
    customInstructions,
    briefs,
    keep,
  });
}

export async function dissolveSummary(
  { store, clock }: EngineState,
  request: DissolveRequest,
): Promise<DissolveResult | null> {
  return store.dissolveSummary({ ...request, now: clock.now() });
}

export function measure(
  engine: EngineState,
  content: string,
  depth: number,
  run: readonly RunItem[],
): number {
  return measureSummary({ content, depth, run }, engine.settings.timezone);
}

const changedMeanwhile = (summaryId: string): EngineError =>
  new EngineError("database_busy", `cannot rewrite ${summaryId}: it changed meanwhile`, {
    hint: "run it again",
  });

const sumShown = (run: readonly RunItem[]): number =>
  run.reduce((sum, item) => sum + (item.hidden === 0 ? item.tokens : 0), 0);

/**
 * Regenerates summaries: `repair` those that are damaged, `rewrite` those that are named. The finest come first, so that a better text
 * below is used for the one above it. The old text is kept, retired, and the report says which id replaced which.
 */
import type { RewriteResult } from "../engine/rewrite.ts";
import type { Engine } from "../engine/engine.ts";
import { EngineError } from "../model/errors.ts";
import type { DoubtfulSummary } from "../store/repair.ts";
import type { BriefTexts } from "../summarize/prompts.ts";
import { findDamage } from "./checks/summaries.ts";
import type { Damage } from "./checks/summaries.ts";

/** Selects published summaries of a conversation. */
export interface RewriteSelection {
  readonly conversationId: number;
  readonly summaryId?: string;
  /** With a summary: everything below it, too. */
  readonly isSubtree?: boolean;
  readonly depth?: number;
  /** Only damaged ones. */
  readonly isDamaged?: boolean;
  /** Only those written without a model. */
  readonly isExtractive?: boolean;
}

export interface RewriteTarget {
  readonly summaryId: string;
  readonly depth: number;
  readonly tokens: number;
  readonly sourceTokens: number;
  readonly damage: Damage | null;
}

const PAGE = 256;

/** The selected summaries, the finest first and the oldest first among them. */
export async function planRewrite(engine: Engine, selection: RewriteSelection): Promise<RewriteTarget[]> {
  const { conversationId, summaryId } = selection;
  const wanted = summaryId === undefined ? null : await collect(engine, selection, summaryId);
  const found: (RewriteTarget & { order: number })[] = [];
  for (let after = ""; ;) {
    const page = await engine.listPublished({ after, limit: PAGE, conversationId });
    for (const summary of page) {
      if (wanted !== null && !wanted.has(summary.summaryId)) continue;
      if (isMeant(summary, selection)) found.push(await toTarget(engine, summary));
    }
    const last = page.at(-1);
    if (last === undefined || page.length < PAGE) break;
    after = last.summaryId;
  }
  found.sort((a, b) => a.depth - b.depth || a.order - b.order);
  return found.map(({ order: _order, ...target }) => target);
}

function isMeant(summary: DoubtfulSummary, { depth, isDamaged, isExtractive }: RewriteSelection): boolean {
  if (depth !== undefined && summary.depth !== depth) return false;
  if (isDamaged === true && findDamage(summary) === null) return false;
  return isExtractive !== true || summary.level === "extractive";
}

async function toTarget(
  engine: Engine,
  summary: DoubtfulSummary,
): Promise<RewriteTarget & { order: number }> {
  const { summaryId, depth, tokens, sourceTokens } = summary;
  const node = await engine.readSummary({ summaryId });
  return {
    summaryId,
    depth,
    tokens,
    sourceTokens,
    damage: findDamage(summary),
    order: node?.startPosition ?? 0,
  };
}

/** A summary and, for a subtree, everything below it. */
async function collect(
  engine: Engine,
  { conversationId, isSubtree }: RewriteSelection,
  summaryId: string,
): Promise<Set<string>> {
  const node = await engine.readSummary({ summaryId });
  if (node === null || node.conversationId !== conversationId || node.state !== "cover") {
    throw new EngineError(
      "not_found",
      `cannot rewrite ${summaryId}: it is not a published summary of conversation ${conversationId}`,
      {
        step: { kind: "list", what: "summaries" },
      },
    );
  }
  const found = new Set([summaryId]);
  const open = isSubtree === true ? [...node.sourceIds] : [];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    found.add(next);
    open.push(...((await engine.readSummary({ summaryId: next }))?.sourceIds ?? []));
  }
  return found;
}

export interface RewriteOptions {
  readonly engine: Engine;
  readonly targets: readonly RewriteTarget[];
  /** Only makes the texts. Models are still called. */
  readonly dryRun: boolean;
  readonly isExtractive?: boolean;
  /** Keeps the old text if no better one was written. */
  readonly mustHeal?: boolean;
  readonly customInstructions?: string;
  readonly briefs?: BriefTexts;
  readonly signal?: AbortSignal;
}

/** One after the other, each stored as soon as it is written; if this is interrupted, those stay. */
export async function* rewriteAll(options: RewriteOptions): AsyncGenerator<RewriteResult> {
  const { engine, targets, signal, ...request } = options;
  for (const { summaryId } of targets) {
    if (signal?.aborted) return;
    yield await engine.rewriteSummary({ ...request, summaryId, signal });
  }
}

/**
 * Folding by the extractive summariser alone, without archive and planner: how good a history is when folded to exactly a given number of
 * characters, so that every baseline has the same room.
 */
import { speakerOf, summarizeExtractively } from "@lossless/core/testing";
import type { SourceLine } from "@lossless/core/testing";
import { sum } from "./retention-figures.ts";

const LEAF_CHUNK_TOKENS = 20_000;
const LEAF_TARGET_TOKENS = 2_400;
/** Share of the folded history for a separate summary of the newest chunk, as in the rules for a tight budget. */
const NEWEST_SHARE = 0.4;

const estimate = (text: string): number => Math.ceil(text.length / 4);

/** Folds a history into at most `chars` characters in the simple way: leaves, then one condensing pass over the older ones. */
export function foldHistory(sources: readonly SourceLine[], chars: number): string {
  const target = Math.floor(chars / 4);
  const chunks = cutChunks(sources);
  const total = sum(chunks.map((chunk) => chunk.tokens));
  const leaves = chunks.map((chunk) => fold(chunk.sources, 0, leafTarget(chunk.tokens)));
  if (sum(leaves.map((leaf) => leaf.length + 2)) <= chars || chunks.length === 1) {
    return chunks
      .map((chunk) => fold(chunk.sources, 0, Math.floor((target * chunk.tokens) / total) - 1))
      .join("\n\n");
  }
  const newest = fold(chunks.at(-1)?.sources ?? [], 0, Math.floor(target * NEWEST_SHARE));
  const older = leaves.slice(0, -1).map((text, i) => asSummary(text, chunks[i]?.sources[0]?.at ?? null, i));
  return `${fold(older, 1, target - estimate(newest) - 1)}\n\n${newest}`;
}

export function fold(sources: readonly SourceLine[], depth: number, targetTokens: number): string {
  return summarizeExtractively({ sources, depth, targetTokens, estimate, timeZone: "UTC" }).text;
}

export const leafTarget = (tokens: number): number =>
  Math.min(LEAF_TARGET_TOKENS, Math.max(192, Math.floor(tokens * 0.35)));

export const asSummary = (text: string, at: number | null, i: number): SourceLine => ({
  id: `sum_${i}`,
  kind: "summary",
  role: "summary",
  at,
  text,
});

interface Chunk {
  readonly sources: SourceLine[];
  tokens: number;
}

/** Chunks of about equal size, none much above the limit. */
export function cutChunks(sources: readonly SourceLine[]): Chunk[] {
  const total = sum(sources.map((source) => estimate(source.text)));
  const size = total / Math.max(1, Math.ceil(total / LEAF_CHUNK_TOKENS));
  const chunks: Chunk[] = [{ sources: [], tokens: 0 }];
  for (const source of sources) {
    const tokens = estimate(source.text);
    let open = chunks.at(-1) as Chunk;
    if (open.sources.length > 0 && open.tokens + tokens / 2 > size)
      chunks.push((open = { sources: [], tokens: 0 }));
    open.sources.push(source);
    open.tokens += tokens;
  }
  return chunks;
}

/** A conversation as plain text: the source of the last turns and of truncation. */
export const asText = (sources: readonly SourceLine[]): string =>
  sources.map((source) => `${speakerOf(source)}: ${source.text}`).join("\n");

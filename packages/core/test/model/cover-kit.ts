/**
 * Conversations made of cover items alone, for tests of the pure parts: messages are appended, runs are folded with a
 * summariser that only counts, and what each item stands for is remembered, so that a test can prove the cover whole.
 */
import { fc } from "@lossless/testkit/properties.ts";

import { isHiddenByBoundary, type Boundary } from "../../src/model/boundaries.ts";
import type { CoverItem } from "../../src/model/cover.ts";
import { HIDDEN, POSITION_STEP } from "../../src/model/message.ts";
import type { ReserveSummary } from "../../src/model/reserve.ts";
import type { FoldStep } from "../../src/compact/plan.ts";
import type { ReserveStep } from "../../src/compact/plan-reserve.ts";
import type { CompactionPolicy } from "../../src/compact/policy.ts";

export const POLICY: CompactionPolicy = {
  freshTailCount: 64,
  contextThreshold: 0.75,
  leafMinFanout: 8,
  condensedMinFanout: 4,
  condensedMinFanoutHard: 2,
  sweepMaxDepth: 1,
  leafChunkTokens: 20_000,
  leafTargetTokens: 2_400,
  condensedTargetTokens: 2_000,
  maxSweepIterations: 12,
};

export interface ItemSpec {
  role?: string;
  tokens?: number;
  calls?: readonly string[];
  results?: readonly string[];
  hidden?: number;
}

let made = 0;

/** A message item; its number gives seq, id, position and time. */
export function message(n: number, spec: ItemSpec = {}): CoverItem {
  return {
    startPosition: n * POSITION_STEP,
    endPosition: n * POSITION_STEP,
    seq: n,
    messageId: n,
    summaryId: null,
    tokens: spec.tokens ?? 100,
    messages: spec.hidden ? 0 : 1,
    depth: -1,
    hidden: spec.hidden ?? 0,
    role: spec.role ?? "assistant",
    createdAt: 1_700_000_000_000 + n * 1000,
    toolCalls: spec.calls ?? [],
    toolResults: spec.results ?? [],
  };
}

/** A summary item over the message numbers `from` to `to`. */
export function summary(
  from: number,
  to: number,
  spec: { depth?: number; tokens?: number; id?: string } = {},
): CoverItem {
  return {
    ...message(from),
    endPosition: to * POSITION_STEP,
    messageId: null,
    summaryId: spec.id ?? `sum_${from}_${to}_${spec.depth ?? 0}`,
    tokens: spec.tokens ?? 200,
    messages: to - from + 1,
    depth: spec.depth ?? 0,
    role: null,
    createdAt: 1_700_000_000_000 + to * 1000,
  };
}

export const messages = (count: number, spec: ItemSpec = {}, from = 1): CoverItem[] =>
  Array.from({ length: count }, (_, index) => message(from + index, spec));

/** A conversation that grows and is folded. */
export class FakeConversation {
  items: CoverItem[] = [];
  boundaries: Boundary[] = [];
  reserve: ReserveSummary[] = [];
  /** Message ids under each summary, hidden ones included. */
  readonly under = new Map<string, readonly number[]>();
  readonly hidden = new Set<number>();
  /** What each summary was made from. */
  readonly sources = new Map<string, readonly CoverItem[]>();
  next = 1;

  append(spec: ItemSpec): CoverItem {
    const item = message(this.next++, spec);
    if (item.hidden !== 0) this.hidden.add(item.seq);
    this.items.push(item);
    return item;
  }

  addBoundary(retainDepth: number): void {
    this.boundaries.push({ position: this.next * POSITION_STEP, retainDepth });
  }

  idsUnder(item: CoverItem): readonly number[] {
    return item.messageId === null ? (this.under.get(item.summaryId ?? "") ?? []) : [item.messageId];
  }

  /** What a summary was made from, unless a boundary hides some of it. */
  openable(summaryId: string): readonly CoverItem[] {
    const sources = this.sources.get(summaryId) ?? [];
    return sources.some((item) => isHiddenByBoundary(item, this.boundaries)) ? [] : sources;
  }

  /** Carries out a step with a summary of the given size. */
  fold(step: FoldStep, tokens = Math.min(step.targetTokens, step.inputTokens - 1)): CoverItem {
    const run = this.items.slice(step.startIndex, step.endIndex);
    const stored = this.reserve.find(({ summaryId }) => summaryId === step.publishId);
    const summaryId = stored?.summaryId ?? `sum_${(++made).toString(16).padStart(16, "0")}`;
    const folded: CoverItem = {
      ...message(0),
      startPosition: step.startPosition,
      endPosition: step.endPosition,
      seq: run.at(-1)?.seq ?? 0,
      messageId: null,
      summaryId,
      tokens: stored?.tokens ?? tokens,
      messages: run.reduce((sum, item) => sum + (item.hidden === 0 ? item.messages : 0), 0),
      depth: step.depth,
      hidden: 0,
      role: null,
      createdAt: run.at(-1)?.createdAt ?? 0,
    };
    this.under.set(
      summaryId,
      run.flatMap((item) => this.idsUnder(item)),
    );
    this.sources.set(summaryId, run);
    this.items.splice(step.startIndex, run.length, folded);
    this.reserve = this.reserve.filter((known) => known.summaryId !== summaryId);
    return folded;
  }

  /** Stores a leaf ahead of its fold. */
  prepare(step: FoldStep): void {
    this.store({ ...step, isRoot: false });
  }

  addReserve(step: ReserveStep): void {
    this.store(step);
  }

  private store(
    step: Pick<
      ReserveStep,
      "startPosition" | "endPosition" | "depth" | "messages" | "targetTokens" | "isRoot"
    >,
  ) {
    const summaryId = `sum_${(++made).toString(16).padStart(16, "0")}`;
    this.reserve.push({
      summaryId,
      startPosition: step.startPosition,
      endPosition: step.endPosition,
      messages: step.messages,
      tokens: step.targetTokens,
      depth: step.depth,
      isRoot: step.isRoot,
      madeAtSeq: this.next - 1,
    });
    const { startPosition, endPosition } = step;
    const isUnder = (item: CoverItem) =>
      item.startPosition >= startPosition && item.endPosition <= endPosition;
    this.sources.set(summaryId, this.items.filter(isUnder));
    this.under.set(
      summaryId,
      this.items.filter(isUnder).flatMap((item) => this.idsUnder(item)),
    );
  }
}

export type Turn = readonly ItemSpec[];

const tokens = fc.oneof(
  { weight: 6, arbitrary: fc.integer({ min: 5, max: 600 }) },
  { weight: 2, arbitrary: fc.integer({ min: 600, max: 6_000 }) },
  { weight: 1, arbitrary: fc.integer({ min: 6_000, max: 40_000 }) },
);

/** Ids come from a small pool, so that they repeat. */
const callId = fc.constantFrom("a", "b", "c", "call_1", "call_2");

/** One round of tools: parallel calls, with results that follow at once, come late, come twice or never come. */
const toolRound: fc.Arbitrary<ItemSpec[]> = fc
  .record({
    ids: fc.uniqueArray(callId, { minLength: 1, maxLength: 3 }),
    fate: fc.constantFrom("all", "all", "all", "none", "first", "twice", "late", "joined"),
    size: tokens,
    between: tokens,
  })
  .map(({ ids, fate, size, between }) => {
    const call: ItemSpec = { role: "assistant", calls: ids, tokens: 60 };
    const result = (id: string): ItemSpec => ({ role: "tool", results: [id], tokens: size });
    if (fate === "none") return [call];
    if (fate === "first") return [call, ...ids.slice(0, 1).map(result)];
    if (fate === "twice") return [call, ...ids.map(result), ...ids.slice(0, 1).map(result)];
    if (fate === "late") return [call, { role: "user", tokens: between }, ...ids.map(result)];
    if (fate === "joined") return [call, { role: "user", results: ids, tokens: size }];
    return [call, ...ids.map(result)];
  });

const hiddenRow: fc.Arbitrary<ItemSpec> = fc
  .constantFrom(HIDDEN.heartbeat, HIDDEN.meta, HIDDEN.branch)
  .map((hidden) => ({ role: "other", tokens: 20, hidden }));

export const turn: fc.Arbitrary<Turn> = fc
  .record({
    user: tokens,
    rounds: fc.array(toolRound, { maxLength: 4 }),
    reply: fc.option(tokens, { freq: 4 }),
    orphan: fc.option(callId, { freq: 12 }),
    hidden: fc.array(hiddenRow, { maxLength: 2 }),
  })
  .map(({ user, rounds, reply, orphan, hidden }) => [
    { role: "user", tokens: user },
    ...hidden.slice(0, 1),
    ...rounds.flat(),
    ...(orphan === null ? [] : [{ role: "tool", results: [orphan], tokens: 50 }]),
    ...hidden.slice(1),
    ...(reply === null ? [] : [{ role: "assistant", tokens: reply }]),
  ]);

/** Helpers of the store contract: a session, events as `ingest` passes them, and folds. */
import type { SessionRef } from "@lossless/core";
import { nameSource } from "@lossless/core/ports";
import type {
  AppendBatch,
  AppendEvent,
  FoldRun,
  PublishResult,
  RecallScope,
  RunItem,
  SpendRecord,
  Store,
  StoreSummary,
  SummaryReplacement,
  SummaryText,
} from "@lossless/core/ports";
import { prepareMessage } from "@lossless/core/testing";
import { makeClock } from "../random.ts";

export const session: SessionRef = { key: "agent:main:test", id: "session-1", owner: "main" };
export const clock = makeClock(7);

/** An event as `ingest` would pass it to the store. */
export function makeEvent(
  eventId: string,
  message: unknown,
  extra: Partial<AppendEvent> & { hidden?: number } = {},
): AppendEvent {
  const arrival = Buffer.from(JSON.stringify(message));
  return {
    eventId,
    kind: "entry",
    arrival,
    position: null,
    prepare: () =>
      prepareMessage(arrival, {
        hidden: extra.hidden ?? 0,
        createdAt: 1_700_000_000_000,
        largeFileThresholdTokens: 25_000,
        random: clock.random,
      }),
    ...extra,
  };
}

export const say = (text: string, role = "user"): unknown => ({ role, content: text });
export const batchOf = (events: AppendEvent[], extra: Partial<AppendBatch> = {}): AppendBatch => ({
  session,
  events,
  now: clock.now(),
  ...extra,
});

export async function allMessages(store: Store, conversationId: number) {
  return (
    await store.listMessages({
      conversationId,
      after: null,
      limit: 10_000,
      order: "position",
      direction: "oldest",
    })
  ).items;
}

/** The messages of a scope that contain an index term. */
export async function findWord(store: Store, word: string, scope: RecallScope): Promise<readonly number[]> {
  const clues = [{ kind: "phrase", words: [word] } as const];
  const { listings } = await store.findClues({ kind: "message", clues, scope, limit: 10 });
  return listings[0]?.ids ?? [];
}

/** Runs a test on a new store; afterwards that store, and every other one it opened, must prove. */
export type WithStore = (work: (store: Store, scene: Scene) => Promise<void>) => Promise<void>;

export interface Scene {
  readonly folder: string;
  /** Another store of the same kind, in its own place. */
  readonly openAnother: () => Promise<Store>;
}

/** Stores texts as messages `e0`, `e1`, … and returns their ids. */
export async function tell(
  store: Store,
  texts: readonly string[],
): Promise<{ conversationId: number; ids: number[] }> {
  const events = texts.map((text, i) => makeEvent(`e${i}`, say(text)));
  const { conversationId, results } = await store.append(batchOf(events));
  return { conversationId, ids: results.map(({ messageId }) => messageId) };
}

export const textOf = (n: number, content = `summary ${n}`): SummaryText => ({
  summaryId: `sum_${n.toString(16).padStart(16, "0")}`,
  content,
  tokens: 5,
  model: "test",
  level: "normal",
});

/** A call of a model. */
export const SPENT: SpendRecord = {
  at: 1,
  conversationId: null,
  purpose: "leaf",
  provider: "p",
  model: "m",
  inputTokens: 100,
  outputTokens: 10,
  durationMs: 1,
  outcome: "accepted",
};

/** The items of the cover from one to another, counted from the oldest. */
export async function readItems(
  store: Store,
  conversationId: number,
  from: number,
  to: number,
): Promise<FoldRun> {
  const { items } = await store.readCoverHead({ conversationId, maxMessageTokens: 100_000 });
  const run = await store.readRun(conversationId, items.slice(from, to));
  return run.map(({ summary, ...item }) => ({ ...item, summaryId: summary?.summaryId ?? null }));
}

/** Folds the first items of the cover into a summary. */
export async function fold(
  store: Store,
  conversationId: number,
  { count, text, state = "cover" }: { count: number; text: SummaryText; state?: StoreSummary["state"] },
): Promise<PublishResult> {
  const run = await readItems(store, conversationId, 0, count);
  return store.storeSummary({ conversationId, run, summary: text, state, now: clock.now() });
}

/** Replaces the text of a summary by one made from these sources. */
export const replace = (
  oldId: string,
  summary: SummaryText,
  sources: readonly RunItem[],
): SummaryReplacement => ({ oldId, summary, sourceKeys: sources.map(nameSource) });

/** The content of the context, oldest first: ids of summaries and messages. */
export async function readContext(store: Store, conversationId: number): Promise<(string | number | null)[]> {
  const cover = await store.readCoverTail({ conversationId, maxTokens: 100_000, maxMessages: 100 });
  return (cover?.items ?? []).map((item) => item.summaryId ?? item.messageId).toReversed();
}

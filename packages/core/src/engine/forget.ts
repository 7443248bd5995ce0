/**
 * Erases messages and everything derived from them: first remakes the summaries over them, then wipes the pages that the database freed.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { searchText, viewMessage } from "../message/normalize.ts";
import { EngineError } from "../model/errors.ts";
import { makeSummaryId } from "../model/ids.ts";
import { HIDDEN } from "../model/message.ts";
import type { ForgetPlan } from "../store/repair.ts";
import { nameSource } from "../store/folding.ts";
import type { RunItem, SummaryNode, SummaryReplacement } from "../store/folding.ts";
import type { SummarizeResult } from "../summarize/summarize.ts";
import { reindex } from "./archive.ts";
import { measure, writeText } from "./rewrite.ts";
import type { EngineState } from "./state.ts";

export interface PlanForgetRequest {
  readonly messageIds: readonly number[];
}

export interface ForgetRequest extends PlanForgetRequest {
  readonly reason: string;
}

export interface ForgetResult {
  readonly plan: ForgetPlan;
  /** Old and new ids of the published summaries that were remade. */
  readonly remade: readonly { readonly oldId: string; readonly newId: string }[];
  /** Whether the freed pages have been wiped; false when another process kept them in use. */
  readonly isWiped: boolean;
  /** Files of killed imports that were also removed. */
  readonly intakeFiles: readonly string[];
}

/** Others may store messages and fold while new texts are made; then everything is planned again, after a pause that doubles each time. */
const MAX_TRIES = 8;
const FIRST_PAUSE_MS = 25;
/** This many consecutive words in a summary that was not made from the message are not a coincidence. */
const SHINGLE_WORDS = 8;
const PAGE = 256;

export async function planForget(
  engine: EngineState,
  { messageIds }: PlanForgetRequest,
): Promise<ForgetPlan> {
  const { store } = engine;
  const direct = await store.planForget(messageIds, []);
  return store.planForget(messageIds, await findEchoes(engine, direct));
}

export async function forget(engine: EngineState, request: ForgetRequest): Promise<ForgetResult> {
  const { store, clock } = engine;
  await Promise.allSettled(engine.folding.background.values());
  for (let tries = 0; tries < MAX_TRIES; tries++) {
    if (tries > 0) await sleep(FIRST_PAUSE_MS * 2 ** (tries - 1));
    const direct = await store.planForget(request.messageIds, []);
    const summaryCounts = await countSummaries(engine, direct);
    const alsoSummaryIds = await findEchoes(engine, direct);
    const plan = await store.planForget(request.messageIds, alsoSummaryIds);
    const replacements = await remake(engine, plan);
    const now = clock.now();
    const outcome = await store.forget({ ...request, alsoSummaryIds, summaryCounts, replacements, now });
    if (outcome.kind === "stale") continue;
    const remade = replacements.map(({ oldId, summary }) => ({ oldId, newId: summary.summaryId }));
    const { intakeFiles = [] } = outcome;
    return { plan: outcome.plan, remade, isWiped: await tryToWipe(engine), intakeFiles };
  }
  throw new EngineError("database_busy", "cannot forget: the conversation changes too fast", {
    hint: "retry when the conversation is idle",
  });
}

/** The messages are gone whatever happens here. Remaining work stays recorded in the archive, and the doctor finds it. */
async function tryToWipe(engine: EngineState): Promise<boolean> {
  try {
    return await finishForgetting(engine);
  } catch (error) {
    if (!(error instanceof EngineError)) throw error;
    engine.emit({
      kind: "degraded",
      part: "files",
      message: `freed pages could not be wiped: ${error.message}`,
    });
    return false;
  }
}

export async function finishForgetting(engine: EngineState): Promise<boolean> {
  const { store } = engine;
  // A damaged index may contain anything; a rebuilt one contains only what is stored.
  if ((await store.status()).index.kind === "degraded") await reindex(engine);
  return store.wipeFreed();
}

/** New texts for the published summaries, the finest first, each from its remaining sources. */
async function remake(engine: EngineState, plan: ForgetPlan): Promise<SummaryReplacement[]> {
  const forgotten = new Set(plan.messageIds);
  const made = new Map<string, SummaryReplacement & { isEmpty: boolean }>();
  for (const { summaryId, isPublished } of plan.summaries) {
    if (!isPublished) continue;
    const node = await engine.store.readSummary(summaryId);
    // Somebody has replaced it since: the store will find the plan outdated.
    if (node?.state !== "cover") continue;
    const sources = await engine.store.readSources(summaryId);
    const left = sources.map((item) => withoutForgotten(item, forgotten, made));
    const isEmpty = left.every((item) => item.hidden !== 0 || (item.summary !== null && item.messages === 0));
    const text = isEmpty
      ? renderGone(node, engine.clock.now())
      : await writeText(engine, node, left, { summaryId, dryRun: true, isExtractive: true });
    const tokens = measure(engine, text.content, node.depth, left);
    made.set(summaryId, {
      oldId: summaryId,
      summary: { ...text, summaryId: makeSummaryId((size) => engine.clock.random(size)), tokens },
      // Its sources, once those below it have been replaced, are checked under their old names.
      sourceKeys: sources.map(nameSource),
      isEmpty,
    });
  }
  return [...made.values()].map(({ isEmpty: _isEmpty, ...replacement }) => replacement);
}

async function countSummaries(
  { store }: EngineState,
  { conversationIds }: ForgetPlan,
): Promise<Map<number, number>> {
  const counts = new Map<number, number>();
  for (const id of conversationIds) {
    const conversation = await store.readConversation(id);
    if (conversation !== null) counts.set(id, conversation.summaries);
  }
  return counts;
}

/** Summaries that were not made from the messages but repeat them: a model was shown the summary before the run. */
async function findEchoes(engine: EngineState, plan: ForgetPlan): Promise<string[]> {
  const touched = new Set(plan.summaries.map((summary) => summary.summaryId));
  const holders = new Map<string, string[]>();
  for (const conversationId of plan.conversationIds) {
    for await (const { summaryId, content } of walkSummaries(engine, conversationId)) {
      if (touched.has(summaryId)) continue;
      for (const shingle of listShingles(content))
        holders.set(shingle, [...(holders.get(shingle) ?? []), summaryId]);
    }
  }
  const echoes = new Set<string>();
  for (const messageId of holders.size === 0 ? [] : plan.messageIds) {
    const body = await engine.store.readMessage(messageId);
    const text = body === null ? "" : searchText(viewMessage(body.bytes));
    for (const shingle of listShingles(text)) for (const id of holders.get(shingle) ?? []) echoes.add(id);
  }
  return [...echoes];
}

async function* walkSummaries(
  engine: EngineState,
  conversationId: number,
): AsyncGenerator<{ summaryId: string; content: string }> {
  for (let after: string | null = null; ;) {
    const page = await engine.store.listSummaries({ conversationId, after, limit: PAGE });
    yield* page.items;
    if (page.next === null) return;
    after = page.next;
  }
}

function withoutForgotten(
  item: RunItem,
  forgotten: ReadonlySet<number>,
  made: ReadonlyMap<string, SummaryReplacement & { isEmpty: boolean }>,
): RunItem {
  if (item.messageId !== null && forgotten.has(item.messageId))
    return { ...item, hidden: item.hidden | HIDDEN.forgotten, bytes: null };
  const replacement = item.summary === null ? undefined : made.get(item.summary.summaryId);
  if (item.summary === null || replacement === undefined) return item;
  const { content, tokens } = replacement.summary;
  return {
    ...item,
    tokens,
    messages: replacement.isEmpty ? 0 : item.messages,
    summary: { ...item.summary, content, tokens },
  };
}

/** The text of a summary whose sources were all forgotten. */
function renderGone(node: SummaryNode, now: number): SummarizeResult {
  const day = (at: number): string => new Date(at).toISOString().slice(0, 10);
  const content = `[LCM forgotten] Messages from ${day(node.earliestAt)} to ${day(node.latestAt)} were here. They were removed on request on ${day(now)}.`;
  return { content, tokens: 0, model: "extractive", level: "extractive" };
}

function listShingles(text: string): string[] {
  const words = text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? [];
  const shingles: string[] = [];
  for (let at = 0; at + SHINGLE_WORDS <= words.length; at++)
    shingles.push(words.slice(at, at + SHINGLE_WORDS).join(" "));
  return shingles;
}

/**
 * The agents' own figures, from their transcripts: tokens in and out, cache hits, tools, errors and hours, by day, model, project, agent or
 * tool. They are not stored: a conversation is counted when requested, and again when it has grown.
 *
 * Invariant: usage that a host repeats in several rows of one answer counts once.
 */
import { readFigures } from "../message/figures.ts";
import type { MessageFigures } from "../message/figures.ts";
import type { ReportedUsage } from "../model/message.ts";
import type { OriginFilter } from "../model/origin.ts";
import type { ConversationRow, MessageRow, Store } from "../store/store.ts";
import { zoneClock } from "../summarize/time.ts";
import type { Scope } from "./conversations.ts";
import type { EngineState } from "./state.ts";

export const STATS_GROUPINGS = ["day", "model", "project", "agent", "tool"] as const;
export type StatsGrouping = (typeof STATS_GROUPINGS)[number];

export interface StatsRequest extends Scope, OriginFilter {
  readonly by?: StatsGrouping;
  readonly model?: string | undefined;
  /** Work at or after this time, and before that one. */
  readonly since?: number | undefined;
  readonly before?: number | undefined;
  readonly signal?: AbortSignal;
}

export interface AgentFigures {
  /** Answers of a model. */
  readonly requests: number;
  readonly prompts: number;
  /** Tokens that were not served from a cache. */
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly cacheReadTokens: number;
  readonly cacheWriteTokens: number;
  readonly toolCalls: number;
  readonly errors: number;
  /** Time between messages less than five minutes apart. */
  readonly activeMs: number;
}

export interface StatsGroup extends AgentFigures {
  /** A day (2026-11-16), a model, a project, an agent or a tool; null where the transcripts do not say. */
  readonly key: string | null;
  readonly conversations: number;
}

export interface StatsResult {
  readonly by: StatsGrouping;
  readonly groups: readonly StatsGroup[];
  readonly total: StatsGroup;
  /** By model and the requested grouping, so that prices can be applied. */
  readonly models: readonly StatsGroup[];
}

type Sums = { -readonly [K in keyof AgentFigures]: number };

/** One day and model of a conversation. */
interface Entry {
  readonly day: string | null;
  readonly model: string | null;
  readonly sums: Sums;
  readonly tools: Map<string, { calls: number; errors: number }>;
}

interface Counted {
  readonly state: string;
  readonly entries: readonly Entry[];
}

const USAGE_FIELDS = ["inputTokens", "outputTokens", "cacheReadTokens", "cacheWriteTokens"] as const;
const PAGE = 500;
/** A longer silence is a break. */
const PAUSE_MS = 5 * 60_000;
const NO_SUMS: AgentFigures = {
  requests: 0,
  prompts: 0,
  inputTokens: 0,
  outputTokens: 0,
  cacheReadTokens: 0,
  cacheWriteTokens: 0,
  toolCalls: 0,
  errors: 0,
  activeMs: 0,
};

/** Counts stay in memory as long as the store does. */
const counted = new WeakMap<Store, Map<number, Counted>>();

export async function stats(engine: EngineState, request: StatsRequest = {}): Promise<StatsResult> {
  const { by = "day" } = request;
  const groups = new Map<string | null, Group>();
  const models = new Map<string | null, Group>();
  const total = new Group();
  for await (const row of listAll(engine.store, request)) {
    request.signal?.throwIfAborted();
    for (const entry of await countOnce(engine, row, request)) {
      if (request.model !== undefined && request.model !== entry.model) continue;
      total.add(row.conversationId, entry.sums);
      groupOf(models, entry.model).add(row.conversationId, entry.sums);
      if (by === "tool") addTools(groups, row.conversationId, entry);
      else groupOf(groups, keyOf(by, row, entry)).add(row.conversationId, entry.sums);
    }
  }
  return { by, groups: list(groups, by), total: total.finish(null), models: list(models, "model") };
}

class Group {
  readonly #sums: Sums = { ...NO_SUMS };
  readonly #conversations = new Set<number>();

  add(conversationId: number, sums: Partial<AgentFigures>): void {
    this.#conversations.add(conversationId);
    for (const name of Object.keys(sums) as (keyof Sums)[]) this.#sums[name] += sums[name] ?? 0;
  }

  finish(key: string | null): StatsGroup {
    return { key, conversations: this.#conversations.size, ...this.#sums };
  }
}

function groupOf(groups: Map<string | null, Group>, key: string | null): Group {
  let group = groups.get(key);
  if (group === undefined) groups.set(key, (group = new Group()));
  return group;
}

function addTools(groups: Map<string | null, Group>, conversationId: number, { tools }: Entry): void {
  for (const [name, { calls, errors }] of tools)
    groupOf(groups, name).add(conversationId, { toolCalls: calls, errors });
}

/** Days in order, everything else by usage; unknown comes last. */
function list(groups: ReadonlyMap<string | null, Group>, by: StatsGrouping): StatsGroup[] {
  const weigh = (group: StatsGroup): number => group.outputTokens + group.toolCalls / 1e6;
  return Array.from(groups, ([key, group]) => group.finish(key)).toSorted(
    (a, b) =>
      Number(a.key === null) - Number(b.key === null) ||
      (by === "day" ? Number((a.key ?? "") > (b.key ?? "")) || -1 : weigh(b) - weigh(a)),
  );
}

function keyOf(by: Exclude<StatsGrouping, "tool">, row: ConversationRow, entry: Entry): string | null {
  if (by === "day" || by === "model") return entry[by];
  return row[by];
}

/** Whether a message is in the requested period; an undated one counts only if no period was requested. */
function makeTimeFilter({ since, before }: StatsRequest): (at: number | null) => boolean {
  if (since === undefined && before === undefined) return () => true;
  return (at) => at !== null && at >= (since ?? -Infinity) && at < (before ?? Infinity);
}

async function* listAll(store: Store, request: StatsRequest): AsyncGenerator<ConversationRow> {
  const { owner, project, agent, exceptSession } = request;
  for (let after: string | null = null; ;) {
    const page = await store.listConversations({ owner, project, agent, exceptSession, after, limit: PAGE });
    yield* page.items;
    if (page.next === null) return;
    after = page.next;
  }
}

async function countOnce(
  engine: EngineState,
  row: ConversationRow,
  request: StatsRequest,
): Promise<readonly Entry[]> {
  const { since, before } = request;
  // Nothing in it is in the period, so its messages need not be read.
  if (since !== undefined && (row.lastAt ?? -Infinity) < since) return [];
  const { store } = engine;
  let known = counted.get(store);
  if (known === undefined) counted.set(store, (known = new Map()));
  const state = `${row.messages} ${row.lastAt} ${row.arrivalBytes} ${since} ${before}`;
  const found = known.get(row.conversationId);
  if (found?.state === state) return found.entries;
  const clock = zoneClock(engine.settings.timezone);
  const count = new ConversationCount(row.model, (at) => clock.split(at).date, makeTimeFilter(request));
  await countConversation(store, row, count);
  const { entries } = count;
  known.set(row.conversationId, { state, entries });
  return entries;
}

async function countConversation(
  store: Store,
  { conversationId }: ConversationRow,
  count: ConversationCount,
): Promise<void> {
  for (let after: string | null = null; ;) {
    const page = await store.listMessages({
      conversationId,
      after,
      limit: PAGE,
      order: "position",
      direction: "oldest",
    });
    const rows = page.items.filter(({ revises, forgottenAt }) => revises === null && forgottenAt === null);
    const shown = await store.readShown(rows.map(({ messageId }) => messageId));
    const bytesOf = new Map(shown.map(({ messageId, bytes }) => [messageId, bytes]));
    for (const row of rows) {
      const bytes = bytesOf.get(row.messageId);
      if (bytes !== undefined) count.add(row, readFigures(bytes));
    }
    if (page.next === null) return;
    after = page.next;
  }
}

class ConversationCount {
  readonly #dayOf: (at: number) => string;
  readonly #isWanted: (at: number | null) => boolean;
  readonly #entries = new Map<string, Entry>();
  readonly #answers = new Map<string, ReportedUsage>();
  readonly #callNames = new Map<string, string>();
  /** The model of the last answer; before the first, what the transcript says elsewhere. */
  #model: string | null;
  #lastAt: number | null = null;

  constructor(model: string | null, dayOf: (at: number) => string, isWanted: (at: number | null) => boolean) {
    this.#model = model;
    this.#dayOf = dayOf;
    this.#isWanted = isWanted;
  }

  get entries(): Entry[] {
    return [...this.#entries.values()];
  }

  add(row: MessageRow, figures: MessageFigures): void {
    const { model, usage, toolCalls, failed } = figures;
    // For messages that a host made up, the model's name is in angle brackets.
    if (model !== null && !model.startsWith("<")) this.#model = model;
    // Rows outside the period still determine what follows: the model, its calls, and the usage reported already.
    const at = row.isDated || this.#lastAt !== null ? row.createdAt : null;
    const { sums, tools } = this.#isWanted(at) ? this.#entryOf(at) : makeEntry(null, null);
    sums.activeMs += this.#readPause(row);
    if (figures.isPrompt && row.hidden.length === 0) sums.prompts += 1;
    sums.toolCalls += toolCalls.length;
    sums.errors += failed.length;
    for (const { id, name } of toolCalls) {
      countTool(tools, name).calls += 1;
      if (id !== null) this.#callNames.set(id, name);
    }
    for (const id of failed) countTool(tools, this.#callNames.get(id ?? "") ?? "unknown").errors += 1;
    if (usage !== null) this.#addUsage(sums, usage, figures.answer);
  }

  /** Further rows of an answer repeat its usage, which grows while the answer is written. */
  #addUsage(sums: Sums, usage: ReportedUsage, answer: string | null): void {
    const before = answer === null ? undefined : this.#answers.get(answer);
    if (answer !== null) this.#answers.set(answer, usage);
    if (before === undefined) sums.requests += 1;
    for (const name of USAGE_FIELDS) sums[name] += Math.max(0, (usage[name] ?? 0) - (before?.[name] ?? 0));
  }

  #readPause({ createdAt, isDated }: MessageRow): number {
    if (!isDated) return 0;
    const pause = this.#lastAt === null ? 0 : createdAt - this.#lastAt;
    this.#lastAt = createdAt;
    return pause > 0 && pause <= PAUSE_MS ? pause : 0;
  }

  #entryOf(at: number | null): Entry {
    const day = at === null ? null : this.#dayOf(at);
    const name = JSON.stringify([day, this.#model]);
    let entry = this.#entries.get(name);
    if (entry === undefined) this.#entries.set(name, (entry = makeEntry(day, this.#model)));
    return entry;
  }
}

const makeEntry = (day: string | null, model: string | null): Entry => ({
  day,
  model,
  sums: { ...NO_SUMS },
  tools: new Map(),
});

function countTool(tools: Entry["tools"], name: string): { calls: number; errors: number } {
  let tool = tools.get(name);
  if (tool === undefined) tools.set(name, (tool = { calls: 0, errors: 0 }));
  return tool;
}

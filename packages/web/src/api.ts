/**
 * The read requests of the page, one function each. The archive is in another thread, so that no request blocks the server. Rows are returned
 * unchanged from the engine; the page renders them as text, never as markup.
 */
import { EngineError, isSummaryId, wordNote, wordStep } from "@lossless/core";
import { readPicture } from "@lossless/interchange/parts";
import type { Picture } from "@lossless/interchange/parts";
import type {
  ConversationOrder,
  ConversationRow,
  HeadedConversation,
  Engine,
  GrepMode,
  GrepRequest,
  GrepScope,
  Scope,
  SummaryGraph,
  SummaryOutline,
} from "@lossless/core";
import type { DoctorResult, Finding } from "@lossless/core/repair";
import {
  findFrom,
  listMatchedWords,
  measureSaved,
  Outlines,
  parseTime,
  readPrices,
  SHELL_WORDS,
  STATS_GROUPINGS,
  sumCost,
  renderCommandLine,
  rowAt,
  sumTurns,
} from "@lossless/core/doors";
import type {
  AskResult,
  ContextResult,
  ContextTurns,
  ConversationChoices,
  ConversationDetail,
  CostReply,
  CountedConversation,
  DoctorReply,
  FindingReply,
  Graph,
  GraphNode,
  GrowthResult,
  MessageDetail,
  MessagePage,
  Overview,
  Page,
  SearchReply,
  SpendResult,
  StatsGroup,
  StatsReply,
  SummaryNode,
  TimelineResult,
  TurnSum,
  UnderSummary,
  WriteAccess,
} from "./api-types.ts";
import { readTurns } from "./context-turns.ts";
import { resumeCommand } from "./resume.ts";
import { readFirstWords } from "./first-words.ts";
import { toMessageJson } from "./message-json.ts";
import { MessagePages } from "./message-pages.ts";
import { ANY_ID, readNumber, readWord } from "./query.ts";
import { warmUp } from "./warm-up.ts";
import { RequestPriority } from "./request-priority.ts";
import type { Piece } from "./request-priority.ts";
import { SharedSteps } from "./shared-steps.ts";
import { addUpGrowth, planTimeline } from "./timeline.ts";
import type { Timeline } from "./timeline.ts";

export interface ApiOptions {
  readonly engine: Engine;
  readonly scope: Scope;
  readonly timezone: string;
  readonly version: string;
  /** The archive as it was named with `--db`; null when the settings name it. */
  readonly database?: string | null;
  /** The file of the user with prices of models; read whenever figures are asked for, so that it can be edited meanwhile. */
  readonly prices?: string | undefined;
  /** Runs the doctor's checks; read-only. */
  readonly examine: () => Promise<DoctorResult>;
}

const wordFinding = ({ step, ...finding }: Finding): FindingReply => ({
  ...finding,
  mend: step === null ? null : wordStep(step, SHELL_WORDS),
});

type Json<T> = { readonly json: T };
/** A response is JSON, or a picture. */
export type Answer = Json<unknown> | { readonly picture: Picture };

type Handler = (api: Api, id: string, query: URLSearchParams, more: string) => Promise<Answer>;

const WHOLE_CHARS = 2_000_000;
/** Of a message, searched for the words to mark in it. */
const MAX_MATCHED_CHARS = 500_000;
const MAX_UNDER = 1_000;
const MAX_FIRST_WORDS = 100;
const MAX_CONVERSATIONS = 500;
/** The filter choices (projects, agents, models and tags) come from this many of the newest conversations. */
const MAX_CHOICE_ROWS = 20_000;
const MIN_BUDGET = 1_000;
const MAX_BUDGET = 2_000_000;
/** The growth of the archive is summed over this many of the largest conversations. */
const GROWTH_CONVERSATIONS = 40;
const GROWTH_MOMENTS = 240;

/** `patient`: slow, or at the edge of the screen; other requests go first. */
type Route = readonly [path: RegExp, handler: Handler, pace?: "patient"];

const ROUTES: readonly Route[] = [
  [/^\/api\/overview$/, (api) => api.readOverview()],
  [/^\/api\/growth$/, (api) => api.readGrowth(), "patient"],
  [/^\/api\/conversations$/, (api, _id, query) => api.listConversations(query)],
  [/^\/api\/conversation-choices$/, (api) => api.listChoices(), "patient"],
  [/^\/api\/conversations\/(\d{1,15})$/, (api, id) => api.readConversation(Number(id)), "patient"],
  [/^\/api\/conversations\/(\d{1,15})\/messages$/, (api, id, query) => api.listMessages(Number(id), query)],
  [
    /^\/api\/conversations\/(\d{1,15})\/turn-sums$/,
    (api, id, query) => api.sumTurns(Number(id), query),
    "patient",
  ],
  [/^\/api\/conversations\/(\d{1,15})\/graph$/, (api, id, query) => api.readGraph(Number(id), query)],
  [/^\/api\/conversations\/(\d{1,15})\/context$/, (api, id, query) => api.readContext(Number(id), query)],
  [/^\/api\/conversations\/(\d{1,15})\/turns$/, (api, id, query) => api.readTurns(Number(id), query)],
  [/^\/api\/conversations\/(\d{1,15})\/timeline$/, (api, id) => api.readTimeline(Number(id))],
  [/^\/api\/messages\/(?:msg_)?(\d{1,15})$/, (api, id, query) => api.readMessage(Number(id), query)],
  [
    /^\/api\/messages\/(?:msg_)?(\d{1,15})\/image\/(\d{1,6})$/,
    (api, id, _query, part) => api.readImage(Number(id), Number(part)),
  ],
  [/^\/api\/summaries\/(sum_[0-9a-f]{16})$/, (api, id) => api.readSummary(id)],
  [/^\/api\/summaries\/(sum_[0-9a-f]{16})\/messages$/, (api, id, query) => api.listUnder(id, query)],
  [/^\/api\/first-words$/, (api, _id, query) => api.readFirstWords(query)],
  [/^\/api\/search$/, (api, _id, query) => api.search(query)],
  [/^\/api\/ask$/, (api, _id, query) => api.ask(query)],
  [/^\/api\/spend$/, (api, _id, query) => api.readSpend(query)],
  [/^\/api\/stats$/, (api, _id, query) => api.readStats(query), "patient"],
  [/^\/api\/doctor$/, (api) => api.examine(), "patient"],
];

/** A value derived from a conversation, and the version it was derived from. */
interface Versioned<T> {
  readonly version: string;
  readonly value: T;
}

/** Waits until there is time for a piece of work. */
type Pause = (piece: Piece) => Promise<void>;
const goOn: Pause = () => Promise.resolve();

export class Api {
  readonly #options: ApiOptions;
  readonly #engine: Engine;
  readonly #scope: Scope;
  readonly #outlines: Outlines;
  readonly #pages: MessagePages;
  readonly #write: WriteAccess | null;
  readonly #priority = new RequestPriority();
  readonly #graphs = new Map<number, Versioned<Promise<SummaryGraph>>>();
  readonly #timelines = new Map<number, Versioned<SharedSteps<Timeline>>>();
  #examining: Promise<DoctorResult> | null = null;

  constructor(options: ApiOptions, write: WriteAccess | null = null) {
    this.#options = options;
    this.#engine = options.engine;
    this.#scope = options.scope;
    this.#write = write;
    this.#outlines = new Outlines(options.engine, options.scope);
    this.#pages = new MessagePages(options.engine, options.scope);
  }

  /** Prepares what would make the first request slower than later ones. Failures here are reported by the request itself. */
  async warmUp(): Promise<void> {
    const waitForTime = (): Promise<void> => this.#priority.stepAside("long");
    // The outline and the graph, which several views need, are loaded from the start, between requests.
    const growth = this.readGrowth().catch(() => undefined);
    await waitForTime();
    await Promise.allSettled([warmUp(this.#engine, this.#scope, waitForTime), growth]);
  }

  /** A page is being opened: requests will follow. */
  noteVisit(): void {
    this.#priority.note();
  }

  /** Null when nothing has this address. */
  async answer(url: URL): Promise<Answer | null> {
    for (const [path, handler, pace] of ROUTES) {
      const match = path.exec(url.pathname);
      if (!match) continue;
      const answer = (): Promise<Answer> => handler(this, match[1] ?? "", url.searchParams, match[2] ?? "");
      return pace === "patient" ? answer() : this.#priority.serve(answer);
    }
    return null;
  }

  async readOverview(): Promise<Json<Overview>> {
    const { timezone, version, database = null } = this.#options;
    const [status, conversations, spend] = await Promise.all([
      this.#engine.status(this.#scope),
      this.#engine.listConversations({ ...this.#scope, limit: 200, order: "newest", unlisted: false }),
      this.#engine.spend({ by: "all" }),
    ]);
    const page = { ...conversations, items: await this.#count(conversations.items) };
    return {
      json: {
        status,
        conversations: page,
        spend: spend[0] ?? null,
        timezone,
        version,
        database: database === null ? null : renderCommandLine([database]),
        write: this.#write,
      },
    };
  }

  /** Conversations with the messages in the context and those left out of it. */
  async #count(rows: readonly HeadedConversation[]): Promise<CountedConversation[]> {
    const conversationIds = rows.map(({ conversationId }) => conversationId);
    const counted = await this.#engine.countMessages({ ...this.#scope, conversationIds });
    const byId = new Map(counted.map((counts) => [counts.conversationId, counts]));
    return rows.flatMap((row) => {
      const counts = byId.get(row.conversationId);
      return counts === undefined ? [] : [{ ...row, counts }];
    });
  }

  /**
   * Tokens stored and in the context over time, approximated by the largest conversations of the archive. The page shows it when it arrives;
   * clicks in the meantime are answered first.
   */
  async readGrowth(): Promise<Json<GrowthResult>> {
    const { items } = await this.#engine.listConversations({ ...this.#scope, limit: MAX_CONVERSATIONS });
    const largest = items.toSorted((a, b) => b.messages - a.messages).slice(0, GROWTH_CONVERSATIONS);
    const lines: Timeline["points"][] = [];
    const pause: Pause = (piece) => this.#priority.stepAside(piece);
    for (const conversation of largest) lines.push((await this.#planTimeline(conversation, pause)).points);
    return {
      json: {
        points: addUpGrowth(lines, GROWTH_MOMENTS),
        conversations: items.length,
        counted: largest.length,
      },
    };
  }

  async listConversations(query: URLSearchParams): Promise<Json<Page<CountedConversation>>> {
    const limit = readNumber(query, "limit", { least: 1, most: MAX_CONVERSATIONS, otherwise: 200 });
    const text = (name: string): string | undefined => query.get(name) || undefined;
    const time = (name: string): number | undefined => this.#readTime(query, name);
    const page = await this.#engine.listConversations({
      ...this.#scope,
      limit,
      after: query.get("after"),
      order: readWord<ConversationOrder>(query, "sort", ["newest", "oldest", "project", "agent", "model"]),
      project: text("project"),
      agent: text("agent"),
      model: text("model"),
      tag: text("tag"),
      since: time("since"),
      before: time("before"),
      unlisted: query.get("hidden") === "true",
    });
    return { json: { ...page, items: await this.#count(page.items) } };
  }

  /** As on the command line: a date in the time zone of the settings, or 7d. */
  #readTime(query: URLSearchParams, name: string): number | undefined {
    const { timezone } = this.#options;
    const typed = query.get(name) ?? "";
    return typed === "" ? undefined : parseTime(typed, { now: Date.now(), timezone, option: name });
  }

  /** The filter choices, from all conversations. */
  async listChoices(): Promise<Json<ConversationChoices>> {
    const found = { projects: new Set<string>(), agents: new Set<string>(), models: new Set<string>() };
    const tags = new Set<string>();
    for (let after: string | null = null, read = 0; read < MAX_CHOICE_ROWS;) {
      const page = await this.#engine.listConversations({ ...this.#scope, limit: MAX_CONVERSATIONS, after });
      for (const row of page.items) {
        if (row.project !== null) found.projects.add(row.project);
        if (row.agent !== null) found.agents.add(row.agent);
        if (row.model !== null) found.models.add(row.model);
        for (const tag of row.tags) tags.add(tag);
      }
      read += page.items.length;
      after = page.next;
      if (after === null) break;
    }
    const { projects, agents, models } = found;
    return {
      json: { project: [...projects], agent: [...agents], model: [...models], tag: [...tags].toSorted() },
    };
  }

  async readConversation(conversationId: number): Promise<Json<ConversationDetail>> {
    const conversation = await this.#need(conversationId);
    await this.#priority.stepAside("short");
    const rawTokens = conversation.shownTokens + measureSaved(await this.#readGraph(conversation));
    return { json: { conversation, rawTokens, resume: resumeCommand(conversation) } };
  }

  async listMessages(conversationId: number, query: URLSearchParams): Promise<Json<MessagePage>> {
    return { json: await this.#pages.read(await this.#need(conversationId), query) };
  }

  /** The sizes of the turns that begin in a page of messages. */
  async sumTurns(conversationId: number, query: URLSearchParams): Promise<Json<{ turns: TurnSum[] }>> {
    const conversation = await this.#need(conversationId);
    await this.#priority.stepAside("short");
    const outline = await this.#outlines.read(conversation);
    const at = readNumber(query, "at", { least: 0, most: Number.MAX_SAFE_INTEGER, otherwise: 0 });
    const limit = readNumber(query, "limit", { least: 1, most: 200, otherwise: 50 });
    return { json: { turns: sumTurns(outline, at, limit) } };
  }

  /** With the path up to the root, unless only the message is requested. */
  async readMessage(messageId: number, query: URLSearchParams): Promise<Json<MessageDetail>> {
    const message = await this.#engine.readMessage({ ...this.#scope, messageId });
    if (message === null) throw new EngineError("not_found", `cannot find msg_${messageId}`);
    const { conversationId, position, revises } = message.row;
    const revisions = await this.#engine.readRevisions({ ...this.#scope, messageId: revises ?? messageId });
    const shown = toMessageJson(message, WHOLE_CHARS);
    const text = shown.parts.map((part) => part.text).join("\n");
    const question = query.get("q") ?? "";
    return {
      json: {
        message: shown,
        revisions: revisions.map((row) => row.messageId),
        path: query.get("path") === "none" ? [] : await this.#readPath(conversationId, position),
        matched: listMatchedWords(text.slice(0, question === "" ? 0 : MAX_MATCHED_CHARS), question),
      },
    };
  }

  async #readPath(conversationId: number, position: number): Promise<GraphNode[]> {
    const { nodes } = await this.#readGraph(await this.#need(conversationId));
    return nodes
      .filter((summary) => isAbove(summary, position))
      .sort((a, b) => Number(isStandIn(a)) - Number(isStandIn(b)) || a.depth - b.depth)
      .map(toNode);
  }

  async readImage(messageId: number, ordinal: number): Promise<Answer> {
    const message = await this.#engine.readMessage({ ...this.#scope, messageId });
    const part = message?.view.parts.find((some) => some.ordinal === ordinal);
    const picture = message && part ? readPicture(message.bytes, part) : null;
    if (picture === null)
      throw new EngineError(
        "not_found",
        `cannot show part ${ordinal} of msg_${messageId}: it has no picture`,
      );
    return { picture };
  }

  async readGraph(conversationId: number, query: URLSearchParams): Promise<Json<Graph>> {
    const conversation = await this.#need(conversationId);
    const isAll = query.get("state") === "all";
    const { nodes, edges } = await this.#readGraph(conversation);
    const shown = nodes.filter(({ state }) => isAll || state === "cover" || state === "reserve");
    const ids = new Set(shown.map(({ summaryId }) => summaryId));
    return {
      json: {
        conversation,
        nodes: shown.map(toNode),
        edges: edges.filter(([summary, source]) => ids.has(summary) && ids.has(source)),
      },
    };
  }

  async readSummary(summaryId: string): Promise<Json<SummaryNode>> {
    return { json: await this.#needSummary(summaryId) };
  }

  /** The messages under a summary, in order, by number. */
  async listUnder(summaryId: string, query: URLSearchParams): Promise<Json<UnderSummary>> {
    const { conversationId, startPosition, endPosition } = await this.#needSummary(summaryId);
    const outline = await this.#outlines.read(await this.#need(conversationId));
    const first = findFrom(outline.positions, startPosition);
    const total = findFrom(outline.positions, endPosition + 1) - first;
    const at = readNumber(query, "at", { least: 0, most: Number.MAX_SAFE_INTEGER, otherwise: 0 });
    const limit = readNumber(query, "limit", { least: 1, most: MAX_UNDER, otherwise: 100 });
    const length = Math.max(0, Math.min(limit, total - at));
    return { json: { total, at, items: Array.from({ length }, (_, i) => rowAt(outline, first + at + i)) } };
  }

  async readContext(conversationId: number, query: URLSearchParams): Promise<Json<ContextResult>> {
    const budgetTokens = readBudget(query);
    const startedAt = performance.now();
    const context = await this.#engine.assemble({ ...this.#scope, conversationId, budgetTokens });
    if (context === null) throw new EngineError("not_found", `cannot find conversation ${conversationId}`);
    const { messages, conversationId: _id, ...rest } = context;
    return { json: { ...rest, sentMessages: messages.length, tookMs: performance.now() - startedAt } };
  }

  /** The context turn by turn: what was added and removed, and how much of the front a provider's cache could keep. */
  async readTurns(conversationId: number, query: URLSearchParams): Promise<Json<ContextTurns>> {
    const budgetTokens = readBudget(query);
    const outline = await this.#outlines.read(await this.#need(conversationId));
    const turns = await readTurns(outline, async (endBefore) => {
      const context = await this.#engine.assemble({
        ...this.#scope,
        conversationId,
        budgetTokens,
        endBefore: endBefore ?? undefined,
      });
      return context?.items ?? [];
    });
    return { json: { budgetTokens, turns } };
  }

  /** By id; missing ones are omitted. */
  async readFirstWords(query: URLSearchParams): Promise<Json<Readonly<Record<string, string>>>> {
    const ids = (query.get("ids") ?? "").split(",").slice(0, MAX_FIRST_WORDS);
    const chars = readNumber(query, "chars", { least: 1, most: 1_000, otherwise: 160 });
    const words: [id: string, text: string][] = [];
    // One after the other, so that a click in the meantime waits for one of them, not for all.
    for (const id of ids) words.push([id, await readFirstWords(this.#engine, this.#scope, id, chars)]);
    return { json: Object.fromEntries(words) };
  }

  async readTimeline(conversationId: number): Promise<Json<TimelineResult>> {
    const conversation = await this.#need(conversationId);
    return { json: { conversation, ...(await this.#planTimeline(conversation)) } };
  }

  async search(query: URLSearchParams): Promise<Json<SearchReply>> {
    const pattern = query.get("q")?.trim() ?? "";
    if (pattern === "")
      throw new EngineError("usage", "cannot search for nothing: type a word or a question");
    const request: GrepRequest = {
      ...this.#scope,
      ...readConversation(query),
      pattern,
      withHeadings: true,
      mode: readWord<GrepMode>(query, "mode", ["full_text", "regex"]),
      scope: readWord<GrepScope>(query, "scope", ["both", "messages", "summaries"]),
      limit: readNumber(query, "limit", { least: 1, most: 200, otherwise: 50 }),
      after: query.get("after") ?? undefined,
    };
    const startedAt = performance.now();
    const found = await this.#engine.grep(request);
    const notes = found.notes.map((note) => wordNote(note, SHELL_WORDS));
    return { json: { ...found, notes, tookMs: performance.now() - startedAt } };
  }

  /** Cited passages for a question; no model is called. */
  async ask(query: URLSearchParams): Promise<Json<AskResult>> {
    const prompt = query.get("q")?.trim() ?? "";
    const request = { ...this.#scope, ...readConversation(query), prompt, withoutModel: true };
    return { json: await this.#engine.ask(request) };
  }

  async readSpend(query: URLSearchParams): Promise<Json<SpendResult>> {
    const by = readWord(query, "by", ["day", "conversation", "model", "purpose"]);
    return { json: { by, items: await this.#engine.spend({ by }) } };
  }

  /** The agents' own figures, by day and by the requested group. The engine counts a conversation once, until it grows. */
  async readStats(query: URLSearchParams): Promise<Json<StatsReply>> {
    const by = readWord(query, "by", STATS_GROUPINGS);
    const { groups: days } = await this.#engine.stats({ ...this.#scope, by: "day" });
    const result = await this.#engine.stats({ ...this.#scope, by });
    const own = (await this.#engine.spend({ by: "all" }))[0] ?? null;
    return { json: { days, result, own, cost: await this.#readCost(result.models) } };
  }

  /** Null if no price file was given. An unreadable one is reported beside the figures, which do not need it. */
  async #readCost(models: readonly StatsGroup[]): Promise<CostReply | null> {
    const { prices: path } = this.#options;
    if (path === undefined) return null;
    try {
      const prices = await readPrices(path);
      const ownModels = await this.#engine.spend({ by: "model" });
      return {
        path,
        prices,
        agents: sumCost(models, prices),
        own: sumCost(ownModels, prices),
        problem: null,
      };
    } catch (error) {
      if (!(error instanceof EngineError)) throw error;
      return { path, prices: null, agents: null, own: null, problem: error.message };
    }
  }

  /** Takes as long as the proof; concurrent callers share the result. */
  async examine(): Promise<Json<DoctorReply>> {
    this.#examining ??= this.#options.examine().finally(() => {
      this.#examining = null;
    });
    const report = await this.#examining;
    return { json: { ...report, findings: report.findings.map(wordFinding) } };
  }

  async #planTimeline(conversation: ConversationRow, pause = goOn): Promise<Timeline> {
    const { conversationId, foldRevision, summaries, messages, shownTokens } = conversation;
    const version = `${foldRevision}:${summaries}:${messages}:${shownTokens}`;
    const known = this.#timelines.get(conversationId);
    if (known?.version === version) return known.value.finish(() => pause("short"));
    const outline = await this.#outlines.read(conversation, () => pause("short"));
    await pause("short");
    const graph = await this.#readGraph(conversation);
    await pause("long");
    const begun = this.#timelines.get(conversationId);
    if (begun?.version === version) return begun.value.finish(() => pause("short"));
    const format = new Intl.DateTimeFormat("sv-SE", { timeZone: this.#options.timezone });
    const value = new SharedSteps(planTimeline(outline, graph, (at) => format.format(at)));
    this.#timelines.set(conversationId, { version, value });
    return value.finish(() => pause("short"));
  }

  /** All summaries without their texts, reloaded when they have changed. Concurrent callers share the result. */
  #readGraph(conversation: ConversationRow): Promise<SummaryGraph> {
    const { conversationId, foldRevision, summaries } = conversation;
    const version = `${foldRevision}:${summaries}`;
    const known = this.#graphs.get(conversationId);
    if (known?.version === version) return known.value;
    const value = this.#engine.readGraph({ ...this.#scope, conversationId });
    this.#graphs.set(conversationId, { version, value });
    value.catch(() => this.#graphs.delete(conversationId));
    return value;
  }

  async #need(conversationId: number): Promise<HeadedConversation> {
    const conversation = await this.#engine.readConversation({ ...this.#scope, conversationId });
    if (conversation !== null) return conversation;
    throw new EngineError("not_found", `cannot find conversation ${conversationId}`);
  }

  async #needSummary(summaryId: string): Promise<SummaryNode> {
    const summary = isSummaryId(summaryId)
      ? await this.#engine.readSummary({ ...this.#scope, summaryId })
      : null;
    if (summary === null) throw new EngineError("not_found", `cannot find ${summaryId}`);
    return summary;
  }
}

/** Only what is drawn: there may be thousands. */
const toNode = (node: SummaryOutline): GraphNode => ({
  summaryId: node.summaryId,
  depth: node.depth,
  state: node.state,
  startPosition: node.startPosition,
  endPosition: node.endPosition,
  messages: node.messages,
  tokens: node.tokens,
  sourceTokens: node.sourceTokens,
  earliestAt: node.earliestAt,
  latestAt: node.latestAt,
  isRoot: node.isRoot,
});

const isStandIn = ({ state }: SummaryOutline): boolean => state === "reserve";

/** On the path from a message to the root: the summaries of the fold, and the root, which represents all of it. */
const isAbove = ({ state, isRoot, startPosition, endPosition }: SummaryOutline, position: number): boolean =>
  (state === "cover" || (state === "reserve" && isRoot)) &&
  startPosition <= position &&
  position <= endPosition;

const readBudget = (query: URLSearchParams): number =>
  readNumber(query, "budget", { least: MIN_BUDGET, most: MAX_BUDGET, otherwise: 32_000 });

const readConversation = (
  query: URLSearchParams,
): { readonly conversationId: number } | { readonly allConversations: true } =>
  query.has("conversation")
    ? { conversationId: readNumber(query, "conversation", ANY_ID) }
    : { allConversations: true };

/**
 * What the page can ask: one function a question, all of them reading. The archive is behind a thread, so that no question keeps the server
 * from hearing the next one. Rows are handed on as the engine gives them; the page writes them as text, never as markup.
 */
import type { Engine, Scope } from "@lossless/core/engine.ts";
import type { DoctorReport } from "@lossless/core/maintain/doctor.ts";
import { EngineError } from "@lossless/core/model/errors.ts";
import { isSummaryId } from "@lossless/core/model/ids.ts";
import type { GrepMode, GrepRequest, GrepScope } from "@lossless/core/retrieve/grep.ts";
import type { SummaryRow, SummaryState } from "@lossless/core/store/folding.ts";
import type { ConversationRow } from "@lossless/core/store/store.ts";
import { measureRaw } from "../commands/raw-tokens.ts";
import { readPicture, toMessageJson, toUnreadable } from "./message-json.ts";
import type { MessageJson, Picture } from "./message-json.ts";
import { Outlines } from "./outline.ts";
import type { OutlineRow } from "./outline.ts";
import { planTimeline } from "./timeline.ts";

export interface ApiOptions {
  readonly engine: Engine;
  readonly scope: Scope;
  readonly timezone: string;
  readonly version: string;
  /** Runs the doctor's checks; reads only. */
  readonly examine: () => Promise<DoctorReport>;
}

/** An answer is JSON, or a picture. */
export type Answer = { readonly json: unknown } | { readonly picture: Picture };

type Handler = (api: Api, id: string, query: URLSearchParams, more: string) => Promise<Answer>;

const PAGE_CHARS = 6_000;
const WHOLE_CHARS = 2_000_000;
const MAX_MESSAGES = 200;
const MAX_CONVERSATIONS = 500;
const SUMMARY_PAGE = 2_000;
const MAX_SUMMARIES = 50_000;
const MIN_BUDGET = 1_000;
const MAX_BUDGET = 2_000_000;

const ROUTES: readonly (readonly [path: RegExp, handler: Handler])[] = [
  [/^\/api\/overview$/, (api) => api.readOverview()],
  [/^\/api\/conversations$/, (api, _id, query) => api.listConversations(query)],
  [/^\/api\/conversations\/(\d{1,15})$/, (api, id) => api.readConversation(Number(id))],
  [/^\/api\/conversations\/(\d{1,15})\/messages$/, (api, id, query) => api.listMessages(Number(id), query)],
  [/^\/api\/conversations\/(\d{1,15})\/graph$/, (api, id, query) => api.readGraph(Number(id), query)],
  [/^\/api\/conversations\/(\d{1,15})\/context$/, (api, id, query) => api.readContext(Number(id), query)],
  [/^\/api\/conversations\/(\d{1,15})\/timeline$/, (api, id) => api.readTimeline(Number(id))],
  [/^\/api\/messages\/(?:msg_)?(\d{1,15})$/, (api, id) => api.readMessage(Number(id))],
  [
    /^\/api\/messages\/(?:msg_)?(\d{1,15})\/image\/(\d{1,6})$/,
    (api, id, _query, part) => api.readImage(Number(id), Number(part)),
  ],
  [/^\/api\/summaries\/(sum_[0-9a-f]{16})$/, (api, id) => api.readSummary(id)],
  [/^\/api\/search$/, (api, _id, query) => api.search(query)],
  [/^\/api\/ask$/, (api, _id, query) => api.ask(query)],
  [/^\/api\/spend$/, (api, _id, query) => api.readSpend(query)],
  [/^\/api\/doctor$/, (api) => api.examine()],
];

export class Api {
  readonly #options: ApiOptions;
  readonly #engine: Engine;
  readonly #scope: Scope;
  readonly #outlines: Outlines;
  readonly #saved = new Map<number, { readonly foldRevision: number; readonly tokens: number }>();
  readonly #covers = new Map<number, { readonly version: string; readonly rows: readonly SummaryRow[] }>();
  #examining: Promise<DoctorReport> | null = null;

  constructor(options: ApiOptions) {
    this.#options = options;
    this.#engine = options.engine;
    this.#scope = options.scope;
    this.#outlines = new Outlines(options.engine, options.scope);
  }

  /** Null when nothing has this address. */
  async answer(url: URL): Promise<Answer | null> {
    for (const [path, handler] of ROUTES) {
      const match = path.exec(url.pathname);
      if (match) return handler(this, match[1] ?? "", url.searchParams, match[2] ?? "");
    }
    return null;
  }

  async readOverview(): Promise<Answer> {
    const { timezone, version } = this.#options;
    const [status, conversations, spend] = await Promise.all([
      this.#engine.status(this.#scope),
      this.#engine.listConversations({ ...this.#scope, limit: 200 }),
      this.#engine.spend({ by: "all" }),
    ]);
    return { json: { status, conversations, spend: spend[0] ?? null, timezone, version, isReadOnly: true } };
  }

  async listConversations(query: URLSearchParams): Promise<Answer> {
    const limit = readNumber(query, "limit", { least: 1, most: MAX_CONVERSATIONS, otherwise: 200 });
    return {
      json: await this.#engine.listConversations({ ...this.#scope, limit, after: query.get("after") }),
    };
  }

  async readConversation(conversationId: number): Promise<Answer> {
    const conversation = await this.#need(conversationId);
    const { owner, sessionKey } = conversation;
    const status = await this.#engine.status({ owner, sessionKey });
    const folding = status.conversation?.conversationId === conversationId ? status.folding : null;
    const rawTokens = conversation.shownTokens + (await this.#readSaved(conversation));
    // Made ahead: whoever opens a conversation soon jumps about in it.
    this.#outlines.read(conversation).catch(() => undefined);
    return { json: { conversation, folding, rawTokens } };
  }

  /** By number (`at`), by key (`after`), or around a message (`around`). */
  async listMessages(conversationId: number, query: URLSearchParams): Promise<Answer> {
    const conversation = await this.#need(conversationId);
    const limit = readNumber(query, "limit", { least: 1, most: MAX_MESSAGES, otherwise: 50 });
    if (query.has("after") || query.get("from") === "start") {
      const page = await this.#engine.listMessages({
        ...this.#scope,
        conversationId,
        limit,
        after: query.get("after"),
      });
      const items = await this.#readMessages(page.items.map(({ messageId }) => messageId));
      return { json: { total: conversation.messages, at: null, items, next: page.next } };
    }
    const outline = await this.#outlines.read(conversation);
    const at = chooseStart(query, outline, limit);
    if (at < 0)
      throw new EngineError(
        "not_found",
        `cannot find msg_${query.get("around")} in conversation ${conversationId}`,
      );
    const ids = outline.slice(at, at + limit).map(({ messageId }) => messageId);
    return { json: { total: outline.length, at, items: await this.#readMessages(ids), next: null } };
  }

  async readMessage(messageId: number): Promise<Answer> {
    const message = await this.#engine.readMessage({ ...this.#scope, messageId });
    if (message === null) throw new EngineError("not_found", `cannot find msg_${messageId}`);
    const first = message.row.revises ?? messageId;
    const revisions = await this.#engine.readRevisions({ ...this.#scope, messageId: first });
    const cover = await this.#readCover(await this.#need(message.row.conversationId));
    const above = cover.filter((summary) => holds(summary, message.row.position));
    return {
      json: {
        message: toMessageJson(message, WHOLE_CHARS),
        revisions: revisions.map((row) => row.messageId),
        path: above.toSorted((a, b) => a.depth - b.depth).map(({ content: _content, ...rest }) => rest),
      },
    };
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

  async readGraph(conversationId: number, query: URLSearchParams): Promise<Answer> {
    const conversation = await this.#need(conversationId);
    const isAll = query.get("state") === "all";
    const summaries = (await this.#listSummaries(conversationId)).filter(
      ({ state }) => isAll || state === "cover" || state === "reserve",
    );
    const condensed = summaries.filter(({ kind }) => kind === "condensed");
    const nodes = await Promise.all(
      condensed.map(({ summaryId }) => this.#engine.readSummary({ ...this.#scope, summaryId })),
    );
    return {
      json: {
        conversation,
        nodes: summaries.map(({ content: _content, model: _model, conversationId: _id, ...rest }) => rest),
        edges: nodes.flatMap((node) => (node?.sourceIds ?? []).map((source) => [node?.summaryId, source])),
      },
    };
  }

  async readSummary(summaryId: string): Promise<Answer> {
    const summary = isSummaryId(summaryId)
      ? await this.#engine.readSummary({ ...this.#scope, summaryId })
      : null;
    if (summary === null) throw new EngineError("not_found", `cannot find ${summaryId}`);
    return { json: summary };
  }

  async readContext(conversationId: number, query: URLSearchParams): Promise<Answer> {
    await this.#need(conversationId);
    const budgetTokens = readNumber(query, "budget", {
      least: MIN_BUDGET,
      most: MAX_BUDGET,
      otherwise: 32_000,
    });
    const startedAt = performance.now();
    const context = await this.#engine.assemble({ ...this.#scope, conversationId, budgetTokens });
    if (context === null) throw new EngineError("not_found", `cannot find conversation ${conversationId}`);
    const { messages: _messages, neutral, ...rest } = context;
    return { json: { ...rest, sentMessages: neutral.length, tookMs: performance.now() - startedAt } };
  }

  async readTimeline(conversationId: number): Promise<Answer> {
    const conversation = await this.#need(conversationId);
    const rows = await this.#outlines.read(conversation);
    const cover = await this.#readCover(conversation);
    const format = new Intl.DateTimeFormat("sv-SE", { timeZone: this.#options.timezone });
    const { points, folds, days } = planTimeline(rows, cover, (at) => format.format(at));
    return { json: { conversation, points, folds, days } };
  }

  async search(query: URLSearchParams): Promise<Answer> {
    const pattern = query.get("q")?.trim() ?? "";
    if (pattern === "")
      throw new EngineError("usage", "cannot search for nothing: type a word or a question");
    const request: GrepRequest = {
      ...this.#scope,
      pattern,
      mode: readWord<GrepMode>(query, "mode", ["full_text", "regex"]),
      scope: readWord<GrepScope>(query, "scope", ["both", "messages", "summaries"]),
      limit: readNumber(query, "limit", { least: 1, most: 200, otherwise: 50 }),
      ...(query.has("conversation")
        ? {
            conversationId: readNumber(query, "conversation", {
              least: 1,
              most: Number.MAX_SAFE_INTEGER,
              otherwise: 1,
            }),
          }
        : { allConversations: true }),
      ...(query.has("after") ? { after: query.get("after") ?? "" } : {}),
    };
    const startedAt = performance.now();
    return { json: { ...(await this.#engine.grep(request)), tookMs: performance.now() - startedAt } };
  }

  /** Cited passages for a question; no model is asked. */
  async ask(query: URLSearchParams): Promise<Answer> {
    const prompt = query.get("q")?.trim() ?? "";
    const where = query.has("conversation")
      ? {
          conversationId: readNumber(query, "conversation", {
            least: 1,
            most: Number.MAX_SAFE_INTEGER,
            otherwise: 1,
          }),
        }
      : { allConversations: true };
    return { json: await this.#engine.ask({ ...this.#scope, ...where, prompt }) };
  }

  async readSpend(query: URLSearchParams): Promise<Answer> {
    const by = readWord(query, "by", ["day", "conversation", "model", "purpose"]);
    return { json: { by, items: await this.#engine.spend({ by }) } };
  }

  /** Takes as long as the proof; of several who ask at once, all get the same. */
  async examine(): Promise<Answer> {
    this.#examining ??= this.#options.examine().finally(() => {
      this.#examining = null;
    });
    return { json: await this.#examining };
  }

  /** Tokens that folding saves; they change with the fold only. */
  async #readSaved({ conversationId, foldRevision }: ConversationRow): Promise<number> {
    const known = this.#saved.get(conversationId);
    if (known?.foldRevision === foldRevision) return known.tokens;
    const tokens = await measureRaw(this.#engine, this.#scope, conversationId, 0);
    this.#saved.set(conversationId, { foldRevision, tokens });
    return tokens;
  }

  /** The summaries of the fold without their texts, read anew when there are others. */
  async #readCover({
    conversationId,
    foldRevision,
    summaries,
  }: ConversationRow): Promise<readonly SummaryRow[]> {
    const version = `${foldRevision}:${summaries}`;
    const known = this.#covers.get(conversationId);
    if (known?.version === version) return known.rows;
    const rows = (await this.#listSummaries(conversationId, "cover")).map((row) => ({ ...row, content: "" }));
    this.#covers.set(conversationId, { version, rows });
    return rows;
  }

  async #need(conversationId: number): Promise<ConversationRow> {
    const conversation = await this.#engine.readConversation({ ...this.#scope, conversationId });
    if (conversation !== null) return conversation;
    throw new EngineError("not_found", `cannot find conversation ${conversationId}`);
  }

  async #readMessages(ids: readonly number[]): Promise<MessageJson[]> {
    const all = await Promise.all(ids.map((messageId) => this.#readShort(messageId)));
    return all.flatMap((message) => message ?? []);
  }

  /** A message that cannot be read says why, and the others are shown all the same. */
  async #readShort(messageId: number): Promise<MessageJson | null> {
    try {
      const message = await this.#engine.readMessage({ ...this.#scope, messageId });
      return message && toMessageJson(message, PAGE_CHARS);
    } catch (error) {
      return toUnreadable(messageId, error instanceof Error ? error.message : String(error));
    }
  }

  async #listSummaries(conversationId: number, state?: SummaryState): Promise<SummaryRow[]> {
    const found: SummaryRow[] = [];
    for (let after: string | null = null; found.length < MAX_SUMMARIES;) {
      const filter = state === undefined ? {} : { state };
      const page = await this.#engine.listSummaries({
        ...this.#scope,
        ...filter,
        conversationId,
        limit: SUMMARY_PAGE,
        after,
      });
      found.push(...page.items);
      if (page.next === null) break;
      after = page.next;
    }
    return found;
  }
}

/** Where a page begins: at a number, around a message, or so that it ends with the newest. −1: there is no such message. */
function chooseStart(query: URLSearchParams, outline: readonly OutlineRow[], limit: number): number {
  const last = Math.max(0, outline.length - limit);
  if (query.has("around")) {
    const messageId = readNumber(query, "around", { least: 1, most: Number.MAX_SAFE_INTEGER, otherwise: 1 });
    const index = outline.findIndex((row) => row.messageId === messageId);
    return index < 0 ? -1 : Math.max(0, index - Math.floor(limit / 2));
  }
  if (query.get("from") === "end") return last;
  return readNumber(query, "at", { least: 0, most: Number.MAX_SAFE_INTEGER, otherwise: 0 });
}

const holds = ({ startPosition, endPosition }: SummaryRow, position: number): boolean =>
  startPosition <= position && position <= endPosition;

function readNumber(
  query: URLSearchParams,
  name: string,
  { least, most, otherwise }: { readonly least: number; readonly most: number; readonly otherwise: number },
): number {
  const text = query.get(name);
  if (text === null) return otherwise;
  const value = Number(text);
  if (/^\d+$/.test(text) && value >= least && value <= most) return value;
  throw new EngineError("usage", `cannot use ${name}=${text}: it is a whole number from ${least} to ${most}`);
}

/** One of a few words; the first when none is given. */
function readWord<Word extends string>(
  query: URLSearchParams,
  name: string,
  words: readonly [Word, ...Word[]],
): Word {
  const text = query.get(name) ?? words[0];
  const word = words.find((some) => some === text);
  if (word !== undefined) return word;
  throw new EngineError("usage", `cannot use ${name}=${text}: it is one of ${words.join(", ")}`);
}

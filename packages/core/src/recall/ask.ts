/**
 * Answers a question about the past. First a walk that needs no model: search, rank, go down from named summaries, and cut verbatim
 * passages within the cap. Then, if there is a model, it writes an answer from those passages, and every id in it is checked against what
 * was read. If the model fails in any way, the passages are the answer.
 */
import { EngineError } from "../model/errors.ts";
import { formatMessageId } from "../model/ids.ts";
import { estimateTextTokens } from "../text/tokens.ts";
import type { MessageText, RecallScope } from "../store/recall.ts";
import type { Store } from "../store/store.ts";
import { analyzeQuery, makeSnippet } from "../text/index.ts";
import type { Query } from "../text/index.ts";
import type { CheckedAnswer } from "./citations.ts";
import { readReference, readScope, readSummary } from "./describe.ts";
import { findDocuments } from "./find-documents.ts";
import { findNearest, fuseDocuments, NO_QUESTION_VECTOR } from "./vector-search.ts";
import type { QuestionVector } from "./vector-search.ts";
import { OwnWords } from "./own-words.ts";
import type { Reach, ScopeRequest } from "./reach.ts";

export interface AskRequest extends ScopeRequest {
  /** The question to answer. */
  readonly prompt: string;
  /** The search query; the prompt itself when absent. */
  readonly query?: string;
  /** Look below these summaries. */
  readonly summaryIds?: readonly string[];
  /** Also read the calls and results of our own tools. */
  readonly includeRecall?: boolean;
  /** Length of the answer. */
  readonly maxTokens?: number;
  /** Tokens of passages to read for it. */
  readonly tokenCap?: number;
  readonly timeoutMs?: number;
  /** Passages only, even if there is a model. */
  readonly withoutModel?: boolean;
  readonly signal?: AbortSignal;
}

export interface Passage {
  readonly id: string;
  readonly eventId: string;
  readonly conversationId: number;
  readonly role: string;
  readonly createdAt: number;
  /** Verbatim; "…" marks where the message continues. */
  readonly text: string;
  readonly tokens: number;
  readonly isWhole: boolean;
}

/** Why there is no written answer. */
export type AskFailureCode =
  | "DELEGATED_EXPANSION_TIMEOUT"
  | "DELEGATED_EXPANSION_SPAWN_FAILED"
  | "DELEGATED_EXPANSION_WAIT_FAILED"
  | "DELEGATED_EXPANSION_REPLY_MISSING"
  | "DELEGATED_EXPANSION_REPLY_INVALID"
  | "DELEGATED_EXPANSION_IN_FLIGHT";

export interface AskFailure {
  readonly errorCode: AskFailureCode;
  readonly error: string;
}

export interface AskResult {
  readonly answer: string;
  readonly answeredBy: "model" | "passages" | "nothing";
  readonly citedIds: string[];
  readonly sourceConversationIds: number[];
  /** When there is just one. */
  readonly sourceConversationId: number | null;
  /** Summaries whose sources were read. */
  readonly expandedSummaryCount: number;
  readonly totalSourceTokens: number;
  readonly truncated: boolean;
  readonly conversationBreakdown: {
    readonly conversationId: number;
    readonly passages: number;
    readonly tokens: number;
  }[];
  /** Conversations with matches that exceeded the limit. */
  readonly skippedConversations: number;
  readonly passages: Passage[];
  readonly failure: AskFailure | null;
  /** Sentences of a written answer that cite no passage that was read. */
  readonly uncitedClaims: readonly string[];
  /** Notes for the reader about how it was found. */
  readonly notes: readonly string[];
}

export const DEFAULT_ANSWER_TOKENS = 2_000;
const MAX_PASSAGES = 24;
/** At most this many conversations are read; they share the cap. */
const MAX_CONVERSATIONS = 5;
/** A passage gets at most this share of the cap, so that one long message does not use it all. */
const PASSAGE_SHARE = 0.3;
const MIN_PASSAGE_TOKENS = 60;
const FRAME_TOKENS = 16;
/** How many messages below named summaries are read. */
const MAX_BELOW = 5_000;

export interface Gathered {
  readonly passages: Passage[];
  readonly expandedSummaryCount: number;
  readonly truncated: boolean;
  readonly skippedConversations: number;
  readonly notes: readonly string[];
}

/** The walk: passages for a question, best first. */
export async function gatherPassages(
  store: Store,
  request: AskRequest,
  reach: Reach,
  options: { readonly tokenCap: number; readonly embedQuestion?: (text: string) => Promise<QuestionVector> },
): Promise<Gathered> {
  const { tokenCap } = options;
  const question = checkQuestion(request);
  const query = analyzeQuery(question);
  const below = request.summaryIds?.length ? await readBelow(store, request.summaryIds, reach) : null;
  const scope: RecallScope = below
    ? { ...readScope(reach), conversationIds: below.conversationIds }
    : reach.scope;
  const questionVector = (await options.embedQuestion?.(question)) ?? NO_QUESTION_VECTOR;
  const own = new OwnWords(store, request);
  const worded = await findDocuments(own, { kind: "message", query, scope });
  const found =
    questionVector.kind === "none"
      ? worded
      : await fuseDocuments(
          own,
          worded,
          await findNearest(store, questionVector, scope, { signal: request.signal }),
          {
            scope,
            needsAll: !query.isQuestion,
          },
        );
  const ranked = found.ranked
    .filter(({ id }) => below === null || below.messageIds.has(id))
    .map(({ id }) => id);
  // Below named summaries everything is included; messages that the question does not match come after those it does, in order.
  const order = below === null ? ranked : [...new Set([...ranked, ...below.messageIds])];
  const bounded = boundConversations(order, (id) => found.candidates.get(id)?.conversationId ?? null);
  const cut = await cutPassages(own, query, bounded.ids, scope, tokenCap);
  const summaries = new Set<string>(below?.summaryIds ?? []);
  for (const { messageId } of cut.sources)
    for (const id of await store.listSummariesOf(messageId)) summaries.add(id);
  return {
    passages: cut.passages,
    expandedSummaryCount: summaries.size,
    truncated: cut.isFull || bounded.skipped > 0,
    skippedConversations: bounded.skipped,
    notes: questionVector.kind === "none" && questionVector.note !== null ? [questionVector.note] : [],
  };
}

/** The search query. */
function checkQuestion(request: Pick<AskRequest, "prompt" | "query">): string {
  const prompt = request.prompt?.trim() ?? "";
  if (prompt === "")
    throw new EngineError("usage", "cannot answer: the prompt is empty", {
      hint: "say what you want to know",
    });
  return request.query?.trim() || prompt;
}

/** Everything below summaries, in conversation order. */
async function readBelow(
  store: Store,
  ids: readonly string[],
  reach: Reach,
): Promise<{ messageIds: Set<number>; conversationIds: number[]; summaryIds: string[] }> {
  const messageIds = new Set<number>();
  const conversations = new Set<number>();
  const seen = new Set<string>();
  const queue = ids.map((text) => {
    const reference = readReference(text);
    if (reference.kind === "summary") return reference.id;
    throw new EngineError("usage", `cannot look below ${text}: it is not a summary`, {
      step: { kind: "open_ids", ids: [text] },
    });
  });
  for (let id = queue.shift(); id !== undefined && messageIds.size < MAX_BELOW; id = queue.shift()) {
    if (seen.has(id)) continue;
    seen.add(id);
    const node = await readSummary(store, reach, id);
    conversations.add(node.conversationId);
    for (const message of node.messageIds) messageIds.add(message);
    queue.unshift(...node.sourceIds);
  }
  return { messageIds, conversationIds: [...conversations], summaryIds: [...seen] };
}

/** Keeps the conversations of the best documents. */
function boundConversations(
  ids: readonly number[],
  conversationOf: (id: number) => number | null,
): { ids: number[]; skipped: number } {
  const kept = new Set<number>();
  const skipped = new Set<number>();
  const within = ids.filter((id) => {
    const conversation = conversationOf(id);
    if (conversation === null || kept.has(conversation)) return true;
    if (kept.size >= MAX_CONVERSATIONS) {
      skipped.add(conversation);
      return false;
    }
    kept.add(conversation);
    return true;
  });
  return { ids: within, skipped: skipped.size };
}

async function cutPassages(
  own: OwnWords,
  query: Query,
  ids: readonly number[],
  scope: RecallScope,
  tokenCap: number,
): Promise<{ passages: Passage[]; sources: MessageText[]; isFull: boolean }> {
  const passages: Passage[] = [];
  const sources: MessageText[] = [];
  let room = tokenCap;
  const texts = await own.readTexts(ids.slice(0, MAX_PASSAGES), scope);
  await own.learn(texts.map(({ messageId }) => messageId));
  for (const text of texts) {
    const most = Math.min(
      room - FRAME_TOKENS,
      Math.max(MIN_PASSAGE_TOKENS, Math.floor(tokenCap * PASSAGE_SHARE)),
    );
    if (most < Math.min(MIN_PASSAGE_TOKENS, tokenCap - FRAME_TOKENS)) break;
    const passage = toPassage(text, own.textOf(text).trim(), query, most);
    if (passage.text === "") continue;
    passages.push(passage);
    sources.push(text);
    room -= passage.tokens + FRAME_TOKENS;
  }
  return {
    passages,
    sources,
    isFull: passages.length < ids.length || passages.some(({ isWhole }) => !isWhole),
  };
}

function toPassage(message: MessageText, whole: string, query: Query, maxTokens: number): Passage {
  const { messageId, eventId, conversationId, role, createdAt } = message;
  const fits = estimateTextTokens(whole) <= maxTokens;
  const text = fits ? whole : cutToTokens(whole, query, maxTokens);
  return {
    id: formatMessageId(messageId),
    eventId,
    conversationId,
    role,
    createdAt,
    text,
    tokens: estimateTextTokens(text),
    isWhole: fits,
  };
}

/** The stretch of a text that matches most of the question, verbatim except for white space. */
function cutToTokens(text: string, query: Query, maxTokens: number): string {
  let maxChars = maxTokens * 5;
  for (;;) {
    const cut = makeSnippet(text, query, { maxChars }).text;
    if (estimateTextTokens(cut) <= maxTokens || maxChars <= 40) return cut;
    maxChars = Math.floor(maxChars * 0.75);
  }
}

export function renderPassage({ id, role, createdAt, text }: Passage): string {
  return `[${id}] ${role}, ${new Date(createdAt).toISOString().slice(0, 16).replace("T", " ")}\n${text}`;
}

/** A model's answer, after its ids were checked. */
export type Written = Pick<CheckedAnswer, "text" | "citedIds" | "uncited">;

export function finishAnswer(
  gathered: Gathered,
  written: Written | null,
  failure: AskFailure | null,
  maxTokens: number,
): AskResult {
  const { passages } = gathered;
  const byConversation = Map.groupBy(passages, ({ conversationId }) => conversationId);
  const sourceConversationIds = [...byConversation.keys()];
  const sum = (some: readonly Passage[]): number => some.reduce((total, { tokens }) => total + tokens, 0);
  const shown = written ? null : fitPassages(passages, maxTokens);
  return {
    answer:
      written?.text ??
      (shown && shown.length > 0
        ? shown.map(renderPassage).join("\n\n")
        : "Nothing in the archive speaks of this."),
    answeredBy: written ? "model" : passages.length > 0 ? "passages" : "nothing",
    citedIds: written?.citedIds ?? (shown ?? []).map(({ id }) => id),
    sourceConversationIds,
    sourceConversationId: sourceConversationIds.length === 1 ? (sourceConversationIds[0] ?? null) : null,
    expandedSummaryCount: gathered.expandedSummaryCount,
    totalSourceTokens: sum(passages),
    truncated: gathered.truncated || (shown !== null && shown.length < passages.length),
    conversationBreakdown: [...byConversation].map(([conversationId, some]) => ({
      conversationId,
      passages: some.length,
      tokens: sum(some),
    })),
    skippedConversations: gathered.skippedConversations,
    passages,
    failure,
    uncitedClaims: written?.uncited ?? [],
    notes: [...gathered.notes, ...noteUncited(written?.uncited ?? [])],
  };
}

function noteUncited(uncited: readonly string[]): string[] {
  const [first] = uncited;
  if (first === undefined) return [];
  const clipped = first.length > 120 ? `${first.slice(0, 120)}…` : first;
  return uncited.length === 1
    ? [`One sentence cites no passage and cannot be checked: "${clipped}"`]
    : [`${uncited.length} sentences cite no passage and cannot be checked, the first: "${clipped}"`];
}

/** As many of the best passages as fit into the answer's length; always at least one. */
function fitPassages(passages: readonly Passage[], maxTokens: number): Passage[] {
  let room = maxTokens;
  return passages.filter(({ tokens }, at) => {
    room -= tokens + FRAME_TOKENS;
    return at === 0 || room >= 0;
  });
}

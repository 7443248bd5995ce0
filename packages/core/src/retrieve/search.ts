/**
 * Full-text search over messages. A question as typed works: first every term is asked for (strict); when that finds too little, any of
 * them (relaxed), best first. The answer says which rule found it and how many there are.
 */
import { searchText, viewMessage } from "../message/normalize.ts";
import type { Store } from "../store/store.ts";
import { analyzeQuery, buildMatch, makeSnippet } from "../text/index.ts";
import type { Query, SnippetRange } from "../text/index.ts";

export interface SearchQuestion {
  readonly query: string;
  readonly limit: number;
  readonly offset?: number;
  readonly conversationIds?: readonly number[];
  readonly owner?: string;
}

export interface SearchResultHit {
  readonly id: string;
  readonly type: "message";
  readonly messageId: number;
  readonly eventId: string;
  readonly conversationId: number;
  readonly seq: number;
  readonly role: string;
  readonly createdAt: number;
  readonly snippet: string;
  /** Where the snippet matches. */
  readonly ranges: readonly SnippetRange[];
  readonly score: number;
}

export interface SearchAnswer {
  readonly hits: SearchResultHit[];
  readonly total: number;
  /** Which rule found the hits: all terms, any term, or nothing to look for. */
  readonly rule: "strict" | "relaxed" | "empty";
}

const SNIPPET_CHARS = 200;

export async function searchMessages(store: Store, question: SearchQuestion): Promise<SearchAnswer> {
  const query = analyzeQuery(question.query);
  const strict = buildMatch(query, { mode: "strict" });
  if (strict === "") return { hits: [], total: 0, rule: "empty" };
  const found = await store.search(toRequest(question, strict));
  if (found.total > 0) return { hits: await describeHits(store, query, found.hits), total: found.total, rule: "strict" };
  const relaxed = await store.search(toRequest(question, buildMatch(query, { mode: "relaxed" })));
  return { hits: await describeHits(store, query, relaxed.hits), total: relaxed.total, rule: "relaxed" };
}

function toRequest(question: SearchQuestion, match: string): Parameters<Store["search"]>[0] {
  return {
    match,
    limit: question.limit,
    offset: question.offset ?? 0,
    ...(question.conversationIds ? { conversationIds: question.conversationIds } : {}),
    ...(question.owner === undefined ? {} : { owner: question.owner }),
  };
}

async function describeHits(
  store: Store,
  query: Query,
  hits: readonly { messageId: number; score: number }[],
): Promise<SearchResultHit[]> {
  const described: SearchResultHit[] = [];
  for (const { messageId, score } of hits) {
    const message = await store.readMessage(messageId);
    if (!message) continue;
    const { row } = message;
    const snippet = makeSnippet(searchText(viewMessage(message.bytes)), query, { maxChars: SNIPPET_CHARS });
    described.push({
      id: `msg_${messageId}`,
      type: "message",
      messageId,
      eventId: row.eventId,
      conversationId: row.conversationId,
      seq: row.seq,
      role: row.role,
      createdAt: row.createdAt,
      snippet: snippet.text,
      ranges: snippet.ranges,
      score,
    });
  }
  return described;
}

/**
 * Plain full-text search over messages, for callers that name conversations themselves: the command line and the recall cue. `grep.ts` does
 * the work.
 */
import type { Store } from "../store/store.ts";
import { grepFullText, MAX_LIMIT } from "./grep.ts";
import type { MessageHit } from "./grep.ts";

export interface SearchRequest {
  readonly query: string;
  readonly limit: number;
  readonly offset?: number;
  readonly conversationIds?: readonly number[];
  readonly owner?: string;
  /** Also search the calls and results of our own tools. */
  readonly includeRecall?: boolean;
}

export type SearchResultHit = MessageHit;

export interface SearchResult {
  readonly hits: SearchResultHit[];
  readonly total: number;
  /** Whether something matches everything asked for, or only parts of it, or nothing was asked for. */
  readonly rule: "strict" | "relaxed" | "empty";
}

export async function searchMessages(store: Store, question: SearchRequest): Promise<SearchResult> {
  const { owner, conversationIds, query: pattern, limit, includeRecall } = question;
  if (pattern.trim() === "") return { hits: [], total: 0, rule: "empty" };
  const scope = {
    owner,
    conversationIds,
  };
  const reach = { scope, owner, grant: null, label: "" };
  const hits: SearchResultHit[] = [];
  for (let after = `at_${question.offset ?? 0}`; ;) {
    const size = Math.min(MAX_LIMIT, limit - hits.length);
    const page = await grepFullText(
      store,
      {
        pattern,
        scope: "messages",
        sort: "relevance",
        limit: size,
        after,
        includeRecall,
      },
      reach,
      { now: 0 },
    );
    hits.push(...page.hits.flatMap((hit) => (hit.type === "message" ? [hit] : [])));
    if (page.next === null || hits.length >= limit) {
      const rule = page.rule === "empty" ? "empty" : page.complete > 0 ? "strict" : "relaxed";
      return { hits, total: page.total, rule };
    }
    after = page.next;
  }
}

/**
 * The verbs that find and open stored messages: search, grep, describe, expand. Each resolves who asks and what they may see, enforces the
 * limits of a grant, and calls `recall/`, which ranks and renders.
 */
import { EngineError } from "../model/errors.ts";
import { describe as describeItem } from "../recall/describe.ts";
import type { DescribeRequest, DescribeResult } from "../recall/describe.ts";
import { DEFAULT_EXPAND_DEPTH, expand as expandSummaries } from "../recall/expand.ts";
import type { ExpandRequest, ExpandResult } from "../recall/expand.ts";
import { grepFullText, MAX_LIMIT } from "../recall/grep.ts";
import type { FoundConversation, FoundHits, GrepRequest, GrepResult } from "../recall/grep.ts";
import { grepRegex, readAsWords } from "../recall/regex.ts";
import type { Reach } from "../recall/reach.ts";
import type { ConversationRow } from "../store/store.ts";
import { searchMessages } from "../recall/search.ts";
import type { SearchRequest, SearchResult } from "../recall/search.ts";
import { addHeadings } from "./headings.ts";
import { capTokens, findReach } from "./reach.ts";
import type { EngineState } from "./state.ts";

export async function search({ store }: EngineState, request: SearchRequest): Promise<SearchResult> {
  return searchMessages(store, request);
}

export async function grep(engine: EngineState, request: GrepRequest): Promise<GrepResult> {
  const found = await findHits(engine, request);
  const known = new Map(found.conversations?.map((one) => [one.conversationId, one]));
  const ids = [...new Set(found.hits.map((hit) => hit.conversationId))];
  const readRow = (id: number): Promise<ConversationRow | null> => engine.store.readConversation(id);
  if (request.withHeadings === true) {
    const headed = await addHeadings(engine.store, (await Promise.all(ids.map(readRow))).filter(isThere));
    return { ...found, conversations: headed.map((row) => ({ ...toFound(row), heading: row.heading })) };
  }
  const rows = await Promise.all(ids.map((id) => known.get(id) ?? readRow(id)));
  return { ...found, conversations: rows.filter(isThere).map(toFound) };
}

const isThere = <T>(row: T | null): row is T => row !== null;

const toFound = (row: FoundConversation): FoundConversation => {
  const { conversationId, sessionKey, sessionId, agent, project, title, lastAt } = row;
  return { conversationId, sessionKey, sessionId, agent, project, title, lastAt };
};

async function findHits(engine: EngineState, request: GrepRequest): Promise<FoundHits> {
  const reach = await findReach(engine, request);
  if (reach.grant && reach.grant.summaryIds.length > 0) {
    throw new EngineError("denied", "cannot search: the grant of this session is for named summaries", {
      step: { kind: "expand_granted", ids: reach.grant.summaryIds },
    });
  }
  const now = engine.clock.now();
  if (request.scope !== "files" && request.mode === "full_text")
    return grepFullText(engine.store, request, reach, {
      now,
      withConversations: true,
      embedQuestion: () => engine.writer.embedQuestion({ text: request.pattern, signal: request.signal }),
    });
  const found = await grepByExpression(engine, request, reach);
  const words = readAsWords(request.pattern);
  if (found.total > 0 || found.truncated || request.scope === "files" || words === "") return found;
  const answer = await grepFullText(engine.store, { ...request, pattern: words, mode: "full_text" }, reach, {
    now,
    withConversations: true,
  });
  const notes = answer.notes.filter(({ step }) => step?.kind !== "search_regex");
  return {
    ...answer,
    notes: [
      {
        text: "No text matches the regular expression; this is what full text finds for its words.",
        step: null,
      },
      ...notes,
    ],
  };
}

function grepByExpression(engine: EngineState, request: GrepRequest, reach: Reach): Promise<FoundHits> {
  const pattern = request.mode === "full_text" ? escapePattern(request.pattern) : request.pattern;
  return grepRegex(engine.store, engine.recall.scanner, { ...request, pattern }, reach, Date.now());
}

export async function describe(engine: EngineState, request: DescribeRequest): Promise<DescribeResult> {
  const reach = await findReach(engine, request);
  const tokenCap = capTokens(engine, request.tokenCap, reach);
  const described = await describeItem(engine.store, request, reach, tokenCap);
  await charge(
    engine,
    reach,
    described.type === "messages"
      ? described.messages.reduce((sum, { tokens }) => sum + tokens, 0)
      : tokenCap,
  );
  return described;
}

export async function expand(engine: EngineState, request: ExpandRequest): Promise<ExpandResult> {
  const reach = await findReach(engine, request);
  const summaryIds = await chooseSummaries(engine, request, reach);
  const answer = await expandSummaries(engine.store, { ...request, summaryIds }, reach, {
    firstIds: await findMentions(engine, request, reach),
    tokenCap: capTokens(engine, request.tokenCap, reach),
    maxDepth: Math.min(request.maxDepth ?? DEFAULT_EXPAND_DEPTH, reach.grant?.maxDepth ?? Infinity),
  });
  await charge(engine, reach, answer.totalTokens);
  return answer;
}

/** The named summaries, or those found by full text. */
async function chooseSummaries(
  engine: EngineState,
  request: ExpandRequest,
  reach: Reach,
): Promise<readonly string[]> {
  if (request.summaryIds && request.summaryIds.length > 0) return request.summaryIds;
  const query = request.query?.trim() ?? "";
  if (query === "")
    throw new EngineError("usage", "cannot expand: name summaryIds or a query", {
      step: { kind: "find_ids" },
    });
  if (reach.grant && reach.grant.summaryIds.length > 0) return reach.grant.summaryIds;
  const found = await grepFullText(
    engine.store,
    { ...request, pattern: query, scope: "summaries", limit: 10, sort: "relevance" },
    reach,
    { now: engine.clock.now() },
  );
  return found.hits.flatMap((hit) => (hit.type === "summary" ? [hit.summaryId] : []));
}

/** The messages that match the query: they come first when a query chose the summaries. */
async function findMentions(engine: EngineState, request: ExpandRequest, reach: Reach): Promise<number[]> {
  const pattern = request.query?.trim() ?? "";
  if (pattern === "") return [];
  const { hits } = await grepFullText(
    engine.store,
    { pattern, scope: "messages", limit: MAX_LIMIT, sort: "relevance" },
    reach,
    { now: engine.clock.now() },
  );
  return hits.flatMap((hit) => (hit.type === "message" ? [hit.messageId] : []));
}

async function charge({ writer, clock }: EngineState, { grant }: Reach, tokens: number): Promise<void> {
  if (grant !== null) await writer.chargeGrant({ grantId: grant.grantId, tokens, at: clock.now() });
}

/** Files have no word index: a full-text pattern is searched for literally in their lines. */
const escapePattern = (text: string): string => text.trim().replace(/[\\^$.*+?()[\]{}|]/g, "\\$&");

/**
 * Changing published summaries: a new one takes the place of an old one wherever that stands, in the cover or below another summary; or a
 * summary gives way to what it was made from. Spans and counts stay those of the sources, so cover and graph stay right.
 */
import { EngineError, must } from "../../model/errors.ts";
import { formatMessageId } from "../../model/ids.ts";
import { HIDDEN } from "../../model/message.ts";
import type { DissolveReport, ReplaceOutcome, SummaryReplacement } from "../care.ts";
import type { RunItem } from "../folding.ts";
import type { Connection, Row } from "./connection.ts";
import type { StoreContext } from "./context.ts";
import { ConversationHead } from "./conversation-head.ts";
import { hashSummary, toRunItems } from "./fold.ts";

const SUMMARY = "SELECT * FROM summaries WHERE summary_id = ?";
const SOURCES = `
  SELECT l.ordinal, m.message_id, NULL AS summary_id, m.position AS start_pos, m.position AS end_pos, m.seq, m.hidden_now AS hidden,
         coalesce(n.tokens, m.tokens) AS tokens, CASE WHEN m.hidden_now = 0 THEN 1 ELSE 0 END AS messages, m.created_at AS earliest_at,
         coalesce(m.newest, m.message_id) AS version_id, -1 AS depth
  FROM summary_messages l JOIN messages m USING (message_id) LEFT JOIN messages n ON n.message_id = m.newest WHERE l.summary_id = ?1
  UNION ALL
  SELECT p.ordinal, NULL, s.summary_id, s.start_pos, s.end_pos, s.start_seq,
         CASE WHEN s.messages = 0 THEN ${HIDDEN.branch} ELSE 0 END, s.tokens, s.messages, s.earliest_at, NULL, s.depth
  FROM summary_parents p JOIN summaries s ON s.summary_id = p.parent_summary_id WHERE p.summary_id = ?1
  ORDER BY 1`;
const INSERT_LIKE = `
  INSERT INTO summaries (summary_id, conversation_id, kind, depth, state, start_pos, start_seq, end_pos, end_seq, messages,
    descendant_count, tokens, source_tokens, earliest_at, latest_at, content, hash, model, level, is_root, made_at_seq, published_seq, created_at)
  SELECT ?2, conversation_id, kind, depth, state, start_pos, start_seq, end_pos, end_seq, ?3,
    descendant_count, ?4, ?5, earliest_at, latest_at, ?6, ?7, ?8, ?9, is_root, ?10, CASE state WHEN 'cover' THEN ?10 END, ?11
  FROM summaries WHERE summary_id = ?1`;
const COPY_MESSAGES = `
  INSERT INTO summary_messages (summary_id, ordinal, message_id)
  SELECT ?2, ordinal, message_id FROM summary_messages WHERE summary_id = ?1`;
const COPY_SOURCES = `
  INSERT INTO summary_parents (summary_id, ordinal, parent_summary_id)
  SELECT ?2, ordinal, parent_summary_id FROM summary_parents WHERE summary_id = ?1`;
const MOVE_DERIVED = "UPDATE summary_parents SET parent_summary_id = ?2 WHERE parent_summary_id = ?1";
const RETIRE = "UPDATE summaries SET state = 'retired' WHERE summary_id = ?";
/** A text that was made ahead for the same place is not wanted any more. */
const RETIRE_WAITING = `
  UPDATE summaries SET state = 'retired'
  WHERE state = 'prepared' AND (conversation_id, depth, start_pos, start_seq, end_pos, end_seq) =
    (SELECT conversation_id, depth, start_pos, start_seq, end_pos, end_seq FROM summaries WHERE summary_id = ?)`;
const ITEM =
  "SELECT start_pos, seq, tokens, messages, hidden FROM context_items WHERE conversation_id = ? AND summary_id = ?";
const SET_ITEM = `
  UPDATE context_items SET summary_id = ?, tokens = ?, messages = ?, hidden = ? WHERE conversation_id = ? AND start_pos = ? AND seq = ?`;
const DELETE_ITEM = "DELETE FROM context_items WHERE conversation_id = ? AND start_pos = ? AND seq = ?";
const INSERT_ITEM = `
  INSERT INTO context_items (conversation_id, start_pos, seq, end_pos, message_id, summary_id, tokens, messages, depth, hidden)
  VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`;
const COUNT_ITEMS = `
  SELECT count(*) FILTER (WHERE (start_pos, seq) < (?2, ?3)) AS before, count(*) FILTER (WHERE (start_pos, seq) > (?2, ?3)) AS behind
  FROM context_items WHERE conversation_id = ?1`;
/** What was made ahead from a summary cannot be published once that summary has left the cover. */
const RETIRE_DERIVED = `
  UPDATE summaries SET state = 'retired' WHERE state IN ('prepared', 'reserve')
    AND summary_id IN (SELECT summary_id FROM summary_parents WHERE parent_summary_id = ?)`;

export function readSources({ connection, files }: StoreContext, summaryId: string): RunItem[] {
  return connection.read(() => toRunItems(connection, files, connection.all(SOURCES, summaryId)));
}

export function replaceSummary(
  context: StoreContext,
  replacement: SummaryReplacement,
  now: number,
): ReplaceOutcome {
  const { connection } = context;
  return connection.write(() => {
    const old = connection.get(SUMMARY, replacement.oldId);
    if (!old || old.state !== "cover" || !hasSources(connection, replacement)) return { kind: "stale" };
    const head = ConversationHead.read(connection, old.conversation_id as number);
    putInstead(context, head, replacement, now);
    head.save(connection, now);
    const { summaryId, tokens } = replacement.summary;
    return { kind: "replaced", summaryId, tokensBefore: old.tokens as number, tokensAfter: tokens };
  });
}

/** Whether a summary still has the sources, in the versions, that a new text was made from. */
export function hasSources(
  connection: Connection,
  { oldId, sourceKeys }: Pick<SummaryReplacement, "oldId" | "sourceKeys">,
): boolean {
  const present = connection
    .all<{ summary_id: string | null; version_id: number | null }>(SOURCES, oldId)
    .map((row) => row.summary_id ?? `m${row.version_id}`);
  return present.length === sourceKeys.length && present.every((key, i) => key === sourceKeys[i]);
}

/** Inside the caller's transaction: the new summary stands wherever the old one stood, and the old one is retired. */
export function putInstead(
  { connection, index }: StoreContext,
  head: ConversationHead,
  { oldId, summary, sourceTokens }: Omit<SummaryReplacement, "sourceKeys">,
  now: number,
): void {
  const { conversationId } = head;
  const { summaryId, content, tokens, model, level } = summary;
  const old: Row = must(connection.get(SUMMARY, oldId), `summary ${oldId}`);
  const messages = connection
    .all<{ messages: number }>(SOURCES, oldId)
    .reduce((sum, row) => sum + row.messages, 0);
  const facts = {
    summaryId,
    conversationId,
    kind: old.kind as string,
    depth: old.depth as number,
    content,
    tokens,
    model,
    level,
    createdAt: now,
  };
  connection.run(
    INSERT_LIKE,
    oldId,
    summaryId,
    messages,
    tokens,
    sourceTokens,
    content,
    hashSummary(facts),
    model,
    level,
    head.seq,
    now,
  );
  connection.run(COPY_MESSAGES, oldId, summaryId);
  connection.run(COPY_SOURCES, oldId, summaryId);
  connection.run(MOVE_DERIVED, oldId, summaryId);
  connection.run(RETIRE, oldId);
  connection.run(RETIRE_WAITING, oldId);
  index.addSummary({ summaryId, conversationId, content });
  const item = connection.get<ItemRow>(ITEM, conversationId, oldId);
  if (item) {
    // A summary of which nothing is shown any more is not shown either.
    const hidden = messages > 0 ? 0 : item.hidden || HIDDEN.branch;
    connection.run(SET_ITEM, summaryId, tokens, messages, hidden, conversationId, item.start_pos, item.seq);
    head.noteShown(
      messages - item.messages,
      (hidden === 0 ? tokens : 0) - (item.hidden === 0 ? item.tokens : 0),
    );
  }
  head.noteSummary(item !== undefined);
}

interface ItemRow {
  start_pos: number;
  seq: number;
  tokens: number;
  messages: number;
  hidden: number;
}

export function dissolveSummary(
  { connection }: StoreContext,
  { summaryId, isDry, now }: { summaryId: string; isDry: boolean; now: number },
): DissolveReport | null {
  const work = (): DissolveReport | null => {
    const summary = connection.get(SUMMARY, summaryId);
    if (!summary)
      throw new EngineError("not_found", `cannot dissolve ${summaryId}: there is no such summary`);
    const conversationId = summary.conversation_id as number;
    const item = connection.get<ItemRow>(ITEM, conversationId, summaryId);
    if (!item) return null;
    const sources = connection.all(SOURCES, summaryId);
    const places = connection.get<{ before: number; behind: number }>(
      COUNT_ITEMS,
      conversationId,
      item.start_pos,
      item.seq,
    );
    const tokensBefore = item.hidden === 0 ? item.tokens : 0;
    const tokensAfter = sources.reduce(
      (sum, row) => sum + (row.hidden === 0 ? (row.tokens as number) : 0),
      0,
    );
    if (!isDry)
      putSourcesBack(connection, conversationId, summaryId, item, sources, tokensAfter - tokensBefore, now);
    return {
      summaryId,
      conversationId,
      sources: sources.map((row) => ({
        id: (row.summary_id as string | null) ?? formatMessageId(row.message_id as number),
        tokens: row.tokens as number,
        isShown: row.hidden === 0,
      })),
      tokensBefore,
      tokensAfter,
      ordinal: places?.before ?? 0,
      itemsBehind: places?.behind ?? 0,
    };
  };
  return isDry ? connection.read(work) : connection.write(work);
}

function putSourcesBack(
  connection: Connection,
  conversationId: number,
  summaryId: string,
  item: { start_pos: number; seq: number },
  sources: readonly Row[],
  tokensMore: number,
  now: number,
): void {
  const head = ConversationHead.read(connection, conversationId);
  connection.run(DELETE_ITEM, conversationId, item.start_pos, item.seq);
  for (const row of sources) {
    connection.run(
      INSERT_ITEM,
      conversationId,
      row.start_pos as number,
      row.seq as number,
      row.end_pos as number,
      row.message_id as number | null,
      row.summary_id as string | null,
      row.tokens as number,
      row.summary_id === null ? 1 : (row.messages as number),
      row.depth as number,
      row.hidden as number,
    );
  }
  connection.run(RETIRE, summaryId);
  connection.run(RETIRE_DERIVED, summaryId);
  head.noteShown(0, tokensMore);
  head.noteSummary(true, 0);
  head.save(connection, now);
}

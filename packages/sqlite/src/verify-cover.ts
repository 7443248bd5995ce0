/**
 * Checks the cover of one conversation: its items, in order, stand for every first message exactly once, directly or through the
 * one summary it lies under, and the counters say what was counted. Both sides are walked in step, page by page.
 */
import { formatMessageId } from "@lossless/core/adapter";
import type { Connection, Row } from "./connection.ts";
import { checkCounter } from "./verify-problems.ts";
import type { HiddenChanges, Problems } from "./verify-problems.ts";

const PAGE = 512;

const ITEMS_PAGE = `
  SELECT start_pos, seq, end_pos, message_id, summary_id, tokens, messages, depth, hidden FROM context_items
  WHERE conversation_id = ? AND (start_pos, seq) > (?, ?) ORDER BY start_pos, seq LIMIT ${PAGE}`;
const MESSAGES_PAGE = `
  SELECT m.message_id, m.position, m.seq, m.hidden, m.hidden_now, coalesce(n.tokens, m.tokens) AS tokens
  FROM messages m LEFT JOIN messages n ON n.message_id = m.newest
  WHERE m.conversation_id = ? AND m.revises IS NULL AND (m.position, m.seq) > (?, ?)
  ORDER BY m.position, m.seq LIMIT ${PAGE}`;
const SUMMARY = `
  SELECT kind, depth, tokens, messages, start_pos, start_seq AS seq, end_pos, state FROM summaries WHERE summary_id = ?`;
const SOURCES = `
  SELECT ordinal, message_id, NULL AS source_id FROM summary_messages WHERE summary_id = ?1
  UNION ALL SELECT ordinal, NULL, parent_summary_id FROM summary_parents WHERE summary_id = ?1 ORDER BY ordinal`;

export function checkCover(
  connection: Connection,
  conversation: Row,
  changes: HiddenChanges,
  problems: Problems,
): void {
  const id = conversation.conversation_id as number;
  const name = `conversation ${id}`;
  const messages = walk(connection, MESSAGES_PAGE, id, "position");
  let shownMessages = 0;
  let shownTokens = 0;

  for (const item of walk(connection, ITEMS_PAGE, id, "start_pos")) {
    const covered =
      item.message_id !== null ? [item.message_id as number] : messagesUnder(connection, item, problems);
    for (const messageId of covered) {
      const next = messages.next();
      if (next.done) {
        problems.add(
          "cover",
          formatMessageId(messageId),
          `the cover of ${name} names ${formatMessageId(messageId)} where no message is left`,
        );
        continue;
      }
      const expected = next.value;
      if (expected.message_id !== messageId) {
        const wanted = formatMessageId(expected.message_id as number);
        problems.add(
          "cover",
          wanted,
          `the cover of ${name} has ${formatMessageId(messageId)} in the place of ${wanted}`,
        );
      }
      checkHidden(expected, changes, problems);
      if (item.message_id !== null) checkItem(item, expected, problems);
    }
    if (item.hidden === 0) {
      shownMessages += item.messages as number;
      shownTokens += item.tokens as number;
    }
  }
  for (const missing of messages) {
    const wanted = formatMessageId(missing.message_id as number);
    problems.add("cover", wanted, `${wanted} is not covered by the context of ${name}`);
  }
  checkCounter(conversation, "shown_messages", shownMessages, name, problems);
  checkCounter(conversation, "shown_tokens", shownTokens, name, problems);
}

/** Rows of a paged query, in key order. */
function* walk(connection: Connection, sql: string, conversationId: number, key: string): Generator<Row> {
  for (let after: [number, number] = [-1, -1]; ;) {
    const page = connection.all(sql, conversationId, ...after);
    yield* page;
    const last = page.at(-1);
    if (!last || page.length < PAGE) return;
    after = [last[key] as number, last.seq as number];
  }
}

/** What hides a message now is what hid it when it arrived, and what the ledger tells since. */
function checkHidden(message: Row, changes: HiddenChanges, problems: Problems): void {
  let hidden = message.hidden as number;
  for (const change of changes.get(message.seq as number) ?? []) {
    hidden = change.hide ? hidden | change.mask : hidden & ~change.mask;
  }
  if (hidden === message.hidden_now) return;
  const name = formatMessageId(message.message_id as number);
  problems.add("derived", name, `hidden_now of ${name} is ${message.hidden_now}, the ledger says ${hidden}`);
}

function checkItem(item: Row, message: Row, problems: Problems): void {
  const name = formatMessageId(message.message_id as number);
  const wanted = {
    start_pos: message.position,
    end_pos: message.position,
    seq: message.seq,
    tokens: message.tokens,
    messages: 1,
    depth: -1,
    hidden: message.hidden_now,
  } as const;
  for (const [column, value] of Object.entries(wanted)) {
    if (item[column] !== value) {
      problems.add("cover", name, `the item of ${name} has ${column} ${item[column]}, expected ${value}`);
    }
  }
}

function messagesUnder(connection: Connection, item: Row, problems: Problems): number[] {
  const id = item.summary_id as string;
  const summary = connection.get(SUMMARY, id);
  if (!summary) {
    problems.add("dangling_link", id, `the context names ${id}, which does not exist`);
    return [];
  }
  for (const column of ["tokens", "messages", "depth", "start_pos", "seq", "end_pos"] as const) {
    if (summary[column] !== item[column])
      problems.add(
        "cover",
        id,
        `the item of ${id} has ${column} ${item[column]}, expected ${summary[column]}`,
      );
  }
  if ((item.hidden === 0) !== (summary.messages as number) > 0) {
    problems.add(
      "cover",
      id,
      `the item of ${id} has hidden ${item.hidden}, and ${summary.messages} messages under it are shown`,
    );
  }
  if (summary.state !== "cover")
    problems.add("cover", id, `the context shows ${id}, which is ${summary.state}`);
  return [...leafMessages(connection, id)];
}

/** Messages below a summary, oldest first, however deep. */
function* leafMessages(connection: Connection, summaryId: string): Generator<number> {
  const sources = connection.all<{ message_id: number | null; source_id: string | null }>(SOURCES, summaryId);
  for (const { message_id: messageId, source_id: sourceId } of sources) {
    if (messageId !== null) yield messageId;
    else if (sourceId !== null) yield* leafMessages(connection, sourceId);
  }
}

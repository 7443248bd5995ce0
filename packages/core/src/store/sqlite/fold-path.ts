/**
 * The way from an item of the cover down to the leaf that holds a message. Rows that arrive late, are revised, hidden or shown inside
 * a folded span change what the summaries above them stand for: counts are kept right at once, the texts become stale and are remade.
 */
import { must } from "../../model/errors.ts";
import { HIDDEN } from "../../model/message.ts";
import type { Connection } from "./connection.ts";
import type { ConversationHead } from "./conversation-head.ts";

const ITEM_BEFORE = `
  SELECT start_pos, seq, end_pos, summary_id FROM context_items
  WHERE conversation_id = ?1 AND (start_pos, seq) <= (?2, ?3) ORDER BY start_pos DESC, seq DESC LIMIT 1`;
const SOURCE_AROUND = `
  SELECT s.summary_id FROM summary_parents p JOIN summaries s ON s.summary_id = p.parent_summary_id
  WHERE p.summary_id = ?1 AND (s.start_pos, s.start_seq) <= (?2, ?3) AND (s.end_pos, s.end_seq) >= (?2, ?3)`;
const COUNT_MORE = `
  UPDATE summaries SET messages = messages + ?2, stale = max(stale, ?2 <> 0) WHERE summary_id = ?1`;
const SELECT_ITEM =
  "SELECT tokens, messages, hidden FROM context_items WHERE conversation_id = ? AND start_pos = ? AND seq = ?";
const SET_ITEM = `
  UPDATE context_items SET messages = ?, hidden = ? WHERE conversation_id = ? AND start_pos = ? AND seq = ?`;
const SET_STALE = "UPDATE summaries SET stale = 1 WHERE summary_id = ?";
const SOURCES = `
  SELECT 'm' AS kind, ordinal FROM summary_messages WHERE summary_id = ?1
  UNION ALL SELECT 's', ordinal FROM summary_parents WHERE summary_id = ?1 ORDER BY ordinal DESC`;
const ORDINAL_AFTER = `
  SELECT coalesce(max(ordinal), -1) + 1 AS ordinal FROM (
    SELECT l.ordinal FROM summary_messages l JOIN messages m USING (message_id)
    WHERE l.summary_id = ?1 AND (m.position, m.seq) < (?2, ?3)
    UNION ALL
    SELECT p.ordinal FROM summary_parents p JOIN summaries s ON s.summary_id = p.parent_summary_id
    WHERE p.summary_id = ?1 AND (s.start_pos, s.start_seq) < (?2, ?3))`;
const SHIFT_MESSAGE =
  "UPDATE summary_messages SET ordinal = ordinal + 1 WHERE summary_id = ? AND ordinal = ?";
const SHIFT_SOURCE = "UPDATE summary_parents SET ordinal = ordinal + 1 WHERE summary_id = ? AND ordinal = ?";

interface Place {
  readonly conversation_id: number;
  readonly position: number;
  readonly seq: number;
}

interface Path {
  readonly item: { start_pos: number; seq: number };
  /** From the summary in the cover down to the one that holds, or would hold, the message itself. */
  readonly summaries: readonly string[];
}

/** The summaries a place lies under; null when it lies under none. */
function findPath(connection: Connection, place: Place): Path | null {
  const item = connection.get<{ start_pos: number; seq: number; end_pos: number; summary_id: string | null }>(
    ITEM_BEFORE,
    place.conversation_id,
    place.position,
    place.seq,
  );
  if (!item || item.summary_id === null || place.position > item.end_pos) return null;
  const summaries = [item.summary_id];
  for (;;) {
    const lowest = must(summaries.at(-1), "the lowest summary");
    const below = connection.get<{ summary_id: string }>(SOURCE_AROUND, lowest, place.position, place.seq);
    if (!below) return { item, summaries };
    summaries.push(below.summary_id);
  }
}

const STALE_STAND_INS = `
  UPDATE summaries SET stale = 1
  WHERE conversation_id = ?1 AND state IN ('prepared', 'reserve') AND start_pos <= ?2 AND end_pos >= ?2`;

/** Whatever was made ahead over a place that changed says something old; it is never shown or published again. */
export function staleStandIns(connection: Connection, place: Place): void {
  connection.run(STALE_STAND_INS, place.conversation_id, place.position);
}

/** Puts a message that arrived inside a folded span under the lowest summary there. False: it lies in no folded span. */
export function coverLateMessage(
  connection: Connection,
  head: ConversationHead,
  message: { messageId: number; seq: number; position: number },
  hidden: number,
): boolean {
  const place = { conversation_id: head.conversationId, position: message.position, seq: message.seq };
  staleStandIns(connection, place);
  const path = findPath(connection, place);
  // A row at the very end of the span came after everything folded there.
  if (!path || isBehind(connection, path, place)) return false;
  const lowest = must(path.summaries.at(-1), "the lowest summary");
  const ordinal = must(
    connection.get<{ ordinal: number }>(ORDINAL_AFTER, lowest, place.position, place.seq),
    "the place among the sources",
  ).ordinal;
  for (const source of connection.all<{ kind: string; ordinal: number }>(SOURCES, lowest)) {
    if (source.ordinal < ordinal) break;
    connection.run(source.kind === "m" ? SHIFT_MESSAGE : SHIFT_SOURCE, lowest, source.ordinal);
  }
  connection.insert("summary_messages", { summary_id: lowest, ordinal, message_id: message.messageId });
  const shown = hidden === 0 ? 1 : 0;
  countPath(connection, head, path, place, shown);
  head.noteShown(shown, 0);
  return true;
}

const END_OF = "SELECT end_pos, end_seq FROM summaries WHERE summary_id = ?";

function isBehind(connection: Connection, path: Path, place: Place): boolean {
  const end = connection.get<{ end_pos: number; end_seq: number }>(END_OF, path.summaries[0] ?? "");
  return (
    end !== undefined &&
    (place.position > end.end_pos || (place.position === end.end_pos && place.seq > end.end_seq))
  );
}

/** A folded message was hidden or shown again: everything above counts one less or more, and says something old. */
export function countUnderSummaries(
  connection: Connection,
  head: ConversationHead,
  place: Place,
  shown: number,
): void {
  staleStandIns(connection, place);
  const path = findPath(connection, place);
  if (path) countPath(connection, head, path, place, shown);
}

/** A folded message was revised: what stands above it tells of the version before. */
export function markStale(connection: Connection, place: Place): void {
  staleStandIns(connection, place);
  for (const summaryId of findPath(connection, place)?.summaries ?? []) connection.run(SET_STALE, summaryId);
}

function countPath(
  connection: Connection,
  head: ConversationHead,
  path: Path,
  place: Place,
  shown: number,
): void {
  for (const summaryId of path.summaries) connection.run(COUNT_MORE, summaryId, shown);
  const key = [place.conversation_id, path.item.start_pos, path.item.seq] as const;
  const item = must(
    connection.get<{ tokens: number; messages: number; hidden: number }>(SELECT_ITEM, ...key),
    "the item above",
  );
  const messages = item.messages + shown;
  // A summary of which nothing is shown any more is not shown either: it would tell what is hidden.
  const hidden = messages === 0 ? HIDDEN.branch : 0;
  connection.run(SET_ITEM, messages, hidden, ...key);
  head.noteShown(0, (hidden === 0 ? item.tokens : 0) - (item.hidden === 0 ? item.tokens : 0));
}

/**
 * Forgetting: the one way in which something stored is erased. Body and salt go, the commitment stays, so the chain can still be walked
 * and says nothing about the text. A record in the chain tells which messages and files went, and why. Summaries that rest on them are
 * replaced by new ones under new ids; of the old ones only a note is left that says so.
 *
 * Invariant: after the transaction no row and no term of the index holds the text; after `wipeFreed` no page of the file does.
 */
import type { Heads } from "../../archive/heads.ts";
import { hashSummary } from "../../archive/summary.ts";
import type { Row } from "../../archive/tables.ts";
import { ATTACHMENT_PREFIX, HIDDEN } from "../../model/message.ts";
import { estimateTextTokens } from "../../model/tokens.ts";
import type { ForgetOutcome, ForgetPlan, ForgetRequest } from "../care.ts";
import type { Connection } from "./connection.ts";
import type { StoreContext } from "./context.ts";
import { openHeads } from "./placement.ts";
import { hasSources, putInstead } from "./replace.ts";
import { eraseRedaction } from "./redactions.ts";
import { hideInCover } from "./records.ts";
import { dropUnfinished } from "./reindex.ts";
import { watchSealed } from "./seals.ts";
import { dropVectors } from "./vectors.ts";

/** All versions of the events that the given ids belong to, and of what is attached to them: `media:<event id>:<number>`. */
const VERSIONS = `
  WITH named AS (SELECT DISTINCT coalesce(m.revises, m.message_id) AS id FROM json_each(?1) j JOIN messages m ON m.message_id = j.value),
  attachments AS (
    SELECT a.message_id, a.session_ref, rtrim(substr(a.event_id, length('${ATTACHMENT_PREFIX}') + 1), '0123456789') AS owner
    FROM event_ids a
    WHERE a.session_ref IN (SELECT m.session_ref FROM named n JOIN messages m ON m.message_id = n.id)
      AND a.event_id >= '${ATTACHMENT_PREFIX}' AND a.event_id < '${ATTACHMENT_PREFIX}' || char(1114111)),
  firsts AS (
    SELECT id FROM named
    UNION SELECT a.message_id FROM attachments a
      JOIN event_ids o ON o.session_ref = a.session_ref AND o.event_id = substr(a.owner, 1, length(a.owner) - 1)
      WHERE o.message_id IN (SELECT id FROM named))
  SELECT m.message_id, m.conversation_id, m.seq, m.position, m.revises, m.hidden_now, m.arrival_bytes
  FROM firsts f JOIN messages m ON m.message_id = f.id OR m.revises = f.id
  WHERE m.forgotten_at IS NULL ORDER BY m.conversation_id, m.seq`;
const FILES = `
  SELECT DISTINCT f.file_id, f.conversation_id, f.storage_path, f.byte_size
  FROM json_each(?1) j JOIN message_parts p ON p.message_id = j.value JOIN large_files f ON f.file_id = p.file_id
  WHERE NOT EXISTS (SELECT 1 FROM message_parts o WHERE o.file_id = f.file_id AND o.message_id NOT IN (SELECT value FROM json_each(?1)))
  ORDER BY f.file_id`;
/** Every summary above the messages, however high and whatever its state. */
const TOUCHED = `
  WITH RECURSIVE touched (id) AS (
    SELECT l.summary_id FROM json_each(?1) j JOIN summary_messages l ON l.message_id = j.value
    UNION SELECT value FROM json_each(?2)
    UNION SELECT p.summary_id FROM touched t JOIN summary_parents p ON p.parent_summary_id = t.id)
  SELECT s.summary_id, s.conversation_id, s.depth, s.state, s.tokens FROM touched t JOIN summaries s ON s.summary_id = t.id
  ORDER BY s.depth, s.conversation_id, s.start_pos, s.summary_id`;
const DELETE_PARTS = "DELETE FROM message_parts WHERE message_id = ?";
const ERASE =
  "UPDATE messages SET body = x'', salt = x'', encoding = 0, forgotten_at = ? WHERE message_id = ?";
const SET_HIDDEN = "UPDATE messages SET hidden_now = ? WHERE message_id = ?";
const DELETE_FILE = "DELETE FROM large_files WHERE file_id = ?";
const SUMMARY = "SELECT * FROM summaries WHERE summary_id = ?";
const ERASE_SUMMARY =
  "UPDATE summaries SET state = 'retired', content = ?, tokens = ?, hash = ?, is_root = 0 WHERE summary_id = ?";
const DROP_DEBT = `
  DELETE FROM compaction_debt WHERE conversation_id = ?1
    AND NOT EXISTS (SELECT 1 FROM messages WHERE conversation_id = ?1 AND forgotten_at IS NULL)`;
const OPEN = "forgetting_open";
const IS_OPEN = "SELECT 1 AS found FROM meta WHERE key = ?";
const SET_OPEN =
  "INSERT INTO meta (key, value) VALUES (?, ?) ON CONFLICT DO UPDATE SET value = excluded.value";
const CLOSE = "DELETE FROM meta WHERE key = ?";

interface VersionRow {
  message_id: number;
  conversation_id: number;
  seq: number;
  position: number;
  revises: number | null;
  hidden_now: number;
  arrival_bytes: number;
}

interface FileRow {
  file_id: string;
  conversation_id: number;
  storage_path: string;
  byte_size: number;
}

interface TouchedRow {
  summary_id: string;
  conversation_id: number;
  depth: number;
  state: string;
  tokens: number;
}

/** What forgetting would touch, read in one transaction. */
interface Selection {
  readonly versions: readonly VersionRow[];
  readonly files: readonly FileRow[];
  readonly summaries: readonly TouchedRow[];
}

function select(
  connection: Connection,
  messageIds: readonly number[],
  alsoSummaryIds: readonly string[],
): Selection {
  const versions = connection.all<VersionRow>(VERSIONS, JSON.stringify(messageIds));
  const ids = JSON.stringify(versions.map((version) => version.message_id));
  return {
    versions,
    files: connection.all<FileRow>(FILES, ids),
    summaries: connection.all<TouchedRow>(TOUCHED, ids, JSON.stringify(alsoSummaryIds)),
  };
}

export function planForget(
  { connection }: StoreContext,
  messageIds: readonly number[],
  alsoSummaryIds: readonly string[],
): ForgetPlan {
  return connection.read(() => toPlan(select(connection, messageIds, alsoSummaryIds)));
}

function toPlan({ versions, files, summaries }: Selection): ForgetPlan {
  return {
    messageIds: versions.map((version) => version.message_id),
    conversationIds: [...new Set(versions.map((version) => version.conversation_id))],
    arrivalBytes: versions.reduce((sum, version) => sum + version.arrival_bytes, 0),
    files: files.map((file) => ({
      fileId: file.file_id,
      storagePath: file.storage_path,
      byteSize: file.byte_size,
    })),
    summaries: summaries.map((summary) => ({
      summaryId: summary.summary_id,
      conversationId: summary.conversation_id,
      depth: summary.depth,
      isPublished: summary.state === "cover",
      tokens: summary.tokens,
    })),
  };
}

export function forget(context: StoreContext, request: ForgetRequest): ForgetOutcome {
  const { connection } = context;
  const outcome = connection.write((): ForgetOutcome => {
    // Deleted content is overwritten where it stood, not only where that is free of charge.
    connection.exec("PRAGMA secure_delete = ON");
    const selection = select(connection, request.messageIds, request.alsoSummaryIds);
    if (!matches(connection, selection, request)) return { kind: "stale" };
    const heads = openHeads(connection);
    connection.run(SET_OPEN, OPEN, request.now);
    eraseMessages(context, heads, selection, request);
    replaceSummaries(context, heads, selection, request);
    heads.save(request.now);
    for (const conversationId of heads.ids) connection.run(DROP_DEBT, conversationId);
    context.index.compress();
    return { kind: "forgotten", plan: toPlan(selection) };
  });
  if (outcome.kind === "forgotten")
    for (const { storagePath } of outcome.plan.files) context.files.remove(storagePath);
  return outcome;
}

/** Whether the new texts are for exactly the published summaries that are touched, made from what those have now. */
function matches(connection: Connection, { summaries }: Selection, { replacements }: ForgetRequest): boolean {
  const published = summaries
    .filter((summary) => summary.state === "cover")
    .map((summary) => summary.summary_id);
  const offered = new Map(replacements.map((replacement) => [replacement.oldId, replacement]));
  if (published.length !== offered.size) return false;
  return published.every((id) => {
    const replacement = offered.get(id);
    return replacement !== undefined && hasSources(connection, replacement);
  });
}

function eraseMessages(
  { connection, index }: StoreContext,
  heads: Heads,
  { versions, files }: Selection,
  request: ForgetRequest,
): void {
  const { reason, now } = request;
  const seqs = new Map<number, number[]>();
  hide(connection, heads, versions);
  for (const version of versions) {
    const { conversation_id: conversationId, message_id: messageId } = version;
    const known = seqs.get(conversationId);
    if (known) known.push(version.seq);
    else seqs.set(conversationId, [version.seq]);
    connection.run(DELETE_PARTS, messageId);
    connection.run(ERASE, now, messageId);
    dropVectors(connection, messageId);
    eraseRedaction(connection, messageId);
    index.remove(messageId);
  }
  for (const { file_id: fileId } of files) connection.run(DELETE_FILE, fileId);
  const filesOf = (id: number): string[] =>
    files.filter((file) => file.conversation_id === id).map((file) => file.file_id);
  const touched = new Set([...seqs.keys(), ...files.map((file) => file.conversation_id)]);
  for (const id of touched) {
    heads
      .of(id)
      .takeRecord(connection, "forget", { reason, seqs: seqs.get(id) ?? [], files: filesOf(id) }, now);
  }
}

function hide(connection: Connection, heads: Heads, versions: readonly VersionRow[]): void {
  const changes = versions
    .filter(({ revises }) => revises === null)
    .map((version) => {
      const { conversation_id: conversationId, position, seq, hidden_now: before } = version;
      const after = before | HIDDEN.forgotten;
      connection.run(SET_HIDDEN, after, version.message_id);
      return { conversationId, position, seq, before, after };
    });
  hideInCover(connection, heads, changes);
}

/** From the finest up, so that each new one is made of new ones. */
function replaceSummaries(
  context: StoreContext,
  heads: Heads,
  { summaries }: Selection,
  request: ForgetRequest,
): void {
  const offered = new Map(request.replacements.map((replacement) => [replacement.oldId, replacement]));
  for (const { summary_id: id, conversation_id: conversationId } of summaries) {
    const replacement = offered.get(id);
    if (replacement) putInstead(context, heads.of(conversationId), replacement, request.now);
    eraseSummary(context, id, renderNote(request.now, replacement?.summary.summaryId ?? null));
  }
}

function renderNote(at: number, standsInstead: string | null): string {
  const day = new Date(at).toISOString().slice(0, 10);
  const instead = standsInstead === null ? "" : ` ${standsInstead} stands in its place.`;
  return `[LCM forgotten] What this summary told was removed on request on ${day}.${instead}`;
}

function eraseSummary({ connection, index }: StoreContext, summaryId: string, note: string): void {
  const row = connection.get<Row<"summaries">>(SUMMARY, summaryId);
  if (!row) return;
  const tokens = estimateTextTokens(note);
  const conversationId = row.conversation_id;
  const hash = hashSummary({ ...row, content: note, tokens });
  connection.run(ERASE_SUMMARY, note, tokens, hash, summaryId);
  index.removeSummary(summaryId);
  index.addSummary({ summaryId, conversationId, content: note });
}

export function isForgettingOpen({ connection }: StoreContext): boolean {
  return connection.get(IS_OPEN, OPEN) !== undefined;
}

/**
 * Writes the whole file anew and empties the write-ahead log, so that no freed page, no gap in a page and no old log frame is left. Other
 * processes may go on reading and writing; one that holds a transaction open for long keeps the log from being emptied.
 */
export function wipeFreed(context: StoreContext): boolean {
  const { connection } = context;
  dropUnfinished(context);
  connection.forgetStatements();
  // On the disk, because the copy is as large as the database; it holds nothing but what is kept.
  connection.exec("PRAGMA secure_delete = ON; PRAGMA temp_store = FILE");
  try {
    connection.retry(() => connection.exec("VACUUM"), "rewrite");
  } finally {
    connection.exec("PRAGMA temp_store = MEMORY");
    watchSealed(connection);
  }
  if (!connection.emptyLog()) return false;
  connection.write(() => connection.run(CLOSE, OPEN));
  return connection.emptyLog();
}

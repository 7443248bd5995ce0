/**
 * Writing the summary graph: storing a summary with its sources, putting it in the place of the run it was made from, retiring what
 * it replaces. Publishing compares the run as it was read with the run as it is, inside the transaction that changes it.
 */
import type { FoldRun, PublishOutcome, RunItem, StoredFold, StoreSummary, SummaryText } from "../folding.ts";
import type { LargeFiles } from "../large-files.ts";
import type { Connection, Row } from "./connection.ts";
import type { StoreContext } from "./context.ts";
import { ConversationHead } from "./conversation-head.ts";
import { toSummary } from "./graph.ts";
import { restoreBytes, SELECT_PARTS } from "./read.ts";
import { writeSummary } from "./summary-rows.ts";

const RUN_ITEMS = `
  SELECT i.start_pos, i.seq, i.end_pos, i.message_id, i.summary_id, i.tokens, i.messages, i.depth, i.hidden,
         coalesce(m.newest, m.message_id) AS version_id, coalesce(m.created_at, s.earliest_at) AS earliest_at,
         coalesce(m.created_at, s.latest_at) AS latest_at, s.descendant_count, s.start_seq, s.end_seq, s.stale
  FROM context_items i LEFT JOIN messages m ON m.message_id = i.message_id LEFT JOIN summaries s ON s.summary_id = i.summary_id
  WHERE i.conversation_id = ?1 AND (i.start_pos, i.seq) >= (?2, ?3) AND (i.start_pos, i.seq) <= (?4, ?5)
  ORDER BY i.start_pos, i.seq`;
const MESSAGE = "SELECT message_id, body, encoding, created_at FROM messages WHERE message_id = ?";
const SUMMARY = "SELECT * FROM summaries WHERE summary_id = ?";
const DELETE_ITEMS = `
  DELETE FROM context_items WHERE conversation_id = ?1 AND (start_pos, seq) >= (?2, ?3) AND (start_pos, seq) <= (?4, ?5)`;
const INSERT_ITEM = `
  INSERT INTO context_items (conversation_id, start_pos, seq, end_pos, summary_id, tokens, messages, depth, hidden)
  VALUES (?, ?, ?, ?, ?, ?, ?, ?, 0)`;
export const PUBLISH = "UPDATE summaries SET state = 'cover', published_seq = ? WHERE summary_id = ?";
const SOURCES_OF = `
  SELECT ordinal, message_id, NULL AS source_id FROM summary_messages WHERE summary_id = ?1
  UNION ALL SELECT ordinal, NULL, parent_summary_id FROM summary_parents WHERE summary_id = ?1 ORDER BY ordinal`;
/** What was made ahead inside a published span has no use any more, unless it waits to replace something below. */
const RETIRE_OVERLAPPED = `
  UPDATE summaries AS ahead SET state = 'retired'
  WHERE conversation_id = ?1 AND state IN ('prepared', 'reserve') AND is_root = 0 AND summary_id <> ?4
    AND start_pos >= ?2 AND end_pos <= ?3
    AND NOT EXISTS (
      SELECT 1 FROM summaries s
      WHERE s.conversation_id = ?1 AND s.state = 'cover' AND s.stale = 1 AND s.depth = ahead.depth
        AND (s.start_pos, s.end_pos) = (ahead.start_pos, ahead.end_pos))`;
/** A root stays until the next epoch when a longer one is made: a context that was begun with it must not change. */
const RETIRE_SURPASSED_ROOTS = `
  UPDATE summaries AS old SET state = 'retired'
  WHERE conversation_id = ?1 AND state = 'reserve' AND is_root = 1 AND EXISTS (
    SELECT 1 FROM summaries new
    WHERE new.conversation_id = ?1 AND new.state = 'reserve' AND new.is_root = 1 AND new.stale = 0
      AND new.start_pos <= old.start_pos AND new.end_pos >= old.end_pos AND new.summary_id <> old.summary_id
      AND (new.end_pos > old.end_pos OR old.stale = 1))`;

export function readRun(
  { connection, files }: StoreContext,
  conversationId: number,
  keys: readonly { startPosition: number; seq: number }[],
  withTexts = true,
): RunItem[] {
  return connection.read(() => {
    return toRunItems(connection, files, selectRun(connection, conversationId, keys), withTexts);
  });
}

export function toRunItems(
  connection: Connection,
  files: LargeFiles,
  rows: readonly Row[],
  withTexts = true,
): RunItem[] {
  return rows.map((row) => ({
    startPosition: row.start_pos as number,
    endPosition: row.end_pos as number,
    seq: row.seq as number,
    hidden: row.hidden as number,
    tokens: row.tokens as number,
    messages: row.messages as number,
    createdAt: row.earliest_at as number,
    messageId: row.message_id as number | null,
    versionId: row.version_id as number | null,
    bytes:
      row.version_id === null || row.hidden !== 0 || !withTexts
        ? null
        : readBytes(connection, files, row.version_id as number),
    summary:
      row.summary_id === null ? null : toSummary(connection.get(SUMMARY, row.summary_id as string) as Row),
  }));
}

function readBytes(connection: Connection, files: LargeFiles, messageId: number): Uint8Array | null {
  const row = connection.get(MESSAGE, messageId);
  return row ? restoreBytes(row, connection.all(SELECT_PARTS, messageId), (path) => files.read(path)) : null;
}

function selectRun(
  connection: Connection,
  conversationId: number,
  keys: readonly { startPosition: number; seq: number }[],
): Row[] {
  const first = keys[0];
  const last = keys.at(-1);
  if (!first || !last) return [];
  return connection.all(
    RUN_ITEMS,
    conversationId,
    first.startPosition,
    first.seq,
    last.startPosition,
    last.seq,
  );
}

/** The run as it is now, if it is still what was read. */
function matchRun(connection: Connection, conversationId: number, run: FoldRun): Row[] | null {
  const rows = selectRun(connection, conversationId, run);
  return isSameRun(rows, run) ? rows : null;
}

function isSameRun(rows: readonly Row[], run: FoldRun): boolean {
  return (
    rows.length === run.length &&
    rows.every((row, i) => {
      const key = run[i];
      return (
        row.start_pos === key?.startPosition &&
        row.seq === key?.seq &&
        row.hidden === key?.hidden &&
        row.version_id === key?.versionId &&
        row.summary_id === key?.summaryId
      );
    })
  );
}

/**
 * Puts stand-ins in the place of the rows they were made from. Null when one is gone, stale, or no longer stands for exactly those rows.
 */
function replaceByStandIns(
  connection: Connection,
  rows: readonly Row[],
  sourceIds: readonly string[],
): Row[] | null {
  let replaced = [...rows];
  for (const id of sourceIds) {
    if (rows.some((row) => row.summary_id === id)) continue;
    const standIn = connection.get(SUMMARY, id);
    if (!standIn || standIn.state !== "reserve" || standIn.stale === 1) return null;
    const lies = (row: Row): boolean =>
      (row.start_pos as number) >= (standIn.start_pos as number) &&
      (row.end_pos as number) <= (standIn.end_pos as number);
    const inside = replaced.filter((row) => lies(row) && row.hidden === 0);
    if (total("messages", inside) !== standIn.messages) return null;
    const at = replaced.findIndex(lies);
    replaced = replaced.filter((row) => !lies(row));
    replaced.splice(at, 0, {
      ...standIn,
      seq: standIn.start_seq,
      message_id: null,
      hidden: 0,
      version_id: null,
    });
  }
  return replaced;
}

const total = (column: string, rows: readonly Row[]): number =>
  rows.reduce((sum, row) => sum + (row[column] as number), 0);

export function storeSummary(context: StoreContext, request: StoreSummary): PublishOutcome {
  const { connection } = context;
  return connection.write(() => {
    const { conversationId, run, summary, now, state } = request;
    const rows = matchRun(connection, conversationId, run);
    const sources = rows && replaceByStandIns(connection, rows, request.sourceIds ?? []);
    if (!rows || !sources) return { kind: "stale" };
    const head = ConversationHead.read(connection, conversationId);
    // What retells something old is old itself, until that is remade. Stand-ins are thrown away then.
    const isStale = state === "cover" && sources.some((row) => row.stale === 1);
    insertSummary(context, head, { ...request, isStale }, sources);
    const outcome = state === "cover" ? putInPlace(connection, head, rows, summary) : unchanged(summary);
    head.noteSummary(state === "cover");
    head.save(connection, now);
    return outcome;
  });
}

const unchanged = (summary: SummaryText): PublishOutcome => ({
  kind: "published",
  summaryId: summary.summaryId,
  tokensBefore: 0,
  tokensAfter: 0,
});

export function publishStored(
  { connection }: StoreContext,
  request: { conversationId: number; folds: readonly StoredFold[]; now: number },
): PublishOutcome[] {
  return connection.write(() => {
    const head = ConversationHead.read(connection, request.conversationId);
    const outcomes = request.folds.map((fold) => publishOne(connection, head, fold));
    if (outcomes.some(({ kind }) => kind === "published")) head.noteSummary(true, 0);
    head.save(connection, request.now);
    return outcomes;
  });
}

function publishOne(
  connection: Connection,
  head: ConversationHead,
  { summaryId, run }: StoredFold,
): PublishOutcome {
  const rows = matchRun(connection, head.conversationId, run);
  const stored = connection.get(SUMMARY, summaryId);
  const isUsable =
    stored?.stale === 0 && (stored.state === "prepared" || stored.state === "reserve") && rows !== null;
  if (!isUsable || !hasSources(connection, summaryId, rows)) return { kind: "stale" };
  connection.run(PUBLISH, head.seq, summaryId);
  return putInPlace(connection, head, rows, { summaryId, tokens: stored.tokens as number });
}

/** A stored summary may only take the place of exactly what it was made from. */
export function hasSources(connection: Connection, summaryId: string, rows: readonly Row[]): boolean {
  const sources = connection.all(SOURCES_OF, summaryId);
  return (
    sources.length === rows.length &&
    sources.every(
      (source, i) => source.message_id === rows[i]?.message_id && source.source_id === rows[i]?.summary_id,
    )
  );
}

function putInPlace(
  connection: Connection,
  head: ConversationHead,
  rows: readonly Row[],
  summary: { summaryId: string; tokens: number },
): PublishOutcome {
  const stored = connection.get(SUMMARY, summary.summaryId) as Row;
  const shown = rows.filter((row) => row.hidden === 0);
  const tokensBefore = total("tokens", shown);
  const range = [rows[0]?.start_pos, rows[0]?.seq, rows.at(-1)?.start_pos, rows.at(-1)?.seq] as number[];
  connection.run(DELETE_ITEMS, head.conversationId, ...range);
  connection.run(
    INSERT_ITEM,
    head.conversationId,
    stored.start_pos as number,
    stored.start_seq as number,
    stored.end_pos as number,
    summary.summaryId,
    summary.tokens,
    stored.messages as number,
    stored.depth as number,
  );
  connection.run(
    RETIRE_OVERLAPPED,
    head.conversationId,
    stored.start_pos as number,
    stored.end_pos as number,
    summary.summaryId,
  );
  connection.run(RETIRE_SURPASSED_ROOTS, head.conversationId);
  head.noteShown(0, summary.tokens - tokensBefore);
  return { kind: "published", summaryId: summary.summaryId, tokensBefore, tokensAfter: summary.tokens };
}

export interface NewSummary extends Pick<
  StoreSummary,
  "conversationId" | "summary" | "state" | "isRoot" | "seenRevision" | "now"
> {
  readonly isStale?: boolean;
}

export function insertSummary(
  context: StoreContext,
  head: ConversationHead,
  request: NewSummary,
  rows: readonly Row[],
): void {
  const { conversationId, summary, state, now } = request;
  const sources = rows.filter((row) => row.summary_id !== null);
  const shown = rows.filter((row) => row.hidden === 0);
  const timed = shown.length > 0 ? shown : rows;
  const first = rows[0];
  const last = rows.at(-1);
  const facts = {
    ...summary,
    conversationId,
    kind: sources.length > 0 ? ("condensed" as const) : ("leaf" as const),
    depth: sources.reduce((deepest, row) => Math.max(deepest, (row.depth as number) + 1), 0),
    state,
    startPosition: first?.start_pos as number,
    startSeq: first?.seq as number,
    endPosition: last?.end_pos as number,
    endSeq: (last?.end_seq ?? last?.seq) as number,
    messages: total("messages", shown),
    descendantCount: total("descendant_count", sources) + sources.length,
    sourceTokens: total("tokens", shown),
    earliestAt: timed.reduce(
      (earliest, row) => Math.min(earliest, row.earliest_at as number),
      Number.MAX_SAFE_INTEGER,
    ),
    latestAt: timed.reduce((latest, row) => Math.max(latest, row.latest_at as number), 0),
    isStale: request.isStale === true,
    isRoot: request.isRoot === true,
    // What no context can have missed counts as made before the epoch.
    madeAtSeq:
      request.seenRevision === undefined || request.seenRevision === head.foldRevision
        ? head.seq
        : Math.max(0, head.epochSeq - 1),
    createdAt: now,
    publishedSeq: state === "cover" ? head.seq : null,
    previousId: summary.previousId ?? null,
  };
  writeSummary(
    context,
    facts,
    rows.map((row) => (row.summary_id as string | null) ?? (row.message_id as number)),
  );
}

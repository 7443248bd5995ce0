/** Documents by id, with what stands beside them: places for the ranking, texts for showing. Nothing outside the scope is given. */
import type { DocumentKind, DocumentPlace, FoundSummary, MessageText, RecallScope } from "../recall.ts";
import type { Connection, Row } from "./connection.ts";
import type { StoreContext } from "./context.ts";
import { resolveConversations } from "./find-clues.ts";
import { restoreBytes, SELECT_PARTS } from "./read.ts";
import { decodeVarints } from "./verify-index.ts";

const IS_CURRENT = `
  m.forgotten_at IS NULL AND m.newest IS NULL
  AND (m.revises IS NULL OR m.message_id = (SELECT f.newest FROM messages f WHERE f.message_id = m.revises))`;
const IS_WANTED = `
  (?2 IS NULL OR m.created_at >= ?2) AND (?3 IS NULL OR m.created_at < ?3) AND (?4 IS NULL OR m.role = ?4)`;
const IN_SCOPE = `(?1 IS NULL OR m.conversation_id IN (SELECT value FROM json_each(?1))) AND ${IS_WANTED}`;
const PLACE_COLUMNS = "m.message_id AS id, m.conversation_id, m.session_ref, m.position, m.seq, m.created_at";
const SEEDS = `
  SELECT ${PLACE_COLUMNS} FROM json_each(?5) j JOIN messages m ON m.message_id = j.value WHERE ${IN_SCOPE} AND ${IS_CURRENT}`;
const BESIDE = (before: boolean): string => `
  SELECT ${PLACE_COLUMNS} FROM messages m
  WHERE m.conversation_id = ?1 AND (m.position, m.seq) ${before ? "<" : ">"} (?5, ?6) AND m.session_ref = ?7
    AND ${IS_WANTED} AND ${IS_CURRENT}
  ORDER BY m.position ${before ? "DESC" : "ASC"}, m.seq ${before ? "DESC" : "ASC"} LIMIT ?8`;
const BEFORE = BESIDE(true);
const AFTER = BESIDE(false);
const SUMMARY_SCOPE = `
  s.state IN ('cover', 'reserve') AND (?1 IS NULL OR s.conversation_id IN (SELECT value FROM json_each(?1)))
  AND (?2 IS NULL OR s.latest_at >= ?2) AND (?3 IS NULL OR s.latest_at < ?3)`;
const SUMMARY_PLACES = `
  SELECT r.summary_ref AS id, s.conversation_id, s.latest_at FROM json_each(?4) j JOIN summary_refs r ON r.summary_ref = j.value
  JOIN summaries s USING (summary_id) WHERE ${SUMMARY_SCOPE}`;
const SUMMARIES = `
  SELECT r.summary_ref, s.* FROM json_each(?4) j JOIN summary_refs r ON r.summary_ref = j.value
  JOIN summaries s USING (summary_id) WHERE ${SUMMARY_SCOPE} ORDER BY j.key`;
const TEXTS = `
  SELECT m.message_id, m.conversation_id, m.seq, m.position, m.event_id, m.role, m.tokens, m.created_at, m.body, m.encoding
  FROM json_each(?5) j JOIN messages m ON m.message_id = j.value WHERE ${IN_SCOPE} AND m.forgotten_at IS NULL ORDER BY j.key`;
const WRITTEN = `
  SELECT m.message_id AS id, m.created_at FROM messages m INDEXED BY messages_by_time
  WHERE m.conversation_id = ?1 AND m.created_at >= ?2 AND m.created_at < ?3 ORDER BY m.created_at DESC LIMIT ?4`;
const ALL_CONVERSATIONS = "SELECT conversation_id AS id FROM conversations ORDER BY conversation_id DESC";
const SCOPE = `
  SELECT conversation_id AS id FROM conversations
  WHERE (?1 IS NULL OR owner = ?1) AND (?2 IS NULL OR session_key = ?2) ORDER BY conversation_id DESC`;

/** Between two runs of neighbours: farther than any neighbour reaches. */
const GAP = 100;

interface PlaceRow {
  id: number;
  conversation_id: number;
  session_ref: number;
  position: number;
  seq: number;
  created_at: number;
}

type ScopeValues = [string | null, number | null, number | null, string | null];

function bindScope(connection: Connection, scope: RecallScope): ScopeValues {
  const conversations = resolveConversations(connection, scope);
  return [
    conversations === null ? null : JSON.stringify(conversations),
    scope.since ?? null,
    scope.before ?? null,
    scope.role ?? null,
  ];
}

export function readPlaces(
  { connection, index }: StoreContext,
  request: { kind: DocumentKind; ids: readonly number[]; reach: number; scope: RecallScope },
): DocumentPlace[] {
  return connection.read(() => {
    const scope = bindScope(connection, request.scope);
    if (request.kind === "summary") return readSummaryPlaces(connection, index.summaryTable, scope, request.ids);
    const seeds = connection.all<PlaceRow>(SEEDS, ...scope, JSON.stringify(request.ids));
    return numberPlaces(connection, index.table, readBeside(connection, scope, seeds, request.reach));
  });
}

/** The seeds and their neighbours, with who follows whom. */
function readBeside(
  connection: Connection,
  [, ...wanted]: ScopeValues,
  seeds: readonly PlaceRow[],
  reach: number,
): { rows: Map<number, PlaceRow>; follows: Map<number, number> } {
  const rows = new Map<number, PlaceRow>();
  const follows = new Map<number, number>();
  for (const seed of seeds) {
    const key = [seed.conversation_id, ...wanted, seed.position, seed.seq, seed.session_ref, reach] as const;
    const before = connection.all<PlaceRow>(BEFORE, ...key);
    const after = connection.all<PlaceRow>(AFTER, ...key);
    const run = [...before.reverse(), seed, ...after];
    run.forEach((row, at) => {
      rows.set(row.id, row);
      const previous = run[at - 1];
      if (previous) follows.set(row.id, previous.id);
    });
  }
  return { rows, follows };
}

function numberPlaces(
  connection: Connection,
  table: string,
  { rows, follows }: { rows: Map<number, PlaceRow>; follows: Map<number, number> },
): DocumentPlace[] {
  const ordered = [...rows.values()].toSorted(
    (a, b) => a.session_ref - b.session_ref || a.conversation_id - b.conversation_id || a.position - b.position || a.seq - b.seq,
  );
  let position = 0;
  let previous = 0;
  return ordered.map((row) => {
    position += follows.get(row.id) === previous ? 1 : GAP;
    previous = row.id;
    return {
      id: row.id,
      conversationId: row.conversation_id,
      group: row.session_ref,
      position,
      words: countWords(connection, table, row.id),
      createdAt: row.created_at,
    };
  });
}

function readSummaryPlaces(connection: Connection, table: string, scope: ScopeValues, ids: readonly number[]): DocumentPlace[] {
  const [conversations, since, before] = scope;
  return connection
    .all<{ id: number; conversation_id: number; latest_at: number }>(SUMMARY_PLACES, conversations, since, before, JSON.stringify(ids))
    .map((row, at) => ({
      id: row.id,
      conversationId: row.conversation_id,
      group: row.conversation_id,
      position: at * GAP,
      words: countWords(connection, table, row.id),
      createdAt: row.latest_at,
    }));
}

/** The index keeps the length of each column; the first is the words. */
function countWords(connection: Connection, table: string, id: number): number {
  const row = connection.get<{ sz: Uint8Array }>(`SELECT sz FROM ${table}_docsize WHERE id = ?`, id);
  return row ? (decodeVarints(row.sz)[0] ?? 0) : 0;
}

export function readTexts(
  { connection, files }: StoreContext,
  messageIds: readonly number[],
  scope: RecallScope,
): MessageText[] {
  return connection.read(() =>
    connection.all(TEXTS, ...bindScope(connection, scope), JSON.stringify(messageIds)).map((row) => ({
      messageId: row.message_id as number,
      conversationId: row.conversation_id as number,
      seq: row.seq as number,
      position: row.position as number,
      eventId: row.event_id as string,
      role: row.role as string,
      tokens: row.tokens as number,
      createdAt: row.created_at as number,
      bytes: restoreBytes(row, connection.all(SELECT_PARTS, row.message_id as number), (path) => files.read(path)),
    })),
  );
}

export function readFoundSummaries(
  { connection }: StoreContext,
  refs: readonly number[],
  scope: RecallScope,
): FoundSummary[] {
  return connection.read(() => {
    const [conversations, since, before] = bindScope(connection, scope);
    return connection.all(SUMMARIES, conversations, since, before, JSON.stringify(refs)).map(toFoundSummary);
  });
}

export function toFoundSummary(row: Row): FoundSummary {
  return {
    ref: row.summary_ref as number,
    summaryId: row.summary_id as string,
    conversationId: row.conversation_id as number,
    kind: row.kind as FoundSummary["kind"],
    depth: row.depth as number,
    tokens: row.tokens as number,
    earliestAt: row.earliest_at as number,
    latestAt: row.latest_at as number,
    createdAt: row.created_at as number,
    content: row.content as string,
  };
}

export function findWritten(
  { connection }: StoreContext,
  request: { scope: RecallScope; ranges: readonly { since: number; before: number }[]; limit: number },
): { messageId: number; createdAt: number }[] {
  return connection.read(() => {
    const conversations =
      resolveConversations(connection, request.scope) ?? connection.all<{ id: number }>(ALL_CONVERSATIONS).map(({ id }) => id);
    const { since = 0, before = Number.MAX_SAFE_INTEGER } = request.scope;
    const found = new Map<number, number>();
    for (const range of request.ranges) {
      for (const conversation of conversations) {
        const room = request.limit - found.size;
        if (room <= 0) break;
        const bounds = [Math.max(since, range.since), Math.min(before, range.before)] as const;
        const rows = connection.all<{ id: number; created_at: number }>(WRITTEN, conversation, ...bounds, room);
        for (const row of rows) found.set(row.id, row.created_at);
      }
    }
    return [...found].map(([messageId, createdAt]) => ({ messageId, createdAt }));
  });
}

export function listScope({ connection }: StoreContext, request: { owner?: string; sessionKey?: string }): number[] {
  return connection.all<{ id: number }>(SCOPE, request.owner ?? null, request.sessionKey ?? null).map(({ id }) => id);
}

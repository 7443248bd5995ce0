/**
 * Where the clues of a question stand: ids from the full-text index, narrowed to what the caller may see. What is too common to be listed
 * whole is listed as far as asked, its frequency estimated, and can be tested for single documents afterwards. Where the literals of a
 * regular expression can stand, the blocks of words tell.
 */
import { EngineError } from "../../model/errors.ts";
import type { TextClue } from "../../text/index.ts";
import type { IdRange, RecallScope } from "../recall.ts";
import type { ClueListing, ClueRequest, CluesFound, DocumentKind } from "../text-index.ts";
import type { Connection } from "./connection.ts";
import type { StoreContext } from "./context.ts";
import { scopeTerm } from "./full-text-index.ts";
import type { FullTextIndex } from "./full-text-index.ts";
import { listBeyond } from "./inherited.ts";
import { toMatch } from "./match.ts";
import { hasRecallParts } from "./recall-parts.ts";
import { findSpelled } from "./word-blocks.ts";

/** More conversations than this are filtered row by row; that many terms in one expression would be slower. */
const MAX_SCOPE_TERMS = 200;
/** So few messages are read sooner than the blocks of words. */
const FEW_MESSAGES = 1_000;

const OWNED = "SELECT conversation_id AS id FROM conversations WHERE owner = ?";
const HAS_OTHER_OWNERS = "SELECT 1 AS found FROM conversations WHERE owner <> ? LIMIT 1";
const EXTENT_OF_ALL = `
  SELECT coalesce(sum(message_count), 0) AS messages, coalesce(sum(summary_count), 0) AS summaries, min(first_at) AS first_at,
         max(last_at) AS last_at, (SELECT min(message_id) FROM messages) AS low, (SELECT max(message_id) FROM messages) AS high
  FROM conversations`;
/** Ids grow with arrival, so the first and last of a conversation by `seq` are its lowest and highest. */
const EXTENT_OF_SOME = `
  SELECT coalesce(sum(message_count), 0) AS messages, coalesce(sum(summary_count), 0) AS summaries, min(first_at) AS first_at,
         max(last_at) AS last_at,
         min((SELECT message_id FROM messages m WHERE m.conversation_id = c.conversation_id ORDER BY seq LIMIT 1)) AS low,
         max((SELECT message_id FROM messages m WHERE m.conversation_id = c.conversation_id ORDER BY seq DESC LIMIT 1)) AS high
  FROM conversations c WHERE conversation_id IN (SELECT value FROM json_each(?))`;
const SUMMARY_EXTENT = "SELECT min(summary_ref) AS low, max(summary_ref) AS high FROM summary_refs";
/** Every version of a message but its newest. The hints keep the few revisions on the outside of the loop. */
const SUPERSEDED = `
  SELECT revises AS id FROM messages INDEXED BY messages_by_revision WHERE revises IS NOT NULL
  UNION ALL SELECT m.message_id FROM messages m INDEXED BY messages_by_revision CROSS JOIN messages f ON f.message_id = m.revises
  WHERE m.revises IS NOT NULL AND f.newest <> m.message_id`;
/** Summaries nobody is shown: not published yet, or no longer. The index on states answers it without reading a text. */
const UNSHOWN = `
  SELECT r.summary_ref AS id FROM summaries s INDEXED BY summaries_by_conversation JOIN summary_refs r USING (summary_id)
  WHERE s.state NOT IN ('cover', 'reserve')`;

interface Extent {
  messages: number;
  summaries: number;
  first_at: number | null;
  last_at: number | null;
  low: number | null;
  high: number | null;
}

export function findClues({ connection, index }: StoreContext, request: ClueRequest): CluesFound {
  checkIndex(index);
  return connection.read(() => {
    const conversations = resolveConversations(connection, request.scope);
    const extent = readExtent(connection, conversations, request.kind);
    const superseded = readSuperseded(connection, request.kind);
    for (const id of listBeyond(connection, request.scope, request.kind)) superseded.add(id);
    const list = makeLister(connection, index, request, conversations, extent);
    return {
      total: request.kind === "message" ? extent.messages : extent.summaries,
      firstAt: extent.first_at,
      lastAt: extent.last_at,
      listings: request.clues.map((clue) => toListing(list(clue), superseded, request.limit, extent)),
      pendingIds: request.kind === "message" ? index.listPending() : [],
      hasRecallParts: request.kind === "message" && hasRecallParts(connection),
    };
  });
}

export function findRuns(
  { connection }: StoreContext,
  runs: readonly string[],
  scope: RecallScope,
): IdRange[] | null {
  return connection.read(() => {
    const conversations = resolveConversations(connection, scope);
    const { messages, low, high } = readExtent(connection, conversations, "message");
    if (messages <= FEW_MESSAGES || low === null || high === null) return null;
    const ranges = findSpelled(connection, runs, { low, high });
    const found = ranges.reduce((sum, [first, last]) => sum + last - first + 1, 0);
    return found > messages / 2 ? null : ranges;
  });
}

function checkIndex(index: FullTextIndex): void {
  const problem = index.problem();
  if (problem === null) return;
  throw new EngineError("database_corrupt", `cannot search: ${problem}`, {
    step: { kind: "rebuild_index" },
  });
}

/** The conversations of a scope, or null for all of them. */
export function resolveConversations(connection: Connection, scope: RecallScope): readonly number[] | null {
  const { owner, inherited = [] } = scope;
  const conversationIds = scope.conversationIds?.concat(inherited.map((part) => part.conversationId));
  if (owner === undefined) return conversationIds ?? null;
  if (conversationIds === undefined && !connection.get(HAS_OTHER_OWNERS, owner)) return null;
  const owned = connection.all<{ id: number }>(OWNED, owner).map(({ id }) => id);
  if (conversationIds === undefined) return owned;
  const mine = new Set(owned);
  return conversationIds.filter((id) => mine.has(id));
}

function readExtent(
  connection: Connection,
  conversations: readonly number[] | null,
  kind: DocumentKind,
): Extent {
  const extent =
    conversations === null
      ? connection.get<Extent>(EXTENT_OF_ALL)
      : connection.get<Extent>(EXTENT_OF_SOME, JSON.stringify(conversations));
  const found = extent ?? { messages: 0, summaries: 0, first_at: null, last_at: null, low: null, high: null };
  return kind === "message"
    ? found
    : { ...found, ...connection.get<Pick<Extent, "low" | "high">>(SUMMARY_EXTENT) };
}

/** Documents of the index that are not to be found. They are few, so taking them out is cheaper than looking up every row. */
function readSuperseded(connection: Connection, kind: DocumentKind): Set<number> {
  const sql = kind === "message" ? SUPERSEDED : UNSHOWN;
  return new Set(connection.all<{ id: number }>(sql).map(({ id }) => id));
}

type Lister = (clue: TextClue) => number[];

/** Prepares the query that lists the documents of a clue, newest first. */
function makeLister(
  connection: Connection,
  index: FullTextIndex,
  { kind, scope, limit }: ClueRequest,
  conversations: readonly number[] | null,
  { low, high }: Extent,
): Lister {
  if (conversations?.length === 0 || low === null || high === null) return () => [];
  const table = kind === "message" ? index.table : index.summaryTable;
  const isNamed = conversations !== null && conversations.length <= MAX_SCOPE_TERMS;
  const named = isNamed
    ? ` AND scope : (${conversations.map((id) => `"${scopeTerm(id)}"`).join(" OR ")})`
    : "";
  const filters = filterRows(kind, scope, conversations !== null && !isNamed);
  const values = {
    low,
    high,
    limit: limit + 1,
    ...(filters.conversations ? { conversations: JSON.stringify(conversations) } : {}),
    ...(scope.since === undefined ? {} : { since: scope.since }),
    ...(scope.before === undefined ? {} : { before: scope.before }),
    ...(scope.role === undefined || kind === "summary" ? {} : { role: scope.role }),
  };
  // Thousands of ids come as one text: rows one by one would cost several times what finding them costs.
  const sql = `
    SELECT json_group_array(id) AS ids FROM (
      SELECT f.rowid AS id FROM ${table} f ${filters.join}
      WHERE ${table} MATCH :match AND f.rowid BETWEEN :low AND :high ${filters.where} ORDER BY f.rowid DESC LIMIT :limit)`;
  const statement = connection.statement(sql);
  return (clue) => {
    try {
      const row = statement.get({ ...values, match: `(${toMatch(clue)})${named}` }) as { ids: string };
      return JSON.parse(row.ids) as number[];
    } catch (error) {
      throw new EngineError("database_corrupt", `cannot search: ${(error as Error).message}`, {
        step: { kind: "rebuild_index" },
        cause: error,
      });
    }
  };
}

/** What has to be looked up in the rows themselves; nothing, in the common case. */
function filterRows(
  kind: DocumentKind,
  scope: RecallScope,
  byConversation: boolean,
): { join: string; where: string; conversations: boolean } {
  const isMessage = kind === "message";
  const row = isMessage ? "m" : "s";
  const conditions = [
    ...(byConversation ? [`${row}.conversation_id IN (SELECT value FROM json_each(:conversations))`] : []),
    ...(scope.since === undefined ? [] : [isMessage ? "m.created_at >= :since" : "s.latest_at >= :since"]),
    ...(scope.before === undefined ? [] : [isMessage ? "m.created_at < :before" : "s.latest_at < :before"]),
    ...(scope.role === undefined || !isMessage ? [] : ["m.role = :role"]),
  ];
  const join = isMessage
    ? "JOIN messages m ON m.message_id = f.rowid"
    : "JOIN summary_refs r ON r.summary_ref = f.rowid JOIN summaries s ON s.summary_id = r.summary_id";
  return {
    join: conditions.length === 0 ? "" : join,
    where: conditions.map((condition) => `AND ${condition}`).join(" "),
    conversations: byConversation,
  };
}

function toListing(
  ids: readonly number[],
  superseded: ReadonlySet<number>,
  limit: number,
  extent: Extent,
): ClueListing {
  const current = superseded.size === 0 ? ids : ids.filter((id) => !superseded.has(id));
  if (ids.length <= limit) return { ids: current, frequency: current.length, listedFrom: null };
  const oldest = ids.at(-1) as number;
  const { low, high } = extent as { low: number; high: number };
  const frequency = Math.ceil((ids.length * (high - low + 1)) / (high - oldest + 1));
  return { ids: current, frequency, listedFrom: oldest };
}

/** Which of some documents hold each clue. Reads the whole list of each: for words too common to be listed. */
export function testClues(
  { connection, index }: StoreContext,
  { kind, clues, ids }: { kind: DocumentKind; clues: readonly TextClue[]; ids: readonly number[] },
): number[][] {
  checkIndex(index);
  if (ids.length === 0) return clues.map(() => []);
  const table = kind === "message" ? index.table : index.summaryTable;
  // The plus keeps SQLite from asking the index once per id.
  const select = `
    SELECT json_group_array(f.rowid) AS ids FROM ${table} f
    WHERE ${table} MATCH ?4 AND f.rowid BETWEEN ?1 AND ?2 AND +f.rowid IN (SELECT value FROM json_each(?3))`;
  const low = ids.reduce((least, id) => Math.min(least, id), Number.MAX_SAFE_INTEGER);
  const high = ids.reduce((most, id) => Math.max(most, id), 0);
  return connection.read(() =>
    clues.map((clue) => {
      const row = connection.get<{ ids: string }>(select, low, high, JSON.stringify(ids), toMatch(clue));
      return JSON.parse(row?.ids ?? "[]") as number[];
    }),
  );
}

/**
 * Finds the clues of a question: ids from the full-text index, narrowed to what the caller may see. A clue that is too common to be listed
 * whole is listed up to the limit, with an estimated frequency, and single documents can be tested for it afterwards. For the literals of a
 * regular expression, the blocks of words show where they can be.
 */
import { EngineError, given, must, toListing } from "@lossless/core/adapter";
import type { SpellingDoubt } from "@lossless/core/adapter";
import type {
  ClueRequest,
  CluesFound,
  DocumentKind,
  DoubtsFound,
  IdRange,
  RecallScope,
  TextClue,
} from "@lossless/core/ports";
import type { Connection } from "./connection.ts";
import type { StoreContext } from "./store-context.ts";
import { HEAD_COLUMNS, scopeTerm, toHead } from "./full-text-index.ts";
import type { HeadRow, IndexHead } from "./full-text-index.ts";
import { listBeyond } from "./inherited.ts";
import { toMatch } from "./match.ts";
import { HAS_RECALL_PARTS } from "./recall-parts.ts";
import { findDoubtful } from "./word-blocks.ts";

/** A number of JavaScript is bound as a fraction, and FTS5 does not stop at one: it would walk its whole list. */
const within = (low: string, high: string): string =>
  `f.rowid BETWEEN CAST(${low} AS INTEGER) AND CAST(${high} AS INTEGER)`;

/** More conversations than this are filtered row by row; that many terms in one expression would be slower. */
const MAX_SCOPE_TERMS = 200;

const OWNED = "SELECT conversation_id AS id FROM conversations WHERE owner = ?";
const HAS_OTHER_OWNERS = "SELECT 1 AS found FROM conversations WHERE owner <> ? LIMIT 1";
/** The conversations of a scope, and whether those are all there are. */
const CONVERSATIONS = `
  scope AS MATERIALIZED (
    SELECT conversation_id AS id FROM conversations
    WHERE (:owner IS NULL OR owner = :owner) AND (:ids IS NULL OR conversation_id IN (SELECT value FROM json_each(:ids)))),
  whole AS MATERIALIZED (
    SELECT :ids IS NULL AND (:owner IS NULL OR NOT EXISTS (SELECT 1 FROM conversations WHERE owner <> :owner)) AS is_all)`;
/** Ids grow with arrival, so the first and last of a conversation by `seq` are its lowest and highest. */
const MESSAGE_RANGE = `
  CASE WHEN is_all THEN (SELECT min(message_id) FROM messages) ELSE
    (SELECT min((SELECT message_id FROM messages m WHERE m.conversation_id = s.id ORDER BY seq LIMIT 1)) FROM scope s) END AS low,
  CASE WHEN is_all THEN (SELECT max(message_id) FROM messages) ELSE
    (SELECT max((SELECT message_id FROM messages m WHERE m.conversation_id = s.id ORDER BY seq DESC LIMIT 1)) FROM scope s) END AS high`;
const SUMMARY_RANGE = `
  (SELECT min(summary_ref) FROM summary_refs) AS low, (SELECT max(summary_ref) FROM summary_refs) AS high`;
/** Every version of a message but its newest. The hints keep the few revisions in the outer loop. */
const SUPERSEDED = `
  SELECT revises AS id FROM messages INDEXED BY messages_by_revision WHERE revises IS NOT NULL
  UNION ALL SELECT m.message_id FROM messages m INDEXED BY messages_by_revision CROSS JOIN messages f ON f.message_id = m.revises
  WHERE m.revises IS NOT NULL AND f.newest <> m.message_id`;
/** Summaries that are not shown: not published yet, or no longer. The index on states is enough, without reading a text. */
const UNSHOWN = `
  SELECT r.summary_ref AS id FROM summaries s INDEXED BY summaries_by_conversation JOIN summary_refs r USING (summary_id)
  WHERE s.state NOT IN ('cover', 'reserve')`;

/** Messages that are stored and not in the index yet. */
const PENDING = "SELECT message_id FROM index_pending ORDER BY message_id";
const EXTENT = `
  (SELECT coalesce(sum(message_count), 0) FROM conversations JOIN scope ON id = conversation_id) AS messages,
  (SELECT coalesce(sum(summary_count), 0) FROM conversations JOIN scope ON id = conversation_id) AS summaries,
  (SELECT min(first_at) FROM conversations JOIN scope ON id = conversation_id) AS first_at,
  (SELECT max(last_at) FROM conversations JOIN scope ON id = conversation_id) AS last_at`;
/** Everything a listing needs beforehand, in one statement; no conversations if the scope is the whole archive. */
const FACTS = {
  message: `
    WITH ${CONVERSATIONS}
    SELECT ${HEAD_COLUMNS}, ${EXTENT}, ${MESSAGE_RANGE}, ${HAS_RECALL_PARTS} AS has_recall_parts,
      iif(is_all, NULL, (SELECT json_group_array(id) FROM scope)) AS conversations,
      (SELECT json_group_array(id) FROM (${SUPERSEDED})) AS unlisted,
      (SELECT json_group_array(message_id) FROM (${PENDING})) AS pending
    FROM whole`,
  summary: `
    WITH ${CONVERSATIONS}
    SELECT ${HEAD_COLUMNS}, ${EXTENT}, ${SUMMARY_RANGE}, 0 AS has_recall_parts,
      iif(is_all, NULL, (SELECT json_group_array(id) FROM scope)) AS conversations,
      (SELECT json_group_array(id) FROM (${UNSHOWN})) AS unlisted, '[]' AS pending
    FROM whole`,
} as const;

interface FactRow extends HeadRow {
  readonly messages: number;
  readonly summaries: number;
  readonly first_at: number | null;
  readonly last_at: number | null;
  readonly low: number | null;
  readonly high: number | null;
  readonly has_recall_parts: number;
  readonly conversations: string | null;
  readonly unlisted: string;
  readonly pending: string;
}

const parseIds = (text: string): number[] => JSON.parse(text) as number[];

function readFacts(connection: Connection, kind: DocumentKind, scope: RecallScope): FactRow {
  const { owner = null, conversationIds, inherited = [] } = scope;
  const ids = conversationIds?.concat(inherited.map((part) => part.conversationId));
  const named = { owner, ids: ids === undefined ? null : JSON.stringify(ids) };
  return must(connection.getNamed<FactRow>(FACTS[kind], named), "the facts of a search");
}

export function findClues({ connection }: StoreContext, request: ClueRequest): CluesFound {
  const { kind, scope, limit } = request;
  return connection.read(() => {
    const facts = readFacts(connection, kind, scope);
    // They are few, so filtering them out is cheaper than looking up every row.
    const unlisted = new Set(parseIds(facts.unlisted));
    for (const id of listBeyond(connection, scope, kind)) unlisted.add(id);
    const list = makeLister(connection, request, facts);
    return {
      total: kind === "message" ? facts.messages : facts.summaries,
      firstAt: facts.first_at,
      lastAt: facts.last_at,
      listings: request.clues.map((clue) => toListing(list(clue), unlisted, limit, facts)),
      pendingIds: parseIds(facts.pending),
      hasRecallParts: facts.has_recall_parts === 1,
    };
  });
}

export function findDoubts(
  { connection }: StoreContext,
  doubts: readonly SpellingDoubt[],
  scope: RecallScope,
  within: IdRange | null,
): DoubtsFound {
  return connection.read(() => {
    const { low, high } = readFacts(connection, "message", scope);
    const whole: IdRange = [low ?? 1, high ?? 0];
    const [first, last] = within ?? whole;
    const range: IdRange = [Math.max(first, whole[0]), Math.min(last, whole[1])];
    const isWhole = range[0] === whole[0] && range[1] === whole[1];
    return { ...findDoubtful(connection, doubts, range), isWhole };
  });
}

function checkHead({ problem }: IndexHead): void {
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

type Lister = (clue: TextClue) => number[];

/** Prepares the query that lists the documents of a clue, newest first. */
function makeLister(connection: Connection, { kind, scope, limit }: ClueRequest, facts: FactRow): Lister {
  const head = toHead(facts);
  checkHead(head);
  const { low, high } = facts;
  const conversations = facts.conversations === null ? null : parseIds(facts.conversations);
  if (conversations?.length === 0 || low === null || high === null) return () => [];
  const table = head.tables[kind];
  const isNamed = conversations !== null && conversations.length <= MAX_SCOPE_TERMS;
  const named = isNamed
    ? ` AND scope : (${conversations.map((id) => `"${scopeTerm(id)}"`).join(" OR ")})`
    : "";
  const filters = filterRows(kind, scope, conversations !== null && !isNamed);
  const values = {
    low,
    high,
    limit: limit + 1,
    ...given({
      conversations: filters.conversations ? facts.conversations : undefined,
      since: scope.since,
      before: scope.before,
      role: kind === "summary" ? undefined : scope.role,
    }),
  };
  // Thousands of ids are returned as one text: single rows would cost several times what finding them costs.
  const sql = `
    SELECT json_group_array(id) AS ids FROM (
      SELECT f.rowid AS id FROM ${table} f ${filters.join}
      WHERE ${table} MATCH :match AND ${within(":low", ":high")} ${filters.where} ORDER BY f.rowid DESC LIMIT :limit)`;
  return (clue) => {
    try {
      const match = `(${toMatch(clue)})${named}`;
      return parseIds(connection.getNamed<{ ids: string }>(sql, { ...values, match })?.ids ?? "[]");
    } catch (error) {
      throw new EngineError("database_corrupt", `cannot search: ${(error as Error).message}`, {
        step: { kind: "rebuild_index" },
        cause: error,
      });
    }
  };
}

/** Conditions that need the rows themselves; usually none. */
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

/** Ids this close together are picked from all that match: a table of them would cost SQLite more than finding those. */
const MAX_GAP = 4;

/** Which of some documents match each clue. Reads the whole list of each: for words too common to be listed. */
export function testClues(
  { connection, index }: StoreContext,
  { kind, clues, ids }: { kind: DocumentKind; clues: readonly TextClue[]; ids: readonly number[] },
): number[][] {
  if (ids.length === 0) return clues.map(() => []);
  const low = ids.reduce((least, id) => Math.min(least, id), Number.MAX_SAFE_INTEGER);
  const high = ids.reduce((most, id) => Math.max(most, id), 0);
  const areNear = high - low < MAX_GAP * ids.length;
  return index.readTables((tables) => {
    const table = tables[kind];
    // The plus prevents SQLite from querying the index once per id.
    const isAsked = areNear ? "?3 IS NULL" : "+f.rowid IN (SELECT value FROM json_each(?3))";
    // One statement for all of them.
    const sql = clues
      .map(
        (_, at) => `
          SELECT (SELECT json_group_array(f.rowid) FROM ${table} f
                  WHERE ${table} MATCH ?${at + 4} AND ${within("?1", "?2")} AND ${isAsked}) AS ids`,
      )
      .join(" UNION ALL ");
    const asked = areNear ? new Set(ids) : null;
    const named = asked === null ? JSON.stringify(ids) : null;
    const rows = connection.all<{ ids: string }>(sql, low, high, named, ...clues.map(toMatch));
    return rows.map((row) => {
      const found = parseIds(row.ids);
      return asked === null ? found : found.filter((id) => asked.has(id));
    });
  });
}

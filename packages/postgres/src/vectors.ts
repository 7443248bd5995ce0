/**
 * Vectors on PostgreSQL: one value for each message and space, and the search over them, one batch at a time so that it can be cancelled. The
 * codes of vectors that were read once are cached (`model/vector-codes.ts`); a later search finds the likely nearest by these and compares only
 * them exactly.
 *
 * Invariants: a vector belongs to the current version of a shown message; plans drop it when that ends. A transaction that stores vectors locks
 * the row of their space, so that numbers of a space are committed in order and codes never miss one.
 */
import { setTimeout as sleep } from "node:timers/promises";
import {
  dotProduct,
  EngineError,
  fitDimensions,
  isLeaseFree,
  isMostOfAll,
  LIKELY_PER_HIT,
  NearestList,
  STRETCH_VECTORS,
  toSpace,
  VectorCodes,
  vectorFromBytes,
  vectorToBytes,
} from "@lossless/core/adapter";
import type { CodedRow, Neighbour, NewRow } from "@lossless/core/adapter";
import type { Row, Store, StoreVectorsResult, VectorCounts, VectorSpace } from "@lossless/core/ports";
import type { Sql } from "./connection.ts";
import { statement } from "./connection.ts";
import { nameConversations, readBeyond } from "./find-clues.ts";
import type { FullTextIndex } from "./full-text-index.ts";
import { addSpend } from "./spend.ts";
import type { StoreContext } from "./store-context.ts";

/** The newest version of a message that is neither hidden nor forgotten. A revision is hidden when its first version is. */
export const IS_EMBEDDABLE = `
  m.forgotten_at IS NULL AND m.newest IS NULL AND CASE WHEN m.revises IS NULL THEN m.hidden_now = 0 ELSE EXISTS (
    SELECT 1 FROM messages f WHERE f.message_id = m.revises AND f.newest = m.message_id AND f.hidden_now = 0) END`;
const SPACE_COLUMNS = "space_id, model, dimensions, created_at, filled_at";
const SPACES = `SELECT ${SPACE_COLUMNS} FROM vector_spaces ORDER BY space_id`;
const COUNTS = `
  SELECT (SELECT coalesce(sum(message_count), 0) FROM conversations)
    - (SELECT count(*) FROM messages WHERE revises IS NOT NULL)
    - (SELECT count(*) FROM messages WHERE hidden_now <> 0 AND revises IS NULL) AS messages`;
const COUNT_VECTORS = `
  SELECT s.space_id, (SELECT count(*) FROM message_vectors v WHERE v.space_id = s.space_id) AS vectors
  FROM vector_spaces s ORDER BY s.space_id`;
const ADD_SPACE =
  "INSERT INTO vector_spaces (model, dimensions, created_at) VALUES ($1, 0, $2) ON CONFLICT (model) DO NOTHING";
/** A space belongs to all owners: a process that fills it reads their messages. */
const MAY_CLAIM = "SELECT has_table_privilege('vector_spaces', 'UPDATE') AS yes";
const TRY_SPACE = "SELECT * FROM vector_spaces WHERE model = $1 FOR UPDATE SKIP LOCKED";
/** The transactions that may be storing or showing messages. */
const WRITERS = `
  SELECT DISTINCT virtualtransaction AS id FROM pg_locks WHERE relation = 'messages'::regclass AND mode = 'RowExclusiveLock' AND pid <> pg_backend_pid()
    AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`;
/** How long a claim waits for them. An import may take longer; then the space is filled another time. */
const MAX_WRITERS_MS = 10_000;
const WRITERS_PAUSE_MS = 20;
const CLAIM = "UPDATE vector_spaces SET lease_holder = $1, lease_until = $2 WHERE space_id = $3";
const RENEW = `
  UPDATE vector_spaces SET lease_until = $1 WHERE space_id = $2 AND lease_holder = $3 RETURNING dimensions`;
const RELEASE = `
  UPDATE vector_spaces SET lease_holder = NULL, lease_until = NULL,
    filled_at = CASE WHEN $3::boolean THEN coalesce(filled_at, $4) ELSE filled_at END
  WHERE space_id = $1 AND lease_holder = $2`;
const ANY_STORED =
  "SELECT 1 FROM message_vectors WHERE space_id = $1 AND message_id = ANY($2::bigint[]) LIMIT 1";
const SET_DIMENSIONS = "UPDATE vector_spaces SET dimensions = $1 WHERE space_id = $2";
const UNEMBEDDED = `
  SELECT m.message_id AS id FROM messages m
  WHERE m.message_id > $2 AND NOT EXISTS (SELECT 1 FROM message_vectors v WHERE v.message_id = m.message_id AND v.space_id = $1)
    AND ${IS_EMBEDDABLE}
  ORDER BY m.message_id LIMIT $3`;
const PENDING = `
  SELECT p.message_id AS "messageId", (${IS_EMBEDDABLE}) AS "isWanted" FROM vectors_pending p JOIN messages m USING (message_id)
  WHERE p.space_id = $1 ORDER BY p.message_id LIMIT $2`;
const END_PENDING = "DELETE FROM vectors_pending WHERE space_id = $1 AND message_id = ANY($2::bigint[])";
const END_UNWANTED = `
  DELETE FROM vectors_pending p WHERE p.space_id = $1 AND p.message_id = ANY($2::bigint[])
    AND NOT EXISTS (SELECT 1 FROM messages m WHERE m.message_id = p.message_id AND ${IS_EMBEDDABLE})`;
/**
 * Locks their conversations, as plans do, so that nobody hides, shows, revises or forgets them before this is committed. Their own rows would
 * not do: a plan deletes vectors before it changes messages, and would not see those that are committed in between.
 */
const HOLD = `
  SELECT 1 FROM conversations WHERE conversation_id IN (SELECT conversation_id FROM messages WHERE message_id = ANY($1::bigint[]))
  ORDER BY conversation_id FOR SHARE`;
const ADD_VECTORS = `
  INSERT INTO message_vectors (space_id, message_id, vector)
  SELECT $1, m.message_id, substr($2::bytea, r.at, r.length) FROM unnest($3::bigint[], $4::int[], $5::int[]) AS r (id, at, length)
  JOIN messages m ON m.message_id = r.id WHERE ${IS_EMBEDDABLE} ON CONFLICT (message_id, space_id) DO NOTHING`;
/** Nobody stores vectors meanwhile: the space could not be dropped then. */
const HOLD_SPACE = "SELECT 1 FROM vector_spaces WHERE space_id = $1 FOR NO KEY UPDATE";
const DROP_SOME = `
  DELETE FROM message_vectors WHERE vector_id IN (SELECT vector_id FROM message_vectors WHERE space_id = $1 LIMIT $2)`;
const DROP_SPACE = "DELETE FROM vector_spaces WHERE space_id = $1";
const SCAN_SPACE = `
  SELECT v.vector_id AS "vectorId", v.message_id AS "messageId", v.vector, m.conversation_id AS "conversationId"
  FROM message_vectors v JOIN messages m USING (message_id)
  WHERE v.space_id = $1 AND v.vector_id > $2 ORDER BY v.vector_id LIMIT $3`;
const LIKELY = `
  SELECT v.message_id AS "messageId", v.vector FROM unnest($2::bigint[], $3::bigint[]) AS r (vector_id, message_id)
  JOIN message_vectors v USING (vector_id, message_id) WHERE v.space_id = $1`;
/** The identity of a space besides its number, whether its last coded row exists, and which share of all a scope is. */
const SPACE_FACTS = `
  SELECT (SELECT model || ' ' || created_at FROM vector_spaces WHERE space_id = $1) AS name,
    EXISTS (SELECT 1 FROM message_vectors WHERE space_id = $1 AND vector_id = $2 AND message_id = $3) AS "isThere",
    (SELECT coalesce(sum(message_count), 0) FROM conversations
     WHERE ($4::text IS NULL OR owner = $4) AND ($5::bigint[] IS NULL OR conversation_id = ANY($5))) AS named,
    (SELECT coalesce(sum(message_count), 0) FROM conversations) AS total,
    (SELECT string_agg(conversation_id::text, ',') FROM conversations
     WHERE ($4::text IS NULL OR owner = $4) AND ($5::bigint[] IS NULL OR conversation_id = ANY($5))) AS conversations`;
const SCAN_CONVERSATIONS = `
  SELECT m.conversation_id AS "conversationId", m.seq, m.message_id AS "messageId", v.vector
  FROM messages m JOIN message_vectors v ON v.message_id = m.message_id AND v.space_id = $1
  WHERE m.conversation_id = ANY($2::bigint[]) AND (m.conversation_id, m.seq) > ($3, $4)
    AND ($6::bigint IS NULL OR m.created_at >= $6) AND ($7::bigint IS NULL OR m.created_at < $7) AND ($8::text IS NULL OR m.role = $8)
  ORDER BY m.conversation_id, m.seq LIMIT $5`;

type Verb<K extends keyof Store> = Parameters<Store[K]>[0];

export async function listVectorSpaces({ sql }: StoreContext): Promise<VectorSpace[]> {
  return (await sql.all<Row<"vector_spaces">>(SPACES)).map(toSpace);
}

export async function countVectors({ sql }: StoreContext): Promise<VectorCounts> {
  return sql.read(async (snapshot) => {
    const [counts, spaces] = await Promise.all([
      snapshot.get<{ messages: number }>(COUNTS),
      snapshot.all<{ space_id: number; vectors: number }>(COUNT_VECTORS),
    ]);
    return {
      messages: counts?.messages ?? 0,
      spaces: spaces.map(({ space_id, vectors }) => ({ spaceId: space_id, vectors })),
    };
  });
}

export async function claimVectorSpace(
  context: StoreContext,
  request: Verb<"claimVectorSpace">,
): Promise<VectorSpace | null> {
  const space = await claim(context, request);
  if (space?.filledAt !== null || (await outlastWriters(context))) return space;
  await releaseVectorSpace(context, { ...request, spaceId: space.spaceId, isFilled: false });
  return null;
}

/**
 * Waits for those who began to write before the claim was committed. What they store before they see a new space is not pending for it, and a
 * walk would not see it before they commit.
 */
async function outlastWriters({ sql }: StoreContext): Promise<boolean> {
  const list = async (): Promise<string[]> => (await sql.all<{ id: string }>(WRITERS)).map(({ id }) => id);
  const startedAt = performance.now();
  for (let writers = await list(); writers.length > 0;) {
    if (performance.now() - startedAt > MAX_WRITERS_MS) return false;
    await sleep(WRITERS_PAUSE_MS);
    const still = new Set(await list());
    writers = writers.filter((id) => still.has(id));
  }
  return true;
}

function claim(
  { sql }: StoreContext,
  { model, holder, now, leaseMs }: Verb<"claimVectorSpace">,
): Promise<VectorSpace | null> {
  return sql.write(async (transaction) => {
    if ((await transaction.get<{ yes: boolean }>(MAY_CLAIM))?.yes !== true)
      throw new EngineError("denied", "cannot make vectors: this role of the server may only use them", {
        step: { kind: "embed_as_owner" },
      });
    transaction.post(statement(ADD_SPACE, model, now));
    const row = await transaction.get<Row<"vector_spaces">>(TRY_SPACE, model);
    if (row === undefined || !isLeaseFree(row, holder, now)) return null;
    transaction.post(statement(CLAIM, holder, now + leaseMs, row.space_id));
    return toSpace(row);
  });
}

export async function listUnembedded(
  { sql }: StoreContext,
  { spaceId, after, limit }: Verb<"listUnembedded">,
): Promise<number[]> {
  return (await sql.all<{ id: number }>(UNEMBEDDED, spaceId, after, limit)).map(({ id }) => id);
}

export const listPendingVectors = (
  { sql }: StoreContext,
  { spaceId, limit }: Verb<"listPendingVectors">,
): Promise<{ messageId: number; isWanted: boolean }[]> => sql.all(PENDING, spaceId, limit);

export async function storeVectors(
  { sql }: StoreContext,
  request: Verb<"storeVectors">,
): Promise<StoreVectorsResult> {
  const { spaceId, holder, now, leaseMs, vectors, passed = [], unwanted = [], spent } = request;
  const ids = vectors.map(({ messageId }) => messageId);
  return sql.write(async (transaction): Promise<StoreVectorsResult> => {
    const cost = spent ? [addSpend(spent)] : [];
    const space = await transaction.get<{ dimensions: number }>(RENEW, now + leaseMs, spaceId, holder);
    const fit = space && fitDimensions(space.dimensions, vectors);
    if (fit?.kind !== "fit") {
      transaction.post(...cost);
      return fit ?? { kind: "lost" };
    }
    if (space?.dimensions !== fit.dimensions)
      transaction.post(statement(SET_DIMENSIONS, fit.dimensions, spaceId));
    transaction.post(statement(HOLD, [...ids, ...unwanted]));
    const stored = await transaction.change(ADD_VECTORS, spaceId, ...packVectors(vectors));
    transaction.post(
      statement(END_PENDING, spaceId, [...ids, ...passed]),
      statement(END_UNWANTED, spaceId, unwanted),
    );
    // A server that was restarted may not have answered the COMMIT of an earlier try, which has stored them with their cost.
    const isRepeated = stored === 0 && (await transaction.get(ANY_STORED, spaceId, ids)) !== undefined;
    if (!isRepeated) transaction.post(...cost);
    return { kind: "stored", stored };
  });
}

/** The vectors as one value, and the offset of each. */
function packVectors(
  vectors: Verb<"storeVectors">["vectors"],
): [bytes: Uint8Array, ids: number[], starts: number[], lengths: number[]] {
  const values = vectors.map(({ vector }) => (vector === null ? new Uint8Array() : vectorToBytes(vector)));
  const lengths = values.map(({ byteLength }) => byteLength);
  let next = 1;
  const starts = lengths.map((length) => (next += length) - length);
  return [Buffer.concat(values), vectors.map(({ messageId }) => messageId), starts, lengths];
}

export async function releaseVectorSpace(
  { sql }: StoreContext,
  { spaceId, holder, now, isFilled }: Verb<"releaseVectorSpace">,
): Promise<void> {
  await sql.write((transaction) => transaction.change(RELEASE, spaceId, holder, isFilled, now));
}

export async function dropVectorSpace(
  { sql }: StoreContext,
  spaceId: number,
  limit: number,
): Promise<boolean> {
  return sql.write(async (transaction) => {
    transaction.post(statement(HOLD_SPACE, spaceId));
    if ((await transaction.change(DROP_SOME, spaceId, limit)) === limit) return false;
    await transaction.change(DROP_SPACE, spaceId);
    return true;
  });
}

interface KnownCodes {
  /** The space they were made for: its number may be reused. */
  readonly madeFor: string;
  readonly codes: VectorCodes;
}

/** The codes of the vectors that a store has read, by space. */
const knownCodes = new WeakMap<FullTextIndex, Map<number, KnownCodes>>();

function codesOf({ index }: StoreContext): Map<number, KnownCodes> {
  let codes = knownCodes.get(index);
  if (codes === undefined) knownCodes.set(index, (codes = new Map()));
  return codes;
}

interface SpaceFacts {
  readonly name: string | null;
  readonly isThere: boolean;
  readonly named: number;
  readonly total: number;
  readonly conversations: string | null;
}

type ScanResult = { nearest: Neighbour[]; next: string | null };

export function scanVectors(context: StoreContext, request: Verb<"scanVectors">): Promise<ScanResult> {
  const { spaceId, scope, vector, limit } = request;
  return context.sql.read(async (sql) => {
    const last = codesOf(context).get(spaceId)?.codes.findLast();
    const [facts, beyond] = await Promise.all([
      sql.get<SpaceFacts>(
        SPACE_FACTS,
        spaceId,
        last?.vectorId ?? 0,
        last?.messageId ?? 0,
        scope.owner ?? null,
        nameConversations(scope),
      ),
      readBeyond(sql, "message", scope),
    ]);
    const scan = new Scan(vector, limit, new Set(beyond));
    const next =
      facts === undefined
        ? null
        : isMostOfAll(scope, facts)
          ? await scanSpace(sql, context, request, facts, scan)
          : await scanConversations(sql, request, facts, scan);
    return { nearest: scan.nearest.list(), next };
  });
}

const listConversations = ({ conversations }: SpaceFacts): number[] =>
  conversations ? conversations.split(",").map(Number) : [];

/** Compares vectors with the query vector. */
class Scan {
  readonly nearest: NearestList;
  readonly #vector: Float32Array;
  readonly #without: ReadonlySet<number>;

  constructor(vector: Float32Array, limit: number, without: ReadonlySet<number>) {
    this.#vector = vector;
    this.#without = without;
    this.nearest = new NearestList(limit);
  }

  isWanted(messageId: number): boolean {
    return !this.#without.has(messageId);
  }

  /** Messages without text have no bytes. Returns the vector, for coding. */
  compare(messageId: number, bytes: Uint8Array, isWanted: boolean): Float32Array | null {
    if (bytes.byteLength !== this.#vector.byteLength) return null;
    const vector = vectorFromBytes(bytes);
    if (isWanted && this.isWanted(messageId)) this.nearest.add(messageId, dotProduct(this.#vector, vector));
    return vector;
  }
}

/** First the coded vectors, then one batch of the rest, which is coded on the way. The place is a number in the space. */
async function scanSpace(
  sql: Sql,
  context: StoreContext,
  { spaceId, vector, limit, after, isExact = false }: Verb<"scanVectors">,
  facts: SpaceFacts,
  scan: Scan,
): Promise<string | null> {
  const all = codesOf(context);
  const named = facts.named === facts.total ? null : new Set(listConversations(facts));
  const isIn = (conversationId: number): boolean => named?.has(conversationId) ?? true;
  dropForeign(all, spaceId, vector.length, facts);
  let from = Number(after ?? 0);
  if (after === null && !isExact) {
    const known = all.get(spaceId)?.codes;
    const isLikely = ({ messageId, conversationId }: CodedRow): boolean =>
      isIn(conversationId) && scan.isWanted(messageId);
    const likely = known?.findLikely(vector, LIKELY_PER_HIT * limit, isLikely) ?? [];
    await compareLikely(sql, spaceId, likely, scan);
    from = known?.findLast()?.vectorId ?? 0;
  }
  const rows = await sql.all<CodedRow & { vector: Uint8Array }>(SCAN_SPACE, spaceId, from, STRETCH_VECTORS);
  const read = rows.map((row): NewRow => ({
    ...row,
    vector: scan.compare(row.messageId, row.vector, isIn(row.conversationId)),
  }));
  if (!isExact) addCodes(all, spaceId, read, { from, dimensions: vector.length, name: facts.name ?? "" });
  return rows.length === STRETCH_VECTORS ? String(rows.at(-1)?.vectorId) : null;
}

async function compareLikely(
  sql: Sql,
  spaceId: number,
  likely: readonly CodedRow[],
  scan: Scan,
): Promise<void> {
  if (likely.length === 0) return;
  const vectorIds = likely.map(({ vectorId }) => vectorId);
  const messageIds = likely.map(({ messageId }) => messageId);
  const rows = await sql.all<{ messageId: number; vector: Uint8Array }>(
    LIKELY,
    spaceId,
    vectorIds,
    messageIds,
  );
  for (const { messageId, vector } of rows) scan.compare(messageId, vector, true);
}

/** Drops codes of an earlier space with this number, of vectors of another length, or whose last row is gone. */
function dropForeign(
  all: Map<number, KnownCodes>,
  spaceId: number,
  dimensions: number,
  { name, isThere }: SpaceFacts,
): void {
  const found = all.get(spaceId);
  if (found === undefined) return;
  if (found.madeFor !== name || found.codes.dimensions !== dimensions || !isThere) all.delete(spaceId);
}

/** Adds rows after the coded ones; the first ones of a space determine its codes. */
function addCodes(
  all: Map<number, KnownCodes>,
  spaceId: number,
  rows: readonly NewRow[],
  { from, dimensions, name }: { readonly from: number; readonly dimensions: number; readonly name: string },
): void {
  const codes = all.get(spaceId)?.codes ?? (from === 0 ? VectorCodes.learn(rows, dimensions) : null);
  if (codes === null || (codes.findLast()?.vectorId ?? 0) !== from) return;
  codes.add(rows);
  all.set(spaceId, { madeFor: name, codes });
}

interface PlacedVector {
  readonly conversationId: number;
  readonly seq: number;
  readonly messageId: number;
  readonly vector: Uint8Array;
}

/** One conversation after the other, each in order of arrival; the place is a conversation and a seq in it. */
async function scanConversations(
  sql: Sql,
  { spaceId, scope, after }: Verb<"scanVectors">,
  facts: SpaceFacts,
  scan: Scan,
): Promise<string | null> {
  const [conversation = 0, seq = 0] = (after ?? "0.0").split(".").map(Number);
  const { since = null, before = null, role = null } = scope;
  const rows = await sql.all<PlacedVector>(
    SCAN_CONVERSATIONS,
    spaceId,
    listConversations(facts),
    conversation,
    seq,
    STRETCH_VECTORS,
    since,
    before,
    role,
  );
  for (const { messageId, vector } of rows) scan.compare(messageId, vector, true);
  const last = rows.at(-1);
  return last !== undefined && rows.length === STRETCH_VECTORS ? `${last.conversationId}.${last.seq}` : null;
}

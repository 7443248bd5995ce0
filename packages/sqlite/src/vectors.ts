/**
 * Vectors in SQLite: one blob for each message and space, and the search over them, one stretch at a time so that it can be cancelled.
 * Codes of vectors that were read stay in memory (`model/vector-codes.ts`); a later search finds the likely nearest by these and compares
 * only them exactly.
 *
 * Invariant: a vector belongs to the current version of a shown message; plans drop it when that ends.
 */
import {
  dotProduct,
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
import type {
  RecallScope,
  Row,
  StoreVectors,
  StoreVectorsResult,
  VectorCounts,
  VectorSpace,
} from "@lossless/core/ports";
import type { Connection } from "./connection.ts";
import type { StoreContext } from "./store-context.ts";
import { resolveConversations } from "./find-clues.ts";
import { listBeyond } from "./inherited.ts";
import { recordSpend } from "./spend.ts";

/** The newest version of a message that is neither hidden nor forgotten. A revision is hidden when its first version is. */
export const IS_EMBEDDABLE = `
  m.forgotten_at IS NULL AND m.newest IS NULL AND CASE WHEN m.revises IS NULL THEN m.hidden_now = 0 ELSE EXISTS (
    SELECT 1 FROM messages f WHERE f.message_id = m.revises AND f.newest = m.message_id AND f.hidden_now = 0) END`;
const SPACE_COLUMNS = "space_id, model, dimensions, created_at, filled_at";
const SPACES = `SELECT ${SPACE_COLUMNS} FROM vector_spaces ORDER BY space_id`;
const SPACE_OF = "SELECT * FROM vector_spaces WHERE model = ?";
/** Each event that is not hidden has one current version; counted from indexes, because rows are long. */
const COUNT_MESSAGES = `
  SELECT (SELECT coalesce(sum(message_count), 0) FROM conversations)
       - (SELECT count(*) FROM messages INDEXED BY messages_by_revision WHERE revises IS NOT NULL)
       - (SELECT count(*) FROM messages INDEXED BY messages_hidden WHERE hidden_now <> 0 AND revises IS NULL) AS n`;
const COUNT_VECTORS =
  "SELECT count(*) AS n FROM message_vectors INDEXED BY vectors_of_message WHERE message_id > 0 AND space_id = ?";
const ADD_SPACE =
  "INSERT INTO vector_spaces (model, dimensions, created_at) VALUES (?, 0, ?) ON CONFLICT DO NOTHING";
const CLAIM = "UPDATE vector_spaces SET lease_holder = ?, lease_until = ? WHERE space_id = ?";
const RENEW = "UPDATE vector_spaces SET lease_until = ? WHERE space_id = ? AND lease_holder = ?";
const RELEASE = `
  UPDATE vector_spaces SET lease_holder = NULL, lease_until = NULL, filled_at = CASE WHEN ?3 THEN coalesce(filled_at, ?4) ELSE filled_at END
  WHERE space_id = ?1 AND lease_holder = ?2`;
const DIMENSIONS = "SELECT dimensions FROM vector_spaces WHERE space_id = ?";
const SET_DIMENSIONS = "UPDATE vector_spaces SET dimensions = ? WHERE space_id = ?";
/** The ids come from an index with nothing else in it; the row itself is read only for those without a vector. */
const UNEMBEDDED = `
  SELECT m.message_id AS id FROM messages i INDEXED BY messages_by_seq CROSS JOIN messages m ON m.message_id = i.message_id
  WHERE i.message_id > ?2 AND NOT EXISTS (SELECT 1 FROM message_vectors v WHERE v.message_id = i.message_id AND v.space_id = ?1)
    AND ${IS_EMBEDDABLE}
  ORDER BY i.message_id LIMIT ?3`;
const PENDING = `
  SELECT p.message_id AS messageId, ${IS_EMBEDDABLE} AS isWanted FROM vectors_pending p JOIN messages m USING (message_id)
  WHERE p.space_id = ? ORDER BY p.message_id LIMIT ?`;
const END_PENDING = "DELETE FROM vectors_pending WHERE message_id = ? AND space_id = ?";
const END_UNWANTED = `
  DELETE FROM vectors_pending WHERE message_id = ?1 AND space_id = ?2
    AND NOT EXISTS (SELECT 1 FROM messages m WHERE m.message_id = ?1 AND ${IS_EMBEDDABLE})`;
const ADD_VECTOR = `
  INSERT INTO message_vectors (space_id, message_id, vector)
  SELECT ?1, m.message_id, ?3 FROM messages m WHERE m.message_id = ?2 AND ${IS_EMBEDDABLE} ON CONFLICT DO NOTHING`;
const DROP_SOME = `
  DELETE FROM message_vectors WHERE vector_id IN (SELECT vector_id FROM message_vectors WHERE space_id = ? LIMIT ?)`;
const DROP_SPACE = "DELETE FROM vector_spaces WHERE space_id = ?";
const SCAN_SPACE = `
  SELECT v.vector_id, v.message_id, v.vector, m.conversation_id FROM message_vectors v CROSS JOIN messages m ON m.message_id = v.message_id
  WHERE v.vector_id > ?2 AND v.space_id = ?1 ORDER BY v.vector_id LIMIT ?3`;
const LIKELY = `
  SELECT v.message_id, v.message_id, v.vector FROM json_each(?2) j CROSS JOIN message_vectors v ON v.vector_id = j.value ->> 0
  WHERE v.space_id = ?1 AND v.message_id = j.value ->> 1`;
const NAME_SPACE = "SELECT json_array(model, created_at) AS name FROM vector_spaces WHERE space_id = ?";
const MESSAGE_AT = "SELECT message_id AS id FROM message_vectors WHERE vector_id = ? AND space_id = ?";
/** How many messages some conversations have, and how many all have. */
const COUNT_SCOPE = `
  SELECT coalesce(sum(message_count) FILTER (WHERE conversation_id IN (SELECT value FROM json_each(?1))), 0) AS named,
    coalesce(sum(message_count), 0) AS total FROM conversations`;
const SCAN_CONVERSATION = `
  SELECT m.seq, m.message_id, v.vector FROM messages m JOIN message_vectors v ON v.message_id = m.message_id AND v.space_id = ?1
  WHERE m.conversation_id = ?2 AND m.seq > ?3 AND (?5 IS NULL OR m.created_at >= ?5) AND (?6 IS NULL OR m.created_at < ?6)
    AND (?7 IS NULL OR m.role = ?7)
  ORDER BY m.seq LIMIT ?4`;
const ALL_CONVERSATIONS = "SELECT conversation_id AS id FROM conversations ORDER BY conversation_id";

/** When more of the newest vectors than this were removed, the codes are made again. */
const MAX_DROPPED = 256;

export function listVectorSpaces({ connection }: StoreContext): VectorSpace[] {
  return connection.all<Row<"vector_spaces">>(SPACES).map(toSpace);
}

export function countVectors(context: StoreContext): VectorCounts {
  const { connection } = context;
  return connection.read(() => ({
    messages: connection.get<{ n: number }>(COUNT_MESSAGES)?.n ?? 0,
    spaces: listVectorSpaces(context).map(({ spaceId }) => ({
      spaceId,
      vectors: connection.get<{ n: number }>(COUNT_VECTORS, spaceId)?.n ?? 0,
    })),
  }));
}

export function claimVectorSpace(
  { connection }: StoreContext,
  request: { model: string; holder: string; now: number; leaseMs: number },
): VectorSpace | null {
  const { model, holder, now, leaseMs } = request;
  return connection.write(() => {
    connection.run(ADD_SPACE, model, now);
    const row = connection.get<Row<"vector_spaces">>(SPACE_OF, model);
    if (!row || !isLeaseFree(row, holder, now)) return null;
    connection.run(CLAIM, holder, now + leaseMs, row.space_id);
    return toSpace(row);
  });
}

export function listUnembedded(
  { connection }: StoreContext,
  { spaceId, after, limit }: { spaceId: number; after: number; limit: number },
): number[] {
  return connection.all<{ id: number }>(UNEMBEDDED, spaceId, after, limit).map(({ id }) => id);
}

export function listPendingVectors(
  { connection }: StoreContext,
  { spaceId, limit }: { spaceId: number; limit: number },
): { messageId: number; isWanted: boolean }[] {
  return connection
    .all<{ messageId: number; isWanted: number }>(PENDING, spaceId, limit)
    .map(({ messageId, isWanted }) => ({ messageId, isWanted: isWanted !== 0 }));
}

export function storeVectors({ connection }: StoreContext, request: StoreVectors): StoreVectorsResult {
  const { spaceId, holder, now, leaseMs, vectors, passed = [], unwanted = [], spent } = request;
  return connection.write((): StoreVectorsResult => {
    if (spent) recordSpend({ connection }, spent);
    if (connection.change(RENEW, now + leaseMs, spaceId, holder) === 0) return { kind: "lost" };
    const known = connection.get<{ dimensions: number }>(DIMENSIONS, spaceId)?.dimensions ?? 0;
    const fit = fitDimensions(known, vectors);
    if (fit.kind === "dimensions") return fit;
    if (known !== fit.dimensions) connection.run(SET_DIMENSIONS, fit.dimensions, spaceId);
    let stored = 0;
    for (const { messageId, vector } of vectors) {
      const bytes = vector === null ? new Uint8Array() : vectorToBytes(vector);
      stored += connection.change(ADD_VECTOR, spaceId, messageId, bytes);
      connection.run(END_PENDING, messageId, spaceId);
    }
    for (const messageId of passed) connection.run(END_PENDING, messageId, spaceId);
    for (const messageId of unwanted) connection.run(END_UNWANTED, messageId, spaceId);
    return { kind: "stored", stored };
  });
}

export function releaseVectorSpace(
  { connection }: StoreContext,
  { spaceId, holder, now, isFilled }: { spaceId: number; holder: string; now: number; isFilled: boolean },
): void {
  connection.write(() => connection.run(RELEASE, spaceId, holder, isFilled ? 1 : 0, now));
}

export function dropVectorSpace({ connection }: StoreContext, spaceId: number, limit: number): boolean {
  return connection.write(() => {
    if (connection.change(DROP_SOME, spaceId, limit) === limit) return false;
    connection.run(DROP_SPACE, spaceId);
    return true;
  });
}

interface ScanRequest {
  readonly spaceId: number;
  readonly vector: Float32Array;
  readonly scope: RecallScope;
  readonly limit: number;
  readonly after: string | null;
  readonly isExact?: boolean | undefined;
}

export function scanVectors(
  context: StoreContext,
  request: ScanRequest,
): { nearest: Neighbour[]; next: string | null } {
  const { connection } = context;
  return connection.read(() => {
    const { scope } = request;
    const conversations = resolveConversations(connection, scope);
    const stretch = new Stretch(request.vector, request.limit, listBeyond(connection, scope, "message"));
    const next = isMostOfAll(scope, countScope(connection, conversations))
      ? scanSpace(context, request, conversations, stretch)
      : scanConversations(connection, request, conversations, stretch);
    return { nearest: stretch.list(), next };
  });
}

function countScope(
  connection: Connection,
  conversations: readonly number[] | null,
): { readonly named: number; readonly total: number } {
  // For a scope that excludes nothing the number does not matter.
  const all = { named: 0, total: 0 };
  if (conversations === null) return all;
  return connection.get<typeof all>(COUNT_SCOPE, JSON.stringify(conversations)) ?? all;
}

/** First what has codes, then one stretch of the rest, which is coded on the way. The place is a row of the space. */
function scanSpace(
  { connection, codes }: StoreContext,
  request: ScanRequest,
  conversations: readonly number[] | null,
  stretch: Stretch,
): string | null {
  const { spaceId, vector, after, isExact = false } = request;
  const named = conversations === null ? null : new Set(conversations);
  const isWanted = ({ messageId, conversationId }: CodedRow): boolean =>
    (named?.has(conversationId) ?? true) && !stretch.without.has(messageId);
  let from = Number(after ?? 0);
  forgetOtherSpace(connection, codes, spaceId);
  if (after === null && !isExact) {
    const known = findCodes(connection, codes, spaceId, vector.length);
    const likely = known?.findLikely(vector, LIKELY_PER_HIT * request.limit, isWanted) ?? [];
    const places = JSON.stringify(likely.map(({ vectorId, messageId }) => [vectorId, messageId]));
    if (likely.length > 0)
      for (const row of connection.walk<VectorRow>(LIKELY, spaceId, places)) stretch.add(row);
    from = known?.findLast()?.vectorId ?? 0;
  }
  const rows = Array.from(
    connection.walk<SpaceRow>(SCAN_SPACE, spaceId, from, stretch.left),
    ([vectorId, messageId, bytes, conversationId]): NewRow => ({
      vectorId,
      messageId,
      conversationId,
      vector: bytes.byteLength === vector.byteLength ? vectorFromBytes(bytes) : null,
    }),
  );
  for (const row of rows)
    if (row.vector !== null && isWanted(row)) stretch.compare(row.messageId, row.vector);
  if (!isExact) addCodes(connection, codes, spaceId, rows, { from, dimensions: vector.length });
  return rows.length === STRETCH_VECTORS ? String(rows.at(-1)?.vectorId) : null;
}

/** Drops codes of an earlier space with this number: another program may have dropped it and filled a new one. */
function forgetOtherSpace(connection: Connection, codes: StoreContext["codes"], spaceId: number): void {
  const found = codes.get(spaceId);
  if (found && found.madeFor !== nameSpace(connection, spaceId)) codes.delete(spaceId);
}

const nameSpace = (connection: Connection, spaceId: number): string =>
  connection.get<{ name: string }>(NAME_SPACE, spaceId)?.name ?? "";

/** The codes of a space, without those at its end whose rows are gone: only there can a row's number be reused. */
function findCodes(
  connection: Connection,
  codes: StoreContext["codes"],
  spaceId: number,
  dimensions: number,
): VectorCodes | null {
  const known = codes.get(spaceId)?.known;
  if (known === undefined) return null;
  for (let dropped = 0; dropped <= MAX_DROPPED && known.dimensions === dimensions; dropped++) {
    const last = known.findLast();
    if (last === null) break;
    if (connection.get<{ id: number }>(MESSAGE_AT, last.vectorId, spaceId)?.id === last.messageId)
      return known;
    known.drop();
  }
  codes.delete(spaceId);
  return null;
}

/** Adds rows that follow what is coded; the codes are learned from the first ones of a space. */
function addCodes(
  connection: Connection,
  codes: StoreContext["codes"],
  spaceId: number,
  rows: readonly NewRow[],
  { from, dimensions }: { readonly from: number; readonly dimensions: number },
): void {
  const known = codes.get(spaceId)?.known ?? (from === 0 ? VectorCodes.learn(rows, dimensions) : null);
  if (known === null || (known.findLast()?.vectorId ?? 0) !== from) return;
  known.add(rows);
  codes.set(spaceId, { madeFor: nameSpace(connection, spaceId), known });
}

/** One conversation after the other, each in order of arrival; the place is a conversation and a seq in it. */
function scanConversations(
  connection: Connection,
  { spaceId, scope, after }: ScanRequest,
  named: readonly number[] | null,
  stretch: Stretch,
): string | null {
  const conversations = named ?? connection.all<{ id: number }>(ALL_CONVERSATIONS).map(({ id }) => id);
  const ordered = conversations.toSorted((a, b) => a - b);
  const [fromConversation = 0, fromSeq = 0] = (after ?? "0.0").split(".").map(Number);
  const { since = null, before = null, role = null } = scope;
  for (const conversation of ordered.filter((id) => id >= fromConversation)) {
    const seq = conversation === fromConversation ? fromSeq : 0;
    const last = stretch.take(
      connection.walk(SCAN_CONVERSATION, spaceId, conversation, seq, stretch.left, since, before, role),
    );
    if (stretch.left === 0) return `${conversation}.${last}`;
  }
  return null;
}

type VectorRow = readonly [place: number, messageId: number, vector: Uint8Array];
type SpaceRow = readonly [vectorId: number, messageId: number, vector: Uint8Array, conversationId: number];

/** Compares up to this many vectors with the one searched for. */
class Stretch {
  left = STRETCH_VECTORS;
  readonly without: ReadonlySet<number>;
  readonly #vector: Float32Array;
  readonly #nearest: NearestList;

  constructor(vector: Float32Array, limit: number, without: ReadonlySet<number>) {
    this.#vector = vector;
    this.without = without;
    this.#nearest = new NearestList(limit);
  }

  /** The place of the last row. */
  take(rows: Iterable<VectorRow>): number {
    let last = 0;
    for (const row of rows) {
      last = row[0];
      this.left -= 1;
      this.add(row);
    }
    return last;
  }

  add([, messageId, bytes]: VectorRow): void {
    // Messages without text have none.
    if (bytes.byteLength !== this.#vector.byteLength || this.without.has(messageId)) return;
    this.compare(messageId, vectorFromBytes(bytes));
  }

  compare(messageId: number, vector: Float32Array): void {
    this.#nearest.add(messageId, dotProduct(this.#vector, vector));
  }

  list(): Neighbour[] {
    return this.#nearest.list();
  }
}

/**
 * Vectors in SQLite: one blob for each message and space, and exact search over them, one stretch at a time so that it can be cancelled.
 *
 * Invariant: a vector belongs to the current version of a message that is shown; plans drop it wherever that ends.
 */
import { dotProduct, NearestList, vectorFromBytes, vectorToBytes } from "@lossless/core/adapter";
import type { Neighbour } from "@lossless/core/adapter";
import type {
  RecallScope,
  Row,
  StoreVectors,
  StoreVectorsOutcome,
  VectorCounts,
  VectorSpace,
} from "@lossless/core/ports";
import type { Connection } from "./connection.ts";
import type { StoreContext } from "./store-context.ts";
import { resolveConversations } from "./find-clues.ts";
import { listBeyond } from "./inherited.ts";

/** The newest version of a message that is neither hidden nor forgotten. A revision is hidden when its first version is. */
export const IS_EMBEDDABLE = `
  m.forgotten_at IS NULL AND m.newest IS NULL AND CASE WHEN m.revises IS NULL THEN m.hidden_now = 0 ELSE EXISTS (
    SELECT 1 FROM messages f WHERE f.message_id = m.revises AND f.newest = m.message_id AND f.hidden_now = 0) END`;
const SPACE_COLUMNS = "space_id, model, dimensions, created_at, filled_at";
const SPACES = `SELECT ${SPACE_COLUMNS} FROM vector_spaces ORDER BY space_id`;
const SPACE_OF = `SELECT ${SPACE_COLUMNS} FROM vector_spaces WHERE model = ?`;
/** Of each event that is not hidden one version is current; counted from indexes, because rows are long. */
const COUNT_MESSAGES = `
  SELECT (SELECT coalesce(sum(message_count), 0) FROM conversations)
       - (SELECT count(*) FROM messages INDEXED BY messages_by_revision WHERE revises IS NOT NULL)
       - (SELECT count(*) FROM messages INDEXED BY messages_hidden WHERE hidden_now <> 0 AND revises IS NULL) AS n`;
const COUNT_VECTORS =
  "SELECT count(*) AS n FROM message_vectors INDEXED BY vectors_of_message WHERE message_id > 0 AND space_id = ?";
const ADD_SPACE =
  "INSERT INTO vector_spaces (model, dimensions, created_at) VALUES (?, 0, ?) ON CONFLICT DO NOTHING";
const CLAIM = `
  UPDATE vector_spaces SET lease_holder = ?1, lease_until = ?2
  WHERE model = ?3 AND (lease_holder IS NULL OR lease_holder = ?1 OR lease_until <= ?4)`;
const RENEW = "UPDATE vector_spaces SET lease_until = ? WHERE space_id = ? AND lease_holder = ?";
const RELEASE = `
  UPDATE vector_spaces SET lease_holder = NULL, lease_until = NULL, filled_at = CASE WHEN ?3 THEN coalesce(filled_at, ?4) ELSE filled_at END
  WHERE space_id = ?1 AND lease_holder = ?2`;
const DIMENSIONS = "SELECT dimensions FROM vector_spaces WHERE space_id = ?";
const SET_DIMENSIONS = "UPDATE vector_spaces SET dimensions = ? WHERE space_id = ?";
/** The ids come from an index that holds nothing else; only of those without a vector is the row itself looked at. */
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
const SCAN_ALL = `
  SELECT vector_id, message_id, vector FROM message_vectors WHERE vector_id > ?2 AND space_id = ?1 ORDER BY vector_id LIMIT ?3`;
const SCAN_CONVERSATION = `
  SELECT m.seq, m.message_id, v.vector FROM messages m JOIN message_vectors v ON v.message_id = m.message_id AND v.space_id = ?1
  WHERE m.conversation_id = ?2 AND m.seq > ?3 AND (?5 IS NULL OR m.created_at >= ?5) AND (?6 IS NULL OR m.created_at < ?6)
    AND (?7 IS NULL OR m.role = ?7)
  ORDER BY m.seq LIMIT ?4`;
const ALL_CONVERSATIONS = "SELECT conversation_id AS id FROM conversations ORDER BY conversation_id";

/** Vectors looked at in one stretch: some milliseconds. */
const STRETCH = 2_048;

const toSpace = (row: Row<"vector_spaces">): VectorSpace => ({
  spaceId: row.space_id,
  model: row.model,
  dimensions: row.dimensions,
  createdAt: row.created_at,
  filledAt: row.filled_at,
});

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
    if (connection.change(CLAIM, holder, now + leaseMs, model, now) === 0) return null;
    const row = connection.get<Row<"vector_spaces">>(SPACE_OF, model);
    return row ? toSpace(row) : null;
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

export function storeVectors({ connection }: StoreContext, request: StoreVectors): StoreVectorsOutcome {
  const { spaceId, holder, now, leaseMs, vectors, passed = [], unwanted = [] } = request;
  return connection.write((): StoreVectorsOutcome => {
    if (connection.change(RENEW, now + leaseMs, spaceId, holder) === 0) return { kind: "lost" };
    const known = connection.get<{ dimensions: number }>(DIMENSIONS, spaceId)?.dimensions ?? 0;
    const lengths = vectors.flatMap(({ vector }) => (vector === null ? [] : [vector.length]));
    const expected = known === 0 ? (lengths[0] ?? 0) : known;
    const given = lengths.find((length) => length !== expected);
    if (given !== undefined) return { kind: "dimensions", expected, given };
    if (known !== expected) connection.run(SET_DIMENSIONS, expected, spaceId);
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

export function scanVectors(
  { connection }: StoreContext,
  request: { spaceId: number; vector: Float32Array; scope: RecallScope; limit: number; after: string | null },
): { nearest: Neighbour[]; next: string | null } {
  return connection.read(() => {
    const { scope } = request;
    const stretch = new Stretch(request.vector, request.limit, listBeyond(connection, scope, "message"));
    const conversations = resolveConversations(connection, scope);
    const isWhole =
      conversations === null &&
      scope.since === undefined &&
      scope.before === undefined &&
      scope.role === undefined;
    const next = isWhole
      ? scanAll(connection, request, stretch)
      : scanConversations(connection, request, conversations, stretch);
    return { nearest: stretch.list(), next };
  });
}

interface Scan {
  readonly spaceId: number;
  readonly scope: RecallScope;
  readonly after: string | null;
}

function scanAll(connection: Connection, { spaceId, after }: Scan, stretch: Stretch): string | null {
  const from = Number(after ?? 0);
  const last = stretch.take(connection.walk(SCAN_ALL, spaceId, from, stretch.left));
  return stretch.left === 0 ? String(last) : null;
}

/** One conversation after the other, each in its order of arrival; the place is a conversation and a seq in it. */
function scanConversations(
  connection: Connection,
  { spaceId, scope, after }: Scan,
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

/** Compares up to so many vectors with the one that is looked for. */
class Stretch {
  left = STRETCH;
  readonly #vector: Float32Array;
  readonly #without: ReadonlySet<number>;
  readonly #nearest: NearestList;

  constructor(vector: Float32Array, limit: number, without: ReadonlySet<number>) {
    this.#vector = vector;
    this.#without = without;
    this.#nearest = new NearestList(limit);
  }

  /** The place of the last row. */
  take(rows: Iterable<VectorRow>): number {
    let last = 0;
    for (const [place, messageId, bytes] of rows) {
      last = place;
      this.left -= 1;
      // Messages without text have none.
      if (bytes.byteLength !== this.#vector.byteLength || this.#without.has(messageId)) continue;
      this.#nearest.add(messageId, dotProduct(this.#vector, vectorFromBytes(bytes)));
    }
    return last;
  }

  list(): Neighbour[] {
    return this.#nearest.list();
  }
}

/** Vectors in an archive of maps: every search compares the whole space. */
import {
  addSpend,
  dotProduct,
  fitDimensions,
  isLeaseFree,
  NearestList,
  toSpace,
  vectorFromBytes,
  vectorToBytes,
} from "@lossless/core/adapter";
import type { Row, Store } from "@lossless/core/ports";
import type { MemoryArchive } from "../memory-archive.ts";
import { change } from "./change.ts";
import { isCurrent, isInScope } from "./documents.ts";

/** The newest version of a message that is shown. A revision is hidden when its first version is. */
const isEmbeddable = (archive: MemoryArchive, message: Row<"messages">): boolean =>
  isCurrent(archive, message) && (archive.find("messages", message.revises) ?? message).hidden_now === 0;

export const vectorVerbs = (archive: MemoryArchive) => {
  const listEmbeddable = (): Row<"messages">[] =>
    archive
      .list("messages")
      .filter((row) => isEmbeddable(archive, row))
      .sort((a, b) => a.message_id - b.message_id);
  const isWanted = (messageId: number): boolean => {
    const message = archive.find("messages", messageId);
    return message !== undefined && isEmbeddable(archive, message);
  };
  return {
    async listVectorSpaces() {
      return archive
        .list("vector_spaces")
        .sort((a, b) => a.space_id - b.space_id)
        .map(toSpace);
    },
    async countVectors() {
      return {
        messages: listEmbeddable().length,
        spaces: archive.list("vector_spaces").map(({ space_id }) => ({
          spaceId: space_id,
          vectors: archive.count("message_vectors", { space_id }),
        })),
      };
    },
    async claimVectorSpace({ model, holder, now, leaseMs }) {
      const lease = { lease_holder: holder, lease_until: now + leaseMs };
      const [known] = archive.filter("vector_spaces", { model });
      if (known) {
        const { space_id } = known;
        if (!isLeaseFree(known, holder, now)) return null;
        change(archive, (changes) => changes.update("vector_spaces", { space_id }, lease));
        return toSpace(known);
      }
      const space_id = archive.count("vector_spaces", {}) + 1;
      const made = { space_id, model, dimensions: 0, created_at: now, filled_at: null, ...lease };
      change(archive, (changes) => changes.insert("vector_spaces", made));
      return toSpace(made);
    },
    async listPendingVectors({ spaceId, limit }) {
      return archive
        .filter("vectors_pending", { space_id: spaceId })
        .sort((a, b) => a.message_id - b.message_id)
        .slice(0, limit)
        .map(({ message_id }) => ({ messageId: message_id, isWanted: isWanted(message_id) }));
    },
    async listUnembedded({ spaceId, after, limit }) {
      const rows = archive.filter("message_vectors", { space_id: spaceId });
      const known = new Set(rows.map(({ message_id }) => message_id));
      return listEmbeddable()
        .map(({ message_id }) => message_id)
        .filter((id) => id > after && !known.has(id))
        .slice(0, limit);
    },
    async storeVectors({ spaceId, holder, now, leaseMs, vectors, passed = [], unwanted = [], spent }) {
      if (spent) change(archive, (changes) => addSpend(changes, archive.ids("spend", 1), spent));
      const space = archive.find("vector_spaces", spaceId);
      if (space?.lease_holder !== holder) return { kind: "lost" };
      const fit = fitDimensions(space.dimensions, vectors);
      if (fit.kind === "dimensions") return fit;
      const rows = archive.list("message_vectors");
      const isKnown = (id: number): boolean =>
        rows.some((row) => row.message_id === id && row.space_id === spaceId);
      const stored = vectors.filter(({ messageId }) => isWanted(messageId) && !isKnown(messageId));
      const last = rows.reduce((most, { vector_id }) => Math.max(most, vector_id), 0);
      const done = [...vectors.map(({ messageId }) => messageId), ...passed];
      change(archive, (changes) => {
        const lease_until = now + leaseMs;
        changes.update("vector_spaces", { space_id: spaceId }, { lease_until, dimensions: fit.dimensions });
        for (const [at, { messageId, vector }] of stored.entries())
          changes.insert("message_vectors", {
            vector_id: last + 1 + at,
            space_id: spaceId,
            message_id: messageId,
            vector: vector === null ? new Uint8Array() : vectorToBytes(vector),
          });
        for (const message_id of new Set([...done, ...unwanted.filter((id) => !isWanted(id))]))
          changes.delete("vectors_pending", { message_id, space_id: spaceId });
      });
      return { kind: "stored", stored: stored.length };
    },
    async releaseVectorSpace({ spaceId, holder, now, isFilled }) {
      const space = archive.find("vector_spaces", spaceId);
      if (space?.lease_holder !== holder) return;
      const filled_at = space.filled_at ?? (isFilled ? now : null);
      const free = { lease_holder: null, lease_until: null, filled_at };
      change(archive, (changes) => changes.update("vector_spaces", { space_id: spaceId }, free));
    },
    async dropVectorSpace(spaceId, limit) {
      const rows = archive.filter("message_vectors", { space_id: spaceId }).slice(0, limit);
      const isLast = rows.length < limit;
      change(archive, (changes) => {
        for (const { message_id, space_id } of rows)
          changes.delete("message_vectors", { message_id, space_id });
        if (!isLast) return;
        for (const { message_id, space_id } of archive.filter("vectors_pending", { space_id: spaceId }))
          changes.delete("vectors_pending", { message_id, space_id });
        changes.delete("vector_spaces", { space_id: spaceId });
      });
      return isLast;
    },
    async scanVectors({ spaceId, vector, scope, limit }) {
      const nearest = new NearestList(limit);
      for (const { message_id, vector: bytes } of archive.filter("message_vectors", { space_id: spaceId })) {
        const message = archive.find("messages", message_id);
        if (message && bytes.byteLength === vector.byteLength && isInScope(archive, message, scope))
          nearest.add(message_id, dotProduct(vector, vectorFromBytes(bytes)));
      }
      return { nearest: nearest.list(), next: null };
    },
  } satisfies Partial<Store>;
};

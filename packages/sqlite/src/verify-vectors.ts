/** Checks vectors: each belongs to the current version of a shown message, has the dimensions of its space, and is of length one. */
import { checkVector, refuseVector } from "@lossless/core/adapter";
import type { Connection } from "./connection.ts";
import type { Problems } from "@lossless/core/adapter";
import { IS_EMBEDDABLE } from "./vectors.ts";

const DANGLING = `
  SELECT v.message_id AS messageId, s.model FROM message_vectors v JOIN vector_spaces s USING (space_id) LEFT JOIN messages m USING (message_id)
  WHERE m.message_id IS NULL OR NOT (${IS_EMBEDDABLE}) ORDER BY v.vector_id`;
const VECTORS = `
  SELECT v.message_id, v.vector, s.model, s.dimensions FROM message_vectors v JOIN vector_spaces s USING (space_id)
  ORDER BY v.vector_id`;

export function checkVectors(connection: Connection, problems: Problems): void {
  for (const dangling of connection.all<{ messageId: number; model: string }>(DANGLING))
    refuseVector(dangling, problems);
  const rows = connection.walk<readonly [number, Uint8Array, string, number]>(VECTORS);
  for (const [messageId, bytes, model, dimensions] of rows)
    checkVector({ messageId, bytes, model, dimensions }, problems);
}

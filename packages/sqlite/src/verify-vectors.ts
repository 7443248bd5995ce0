/** Checks vectors: each belongs to the current version of a message that is shown, has the length of its space, and is of length one. */
import { dotProduct, formatMessageId, vectorFromBytes } from "@lossless/core/adapter";
import type { Connection } from "./connection.ts";
import type { Problems } from "@lossless/core/adapter";
import { IS_EMBEDDABLE } from "./vectors.ts";

const DANGLING = `
  SELECT v.message_id, s.model FROM message_vectors v JOIN vector_spaces s USING (space_id) LEFT JOIN messages m USING (message_id)
  WHERE m.message_id IS NULL OR NOT (${IS_EMBEDDABLE}) ORDER BY v.vector_id`;
const VECTORS = `
  SELECT v.message_id, v.vector, s.model, s.dimensions FROM message_vectors v JOIN vector_spaces s USING (space_id)
  ORDER BY v.vector_id`;
/** float32 has about seven digits; a sum over thousands of squares loses some of them. */
const TOLERANCE = 1e-3;

export function checkVectors(connection: Connection, problems: Problems): void {
  for (const { message_id: id, model } of connection.all<{ message_id: number; model: string }>(DANGLING)) {
    const name = formatMessageId(id);
    problems.add("vector", name, `${name} has a vector of ${model} but should have none`);
  }
  const rows = connection.walk<readonly [number, Uint8Array, string, number]>(VECTORS);
  for (const [messageId, bytes, model, dimensions] of rows) {
    if (bytes.byteLength === 0) continue;
    const name = formatMessageId(messageId);
    if (bytes.byteLength !== dimensions * 4) {
      const given = bytes.byteLength / 4;
      problems.add(
        "vector",
        name,
        `the vector of ${name} has ${given} numbers, those of ${model} have ${dimensions}`,
      );
      continue;
    }
    const vector = vectorFromBytes(bytes);
    if (!(Math.abs(dotProduct(vector, vector) - 1) < TOLERANCE))
      problems.add("vector", name, `the vector of ${name} is not of length one`);
  }
}

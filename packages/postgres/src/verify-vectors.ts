/** Checks vectors, like `verify-index.ts` before the proof begins; problems are reported when the proof asks for them. */
import { checkVector, refuseVector } from "@lossless/core/adapter";
import type { Problems } from "@lossless/core/adapter";
import type { Sql } from "./connection.ts";
import { IS_EMBEDDABLE } from "./vectors.ts";

const DANGLING = `
  SELECT v.message_id AS "messageId", s.model
  FROM message_vectors v JOIN vector_spaces s USING (space_id) JOIN messages m USING (message_id) WHERE NOT (${IS_EMBEDDABLE})
  ORDER BY v.vector_id`;
/** A few megabytes at a time. */
const PAGE = `
  SELECT v.vector_id, v.message_id AS "messageId", v.vector AS bytes, s.model, s.dimensions
  FROM message_vectors v JOIN vector_spaces s USING (space_id) WHERE v.vector_id > $1 ORDER BY v.vector_id LIMIT 1000`;

type Told = Parameters<Problems["add"]>;

interface VectorRow {
  readonly vector_id: number;
  readonly messageId: number;
  readonly bytes: Uint8Array;
  readonly model: string;
  readonly dimensions: number;
}

export async function readVectorProof(sql: Sql): Promise<(problems: Problems) => void> {
  const told: Told[] = [];
  const problems = { add: (...problem: Told) => void told.push(problem) };
  for (const dangling of await sql.all<VectorRow>(DANGLING)) refuseVector(dangling, problems);
  for (let after = 0; ;) {
    const rows = await sql.all<VectorRow>(PAGE, after);
    for (const row of rows) checkVector(row, problems);
    const last = rows.at(-1);
    if (last === undefined) return (all) => told.forEach((problem) => all.add(...problem));
    after = last.vector_id;
  }
}

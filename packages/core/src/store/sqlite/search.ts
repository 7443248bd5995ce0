/** Full-text search over messages: candidates from the index, best first. Analysis of the question is the caller's. */
import { EngineError } from "../../model/errors.ts";
import type { SearchHit, SearchRequest } from "../store.ts";
import type { StoreContext } from "./context.ts";
import { scopeTerm } from "./full-text-index.ts";

const MAX_SCOPE_TERMS = 200;

export function search(
  { connection, index }: StoreContext,
  request: SearchRequest,
): { hits: SearchHit[]; total: number } {
  const problem = index.problem();
  if (problem !== null) {
    throw new EngineError("database_corrupt", `cannot search: ${problem}`, {
      hint: "run lcm reindex; no message is affected",
    });
  }
  const table = index.table;
  const match = scopedMatch(request);
  const from = `
    FROM ${table} f JOIN messages m ON m.message_id = f.rowid JOIN conversations c ON c.conversation_id = m.conversation_id
    WHERE ${table} MATCH ?1 AND (?2 IS NULL OR c.owner = ?2) AND m.forgotten_at IS NULL AND m.newest IS NULL
      AND (m.revises IS NULL OR m.message_id = (SELECT n.newest FROM messages n WHERE n.message_id = m.revises))
      AND (?3 IS NULL OR m.conversation_id IN (SELECT value FROM json_each(?3)))`;
  const scope = request.conversationIds ? JSON.stringify(request.conversationIds) : null;
  try {
    return connection.read(() => {
      const hits = connection.all<{ id: number; score: number }>(
        `SELECT m.message_id AS id, -bm25(${table}, 1.0, 1.5, 0.0) AS score ${from} ORDER BY score DESC, id DESC LIMIT ?4 OFFSET ?5`,
        match,
        request.owner ?? null,
        scope,
        request.limit,
        request.offset,
      );
      const total =
        connection.get<{ n: number }>(`SELECT count(*) AS n ${from}`, match, request.owner ?? null, scope)
          ?.n ?? 0;
      return { hits: hits.map(({ id, score }) => ({ messageId: id, score })), total };
    });
  } catch (error) {
    throw new EngineError("database_corrupt", `cannot search: ${(error as Error).message}`, {
      hint: "run lcm reindex; no message is affected",
      cause: error,
    });
  }
}

/** Narrows by the scope terms of the index where they are few; the SQL filter beside it is what decides. */
function scopedMatch(request: SearchRequest): string {
  const ids = request.conversationIds;
  if (!ids || ids.length > MAX_SCOPE_TERMS) return request.match;
  return `(${request.match}) AND scope : (${ids.map((id) => `"${scopeTerm(id)}"`).join(" OR ")})`;
}

/** What forks have in common with the conversations they left, and how a search in a fork leaves out what its parent was told later. */
import type { DocumentKind, InheritedPart, RecallScope } from "@lossless/core/ports";
import type { SqlValue } from "./sql-values.ts";
import type { StoreContext } from "./store-context.ts";

const INHERITED = `
  WITH RECURSIVE parents (id, position) AS (
    SELECT parent_id, fork_pos FROM conversations WHERE conversation_id = ANY($1::bigint[]) AND parent_id IS NOT NULL
    UNION
    SELECT c.parent_id, c.fork_pos FROM parents p JOIN conversations c ON c.conversation_id = p.id WHERE c.parent_id IS NOT NULL)
  SELECT id, max(position) AS position FROM parents WHERE id <> ALL($1::bigint[]) GROUP BY id ORDER BY id DESC`;

/** A condition on messages `m` or summaries `s`: not behind the place where a fork left. $3 and $4 are what {@link bindInherited} gives. */
export const NOT_BEYOND: Readonly<Record<DocumentKind, string>> = {
  message: `NOT EXISTS (
    SELECT 1 FROM unnest($3::bigint[], $4::bigint[]) AS p (id, position)
    WHERE p.id = m.conversation_id AND m.position > p.position)`,
  summary: `NOT EXISTS (
    SELECT 1 FROM unnest($3::bigint[], $4::bigint[]) AS p (id, position)
    WHERE p.id = s.conversation_id AND s.end_pos > p.position)`,
};

export const bindInherited = ({ inherited }: RecallScope): [ids: SqlValue, positions: SqlValue] => [
  inherited?.map(({ conversationId }) => conversationId) ?? null,
  inherited?.map(({ position }) => position) ?? null,
];

export async function listInherited(
  { sql }: StoreContext,
  conversationIds: readonly number[],
): Promise<InheritedPart[]> {
  const rows = await sql.all<{ id: number; position: number }>(INHERITED, [...conversationIds]);
  return rows.map(({ id, position }) => ({ conversationId: id, position }));
}

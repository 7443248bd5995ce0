/** What forks share with the conversations they left, and how a search in a fork excludes later messages of its parent. */
import type { DocumentKind, RecallScope } from "@lossless/core/ports";
import type { SqlValue } from "./sql-values.ts";

/** A condition on messages `m` or summaries `s`: not after the place where a fork left. $3 and $4 come from {@link bindInherited}. */
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

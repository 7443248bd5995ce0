/**
 * What forks share with their parents. A fork's own rows begin where it left its parent; earlier messages are stored once, with the parent,
 * and belong to both. A search in a fork includes them, and nothing that the parent got later.
 */
import type { DocumentKind, RecallScope } from "@lossless/core/ports";
import type { Connection } from "./connection.ts";

const BEYOND = {
  message: `
    SELECT m.message_id AS id FROM json_each(?1) p CROSS JOIN messages m
    ON m.conversation_id = p.value ->> 'conversationId' AND m.position > p.value ->> 'position'`,
  summary: `
    SELECT r.summary_ref AS id FROM json_each(?1) p CROSS JOIN summaries s
    ON s.conversation_id = p.value ->> 'conversationId' AND s.end_pos > p.value ->> 'position' JOIN summary_refs r USING (summary_id)`,
} as const;
const BEYOND_OF = {
  message: `
    SELECT m.message_id AS id FROM json_each(?2) j JOIN messages m ON m.message_id = j.value
    JOIN json_each(?1) p ON m.conversation_id = p.value ->> 'conversationId' AND m.position > p.value ->> 'position'`,
  summary: `
    SELECT r.summary_ref AS id FROM json_each(?2) j JOIN summary_refs r ON r.summary_ref = j.value JOIN summaries s USING (summary_id)
    JOIN json_each(?1) p ON s.conversation_id = p.value ->> 'conversationId' AND s.end_pos > p.value ->> 'position'`,
} as const;

/** Documents of the parents after the point where the fork left: in a conversation of the scope, but not in the scope. */
export function listBeyond(
  connection: Connection,
  { inherited = [] }: RecallScope,
  kind: DocumentKind,
): ReadonlySet<number> {
  if (inherited.length === 0) return new Set();
  const rows = connection.all<{ id: number }>(BEYOND[kind], JSON.stringify(inherited));
  return new Set(rows.map(({ id }) => id));
}

/** The rows read for a scope, without those. */
export function dropBeyond<T>(
  connection: Connection,
  { inherited = [] }: RecallScope,
  kind: DocumentKind,
  read: Iterable<T>,
  idOf: (one: T) => number,
): T[] {
  const all = Array.isArray(read) ? (read as T[]) : Array.from(read);
  if (inherited.length === 0) return all;
  const ids = JSON.stringify(all.map(idOf));
  const rows = connection.all<{ id: number }>(BEYOND_OF[kind], JSON.stringify(inherited), ids);
  const beyond = new Set(rows.map(({ id }) => id));
  return all.filter((one) => !beyond.has(idOf(one)));
}

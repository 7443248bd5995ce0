/** For repair: copying the database page by page, and the lists the doctor reads. */
import { backup as backupDatabase } from "node:sqlite";
import { toDebt, toDoubtful } from "@lossless/core/adapter";
import type { DoubtfulColumns, StoredBody } from "@lossless/core/adapter";
import type { Debt, DoubtfulSummary, Row } from "@lossless/core/ports";
import { translate } from "./connection.ts";
import type { StoreContext } from "./store-context.ts";
import { SCHEMA_VERSION } from "./migrate.ts";
import { readParts, restoreBytes } from "./read.ts";

const DEBTS = "SELECT * FROM compaction_debt ORDER BY requested_at";
const PUBLISHED = `
  SELECT summary_id, conversation_id, depth, tokens, source_tokens, level, model, stale, content FROM summaries
  WHERE state = 'cover' AND summary_id > ?1 AND (?3 IS NULL OR conversation_id = ?3) ORDER BY summary_id LIMIT ?2`;
const FILE_PATHS = "SELECT storage_path FROM large_files ORDER BY storage_path";
/** Pages copied between two looks at other work. */
const PAGES_AT_ONCE = 500;

export async function backup(
  { connection }: StoreContext,
  path: string,
  onProgress: (done: number, total: number) => void,
): Promise<void> {
  try {
    await backupDatabase(connection.database, path, {
      rate: PAGES_AT_ONCE,
      progress: ({ totalPages, remainingPages }) => onProgress(totalPages - remainingPages, totalPages),
    });
  } catch (error) {
    throw translate(error, "copy", connection.path);
  }
}

export function listDebts({ connection }: StoreContext): Debt[] {
  return connection.all<Row<"compaction_debt">>(DEBTS).map(toDebt);
}

export function readVersions({ connection }: StoreContext): {
  schemaVersion: number;
  storedSchemaVersion: number;
} {
  const row = connection.get<{ user_version: number }>("PRAGMA user_version");
  return { schemaVersion: SCHEMA_VERSION, storedSchemaVersion: row?.user_version ?? 0 };
}

const VERSIONS_OF = `
  SELECT v.message_id, v.body, v.encoding FROM sessions s JOIN event_ids e USING (session_ref)
  JOIN messages v ON v.message_id = e.message_id OR v.revises = e.message_id
  WHERE (?1 IS NULL OR s.owner = ?1) AND s.session_id = ?2 AND e.event_id = ?3 AND v.forgotten_at IS NULL`;

export function findUnproven(
  { connection, files }: StoreContext,
  owner: string | null,
  sessionId: string,
  events: readonly { eventId: string; bytes: Uint8Array }[],
): string[] {
  const isStored = ({ eventId, bytes }: { eventId: string; bytes: Uint8Array }): boolean =>
    connection.all<StoredBody>(VERSIONS_OF, owner, sessionId, eventId).some((row) => {
      const parts = readParts(connection, row.message_id);
      return (
        Buffer.compare(
          restoreBytes(row, parts, (path) => files.read(path)),
          bytes,
        ) === 0
      );
    });
  return connection.read(() => events.filter((event) => !isStored(event)).map((event) => event.eventId));
}

export function listPublished(
  { connection }: StoreContext,
  request: { after: string; limit: number; conversationId?: number },
): DoubtfulSummary[] {
  return connection
    .all<DoubtfulColumns>(PUBLISHED, request.after, request.limit, request.conversationId ?? null)
    .map(toDoubtful);
}

export function listBlobs({ connection }: StoreContext): string[] {
  return connection.all<{ storage_path: string }>(FILE_PATHS).map((row) => row.storage_path);
}

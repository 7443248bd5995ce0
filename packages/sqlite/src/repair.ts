/** For repair: copying the database page by page, its version, and whether single events can be read back unchanged. */
import { backup as backupDatabase } from "node:sqlite";
import type { StoredBody } from "@lossless/core/adapter";
import { translate } from "./errors.ts";
import type { StoreContext } from "./store-context.ts";
import { SCHEMA_VERSION } from "./migrate.ts";
import { readParts, restoreBytes } from "./read.ts";

/** Pages copied before other work gets its turn. */
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

/** For repair: the version of the schema, whether single events can be restored exactly, and why there is no backup. */
import { EngineError } from "@lossless/core/adapter";
import type { Row } from "@lossless/core/ports";
import { SCHEMA_VERSION } from "./migrate.ts";
import { restoreAll } from "./read.ts";
import type { StoreContext } from "./store-context.ts";

const VERSION = "SELECT version FROM archive_schema";
const VERSIONS_OF = `
  SELECT a.place, v.message_id, v.body, v.encoding, v.arrival_bytes
  FROM unnest($3::text[]) WITH ORDINALITY a (event_id, place) JOIN sessions s ON s.session_id = $2 AND ($1::text IS NULL OR s.owner = $1)
  JOIN event_ids e ON e.session_ref = s.session_ref AND e.event_id = a.event_id
  CROSS JOIN LATERAL (
    SELECT m.* FROM messages m WHERE m.message_id = e.message_id
    UNION ALL SELECT m.* FROM messages m WHERE m.revises = e.message_id) v
  WHERE v.forgotten_at IS NULL`;

export async function readVersions({ sql }: StoreContext): Promise<{
  schemaVersion: number;
  storedSchemaVersion: number;
}> {
  const row = await sql.get<{ version: number }>(VERSION);
  return { schemaVersion: SCHEMA_VERSION, storedSchemaVersion: row?.version ?? 0 };
}

type VersionRow = Pick<Row<"messages">, "message_id" | "body" | "encoding" | "arrival_bytes"> & {
  readonly place: number;
};

/** Two versions may have the same bytes; one is enough. */
export function findUnproven(
  { sql, files }: StoreContext,
  owner: string | null,
  sessionId: string,
  events: readonly { eventId: string; bytes: Uint8Array }[],
): Promise<string[]> {
  const ids = events.map(({ eventId }) => eventId);
  return sql.read(async (own) => {
    const rows = await own.all<VersionRow>(VERSIONS_OF, owner, sessionId, ids);
    const stored = await restoreAll(files, own, rows);
    const proven = new Set(
      rows.flatMap(({ place }, at) =>
        Buffer.compare(stored[at] ?? new Uint8Array(), events[place - 1]?.bytes ?? new Uint8Array()) === 0
          ? [place - 1]
          : [],
      ),
    );
    return ids.filter((_, at) => !proven.has(at));
  });
}

/** A server is backed up by its own tools. Nothing is written. */
export async function backup(): Promise<void> {
  throw new EngineError("usage", "cannot copy a database on a server into a file", {
    hint: "export the archive, or use pg_dump; both read one snapshot while others keep writing",
  });
}

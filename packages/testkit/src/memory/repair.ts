/** For repair, in an archive of maps: proof of single events and the vault's rows. */
import type { Row, Store } from "@lossless/core/ports";
import type { MemoryArchive } from "../memory-archive.ts";
import { findOwned, readBytes } from "./read.ts";
import { readRedaction } from "./transfer.ts";

export const repairVerbs = (archive: MemoryArchive) => {
  const listVersions = (owner: string | null, session_id: string, event_id: string): Row<"messages">[] =>
    archive
      .filter("sessions", owner === null ? { session_id } : { session_id, owner })
      .flatMap(({ session_ref }) => archive.filter("event_ids", { session_ref, event_id }))
      .flatMap(({ message_id }) => [
        ...archive.filter("messages", { message_id }),
        ...archive.filter("messages", { revises: message_id }),
      ])
      .filter(({ forgotten_at }) => forgotten_at === null);
  return {
    async findUnproven(owner, sessionId, events) {
      return events
        .filter(
          ({ eventId, bytes }) =>
            !listVersions(owner, sessionId, eventId).some(
              (row) => Buffer.compare(readBytes(archive, row), bytes) === 0,
            ),
        )
        .map(({ eventId }) => eventId);
    },
    async readRedacted(messageId, owner) {
      const row = archive.find("messages", messageId);
      const redaction = readRedaction(archive, messageId);
      if (!row || redaction === null || row.forgotten_at !== null) return null;
      if (!findOwned(archive, row.conversation_id, owner)) return null;
      const { salt, commitment } = row;
      return { ...redaction, messageId, bytes: readBytes(archive, row), salt, commitment };
    },
    /** There is only one version: the running one. */
    async readVersions() {
      return { schemaVersion: 0, storedSchemaVersion: 0 };
    },
  } satisfies Partial<Store>;
};

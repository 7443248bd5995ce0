/** Reading whole conversations of an archive of maps for an export. */
import {
  nameFilesByContent,
  toListed,
  toMovedFile,
  toMovedMessage,
  toMovedSession,
  toMovedSummary,
  toRedaction,
} from "@lossless/core/adapter";
import type { MovedCut, MovedMessage, PreparedRedaction, Row, Store } from "@lossless/core/ports";
import type { MemoryArchive } from "../memory-archive.ts";
import { nameSession } from "./read.ts";

const compareTexts = (a: string, b: string): number => (a === b ? 0 : a < b ? -1 : 1);

export function readRedaction(archive: MemoryArchive, messageId: number): PreparedRedaction | null {
  const row = archive.find("redactions", messageId);
  const values = archive.filter("sealed_values", { message_id: messageId });
  return row
    ? toRedaction(
        row,
        values.sort((a, b) => a.ordinal - b.ordinal),
      )
    : null;
}

const readCuts = (archive: MemoryArchive, messageId: number): MovedCut[] =>
  archive
    .filter("message_parts", { message_id: messageId })
    .sort((a, b) => a.ordinal - b.ordinal)
    .flatMap(({ at, length, encoding, file_id }) => {
      const file = archive.find("large_files", file_id);
      return file && encoding !== null ? [{ at, length, encoding, sha256: file.sha256 }] : [];
    });

function toMoved(archive: MemoryArchive, row: Row<"messages">): MovedMessage {
  const [name] = archive.filter("event_ids", { session_ref: row.session_ref, event_id: row.event_id });
  const columns = {
    ...row,
    session_id: nameSession(archive, row).session_id,
    event_kind: name?.kind ?? null,
    revises_seq: archive.find("messages", row.revises)?.seq ?? null,
  };
  const { message_id } = row;
  return toMovedMessage(columns, {
    cuts: readCuts(archive, message_id),
    redaction: readRedaction(archive, message_id),
  });
}

export const transferVerbs = (archive: MemoryArchive) => {
  const listPlacements = (conversation_id: number) =>
    archive
      .filter("placements", { conversation_id })
      .map((row) => ({ ...row, session_id: archive.find("sessions", row.session_ref)?.session_id ?? "" }))
      .sort((a, b) => compareTexts(a.session_id, b.session_id) || a.start_position - b.start_position);
  const contentOf = (fileId: string): string | null => archive.find("large_files", fileId)?.sha256 ?? null;
  return {
    async listMoved({ owner, conversationIds }) {
      return archive
        .list("conversations")
        .filter((row) => (owner ?? row.owner) === row.owner)
        .filter((row) => conversationIds === undefined || conversationIds.includes(row.conversation_id))
        .sort(
          (a, b) =>
            compareTexts(a.owner, b.owner) ||
            compareTexts(a.session_key, b.session_key) ||
            a.conversation_id - b.conversation_id,
        )
        .map((row) => toListed(row, listPlacements(row.conversation_id)));
    },
    async readMovedSessions(conversationIds) {
      const rows = (["placements", "messages", "boundaries"] as const).flatMap((table) =>
        archive.list(table).filter((row) => conversationIds.includes(row.conversation_id)),
      );
      const refs = new Set(rows.map(({ session_ref }) => session_ref));
      const sessions = archive
        .list("sessions")
        .filter(({ session_ref }) => refs.has(session_ref))
        .sort((a, b) => compareTexts(a.owner, b.owner) || compareTexts(a.session_id, b.session_id));
      const turns = sessions.flatMap(({ session_ref, owner, session_id: sessionId }) =>
        archive
          .filter("turns", { session_ref })
          .sort((a, b) => compareTexts(a.advancement_key, b.advancement_key))
          .map((turn) => ({ owner, sessionId, key: turn.advancement_key, at: turn.committed_at })),
      );
      return { sessions: sessions.map(toMovedSession), turns };
    },
    async readMovedRows(conversation_id, afterSeq, limit) {
      const isAsked = ({ seq }: { readonly seq: number }): boolean =>
        seq > afterSeq && seq <= afterSeq + limit;
      const messages = archive.filter("messages", { conversation_id }).filter(isAsked);
      const records = archive.filter("ledger", { conversation_id }).filter(isAsked);
      return [
        ...messages.map((row) => toMoved(archive, row)),
        ...records.map((row) => ({
          kind: "ledger" as const,
          seq: row.seq,
          change: row.kind,
          body: nameFilesByContent(row, contentOf),
          at: row.at,
        })),
      ].sort((a, b) => a.seq - b.seq);
    },
    async readMovedFile(conversation_id, sha256) {
      const [row] = archive.filter("large_files", { conversation_id, sha256 });
      return row ? { file: toMovedFile(row), content: archive.content(row.storage_path) } : null;
    },
    async readMovedSummaries(conversation_id, offset, limit) {
      return archive
        .filter("summaries", { conversation_id })
        .sort(
          (a, b) =>
            a.depth - b.depth ||
            a.start_pos - b.start_pos ||
            a.start_seq - b.start_seq ||
            compareTexts(a.summary_id, b.summary_id),
        )
        .slice(offset, offset + limit)
        .map((row) =>
          toMovedSummary(
            row,
            archive
              .sources([row.summary_id])
              .flatMap((link) => link.source_id ?? archive.find("messages", link.message_id)?.seq ?? []),
          ),
        );
    },
    async readMovedCover(conversation_id) {
      return archive
        .filter("context_items", { conversation_id })
        .sort((a, b) => a.start_pos - b.start_pos || a.seq - b.seq)
        .flatMap(({ summary_id }) => summary_id ?? []);
    },
  } satisfies Partial<Store>;
};

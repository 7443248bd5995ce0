/** Reading whole conversations for an export: rows in canonical order, without the numbers of this database. A page takes one round trip. */
import {
  nameFilesByContent,
  toListed,
  toMovedFile,
  toMovedMessage,
  toMovedSession,
  toMovedSummary,
} from "@lossless/core/adapter";
import type { MovedColumns } from "@lossless/core/adapter";
import type {
  ListedConversation,
  MoveChoice,
  MovedCut,
  MovedFile,
  MovedRow,
  MovedSession,
  MovedSummary,
  MovedTurn,
  Row,
} from "@lossless/core/ports";
import type { Sql } from "./connection.ts";
import { readRedactions } from "./redactions.ts";
import type { StoreContext } from "./store-context.ts";

const CONVERSATIONS = `
  SELECT * FROM conversations
  WHERE ($1::text IS NULL OR owner = $1) AND ($2::bigint[] IS NULL OR conversation_id = ANY($2))
  ORDER BY owner, session_key, conversation_id`;
const PLACEMENTS = `
  SELECT p.conversation_id, s.session_id, p.start_position, p.base_position
  FROM conversations c JOIN placements p USING (conversation_id) JOIN sessions s USING (session_ref)
  WHERE ($1::text IS NULL OR c.owner = $1) AND ($2::bigint[] IS NULL OR c.conversation_id = ANY($2))
  ORDER BY s.session_id, p.start_position`;
const SESSIONS = `
  SELECT s.* FROM sessions s WHERE s.session_ref IN (
    SELECT session_ref FROM placements WHERE conversation_id = ANY($1::bigint[])
    UNION SELECT session_ref FROM messages WHERE conversation_id = ANY($1::bigint[])
    UNION SELECT session_ref FROM boundaries WHERE conversation_id = ANY($1::bigint[]))
  ORDER BY s.owner, s.session_id`;
const TURNS =
  "SELECT * FROM turns WHERE session_ref = ANY($1::bigint[]) ORDER BY session_ref, advancement_key";
const MESSAGES = `
  SELECT m.*, s.session_id, e.kind AS event_kind, (SELECT f.seq FROM messages f WHERE f.message_id = m.revises) AS revises_seq
  FROM messages m JOIN sessions s USING (session_ref)
  LEFT JOIN event_ids e ON e.session_ref = m.session_ref AND e.event_id = m.event_id
  WHERE m.conversation_id = $1 AND m.seq > $2 AND m.seq <= $3 ORDER BY m.seq`;
const CUTS = `
  SELECT p.message_id, p.at, p.length, p.encoding, f.sha256
  FROM messages m JOIN message_parts p USING (message_id) JOIN large_files f USING (file_id)
  WHERE m.conversation_id = $1 AND m.seq > $2 AND m.seq <= $3 ORDER BY p.message_id, p.ordinal`;
const LEDGER = `
  SELECT seq, kind, body, at FROM ledger WHERE conversation_id = $1 AND seq > $2 AND seq <= $3 ORDER BY seq`;
const FILE_CONTENTS = "SELECT file_id, sha256 FROM large_files WHERE conversation_id = $1";
const FILE = "SELECT * FROM large_files WHERE conversation_id = $1 AND sha256 = $2";
const PAGE_OF_SUMMARIES = `
  SELECT * FROM summaries WHERE conversation_id = $1 ORDER BY depth, start_pos, start_seq, summary_id LIMIT $3 OFFSET $2`;
const SOURCES = `
  WITH page AS (${PAGE_OF_SUMMARIES})
  SELECT l.summary_id, l.ordinal, m.seq, NULL AS source_id FROM page JOIN summary_messages l USING (summary_id)
    JOIN messages m USING (message_id)
  UNION ALL SELECT p.summary_id, p.ordinal, NULL, p.parent_summary_id FROM page JOIN summary_parents p USING (summary_id)
  ORDER BY 2`;
const COVER = `
  SELECT summary_id FROM context_items WHERE conversation_id = $1 AND summary_id IS NOT NULL ORDER BY start_pos, seq`;

type PlacementRecord = Row<"placements"> & { readonly session_id: string };

export function listMoved({ sql }: StoreContext, choice: MoveChoice): Promise<ListedConversation[]> {
  const values = [choice.owner ?? null, choice.conversationIds ? [...choice.conversationIds] : null];
  return sql.read(async (own) => {
    const [conversations, placements] = await Promise.all([
      own.all<Row<"conversations">>(CONVERSATIONS, ...values),
      own.all<PlacementRecord>(PLACEMENTS, ...values),
    ]);
    const placed = Map.groupBy(placements, ({ conversation_id }) => conversation_id);
    return conversations.map((row) => toListed(row, placed.get(row.conversation_id) ?? []));
  });
}

export function readMovedSessions(
  { sql }: StoreContext,
  conversationIds: readonly number[],
): Promise<{ sessions: MovedSession[]; turns: MovedTurn[] }> {
  return sql.read(async (own) => {
    const sessions = await own.all<Row<"sessions">>(SESSIONS, [...conversationIds]);
    const refs = sessions.map(({ session_ref }) => session_ref);
    const turns = Map.groupBy(await own.all<Row<"turns">>(TURNS, refs), ({ session_ref }) => session_ref);
    return {
      sessions: sessions.map(toMovedSession),
      turns: sessions.flatMap(({ session_ref, owner, session_id: sessionId }) =>
        (turns.get(session_ref) ?? []).map((turn) => ({
          owner,
          sessionId,
          key: turn.advancement_key,
          at: turn.committed_at,
        })),
      ),
    };
  });
}

/** Messages and ledger records share one sequence of numbers; both are read by it. */
export function readMovedRows(
  { sql }: StoreContext,
  conversationId: number,
  afterSeq: number,
  limit: number,
): Promise<MovedRow[]> {
  const range = [conversationId, afterSeq, afterSeq + limit] as const;
  return sql.read(async (own) => {
    const [messages, cuts, redactions, ledger] = await Promise.all([
      own.all<MovedColumns>(MESSAGES, ...range),
      own.all<MovedCut & { readonly message_id: number }>(CUTS, ...range),
      readRedactions(own, ...range),
      own.all<Row<"ledger">>(LEDGER, ...range),
    ]);
    const cutsOf = Map.groupBy(cuts, ({ message_id }) => message_id);
    const moved = messages.map((row) =>
      toMovedMessage(row, {
        cuts: (cutsOf.get(row.message_id) ?? []).map(({ message_id: _id, ...cut }) => cut),
        redaction: redactions.get(row.message_id) ?? null,
      }),
    );
    const contents = await readContents(own, conversationId, ledger);
    const records = ledger.map((row) => ({
      kind: "ledger" as const,
      seq: row.seq,
      change: row.kind,
      body: nameFilesByContent(row, (fileId) => contents.get(fileId) ?? null),
      at: row.at,
    }));
    return [...moved, ...records].sort((a, b) => a.seq - b.seq);
  });
}

/** Queried only if a record may name a file. */
async function readContents(
  sql: Sql,
  conversationId: number,
  ledger: readonly Row<"ledger">[],
): Promise<ReadonlyMap<string, string>> {
  if (!ledger.some(({ kind }) => kind === "file" || kind === "forget")) return new Map();
  const rows = await sql.all<{ file_id: string; sha256: string }>(FILE_CONTENTS, conversationId);
  return new Map(rows.map((row) => [row.file_id, row.sha256]));
}

export function readMovedFile(
  { sql, files }: StoreContext,
  conversationId: number,
  sha256: string,
): Promise<{ file: MovedFile; content: Uint8Array | null } | null> {
  return sql.read(async (own) => {
    const row = await own.get<Row<"large_files">>(FILE, conversationId, sha256);
    return row ? { file: toMovedFile(row), content: await files.read(own, row.storage_path) } : null;
  });
}

interface SourceRow extends Pick<Row<"summary_messages">, "summary_id" | "ordinal"> {
  readonly seq: number | null;
  readonly source_id: string | null;
}

export function readMovedSummaries(
  { sql }: StoreContext,
  conversationId: number,
  offset: number,
  limit: number,
): Promise<MovedSummary[]> {
  return sql.read(async (own) => {
    const [summaries, sources] = await Promise.all([
      own.all<Row<"summaries">>(PAGE_OF_SUMMARIES, conversationId, offset, limit),
      own.all<SourceRow>(SOURCES, conversationId, offset, limit),
    ]);
    const sourcesOf = Map.groupBy(sources, ({ summary_id }) => summary_id);
    return summaries.map((row) =>
      toMovedSummary(
        row,
        (sourcesOf.get(row.summary_id) ?? []).flatMap(({ seq, source_id }) => seq ?? source_id ?? []),
      ),
    );
  });
}

export async function readMovedCover({ sql }: StoreContext, conversationId: number): Promise<string[]> {
  const rows = await sql.all<{ summary_id: string }>(COVER, conversationId);
  return rows.map((row) => row.summary_id);
}

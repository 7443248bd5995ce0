/**
 * Content that a conversation has already, under another name or taken for another type: a table that was pasted and is read by a tool
 * later. A file has one row, so what its first arrival said of it stands; the reference in the message, its tokens and its terms follow.
 *
 * Invariant: what is stored of a message is what `verify` derives from its bytes and the rows of its files.
 */
import { extname } from "node:path";
import { deriveFileId } from "../../model/ids.ts";
import type { PreparedMessage, PreparedPayload } from "../store.ts";
import type { Connection } from "./connection.ts";
import type { StoreContext } from "./context.ts";

const SELECT_DESCRIPTION =
  "SELECT file_name, mime_type, line_count, exploration_summary, storage_path FROM large_files WHERE file_id = ?";

interface DescriptionRow {
  file_name: string | null;
  mime_type: string;
  line_count: number | null;
  exploration_summary: string;
  storage_path: string;
}

type Description = Pick<
  PreparedPayload,
  "fileName" | "mimeType" | "lineCount" | "explorationSummary" | "extension"
>;

/** The message with its payloads described as they are, or will be, in the rows of the conversation. */
export function describeAsStored(
  { connection, derive }: StoreContext,
  conversationId: number,
  arrival: Uint8Array,
  prepared: PreparedMessage,
): PreparedMessage {
  if (prepared.payloads.length === 0 || derive === null) return prepared;
  const first = new Map<string, Description>();
  const payloads = prepared.payloads.map((payload) => {
    const known =
      first.get(payload.sha256) ?? readDescription(connection, conversationId, payload) ?? payload;
    first.set(payload.sha256, known);
    return isSame(known, payload) ? payload : { ...payload, ...pickDescription(known) };
  });
  if (payloads.every((payload, index) => payload === prepared.payloads[index])) return prepared;
  const cuts = payloads.map((payload) => ({ ...payload, byteSize: payload.content.byteLength }));
  const { tokens, readTerms } = derive(arrival, cuts);
  return { ...prepared, payloads, tokens, readTerms };
}

function readDescription(
  connection: Connection,
  conversationId: number,
  { sha256 }: PreparedPayload,
): Description | null {
  const row = connection.get<DescriptionRow>(SELECT_DESCRIPTION, deriveFileId(conversationId, sha256));
  if (!row) return null;
  return {
    fileName: row.file_name,
    mimeType: row.mime_type,
    lineCount: row.line_count,
    explorationSummary: row.exploration_summary,
    extension: extname(row.storage_path).slice(1),
  };
}

function pickDescription({
  fileName,
  mimeType,
  lineCount,
  explorationSummary,
  extension,
}: Description): Description {
  return { fileName, mimeType, lineCount, explorationSummary, extension };
}

const isSame = (a: Description, b: Description): boolean =>
  a === b ||
  (a.fileName === b.fileName &&
    a.mimeType === b.mimeType &&
    a.extension === b.extension &&
    a.explorationSummary === b.explorationSummary);

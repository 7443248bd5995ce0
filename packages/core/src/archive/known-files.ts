/**
 * Content that a conversation already has, under another name or type: a table that was pasted and is later read by a tool. A file has one
 * row, so the description from its first arrival stays; the reference in the message, its tokens and its terms follow it.
 *
 * Invariant: what is stored of a message is what `verify` derives from its bytes and the rows of its files.
 */
import { extname } from "node:path";
import { deriveFileId } from "../model/ids.ts";
import type { Derive, PreparedMessage, PreparedPayload } from "../store/rows.ts";
import type { Row } from "./tables.ts";

type Description = Pick<
  PreparedPayload,
  "fileName" | "mimeType" | "lineCount" | "explorationSummary" | "extension"
>;

/** The message with its payloads described as they are, or will be, in the rows of the conversation. */
export function describeAsStored(
  files: ReadonlyMap<string, Row<"large_files">>,
  conversationId: number,
  arrival: Uint8Array,
  prepared: PreparedMessage,
  derive: Derive | null,
): PreparedMessage {
  if (prepared.payloads.length === 0 || derive === null) return prepared;
  const first = new Map<string, Description>();
  const payloads = prepared.payloads.map((payload) => {
    const stored = files.get(deriveFileId(conversationId, payload.sha256));
    const known = first.get(payload.sha256) ?? (stored ? toDescription(stored) : payload);
    first.set(payload.sha256, known);
    return isSame(known, payload) ? payload : { ...payload, ...pickDescription(known) };
  });
  if (payloads.every((payload, index) => payload === prepared.payloads[index])) return prepared;
  const cuts = payloads.map((payload) => ({ ...payload, byteSize: payload.content.byteLength }));
  const { tokens, readTerms } = derive(arrival, cuts);
  return { ...prepared, payloads, tokens, readTerms };
}

const toDescription = (row: Row<"large_files">): Description => ({
  fileName: row.file_name,
  mimeType: row.mime_type,
  lineCount: row.line_count,
  explorationSummary: row.exploration_summary,
  extension: extname(row.storage_path).slice(1),
});

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

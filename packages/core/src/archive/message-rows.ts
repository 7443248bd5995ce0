/** The rows that belong to a message: its parts, its large files, and its vault entries. */
import { hashFacts } from "../model/chain.ts";
import { deriveFileId } from "../model/ids.ts";
import { nameBlob } from "../store/blobs.ts";
import type { PreparedRedaction, SealedValue } from "../store/redaction.ts";
import type { DerivedMessage, PayloadEncoding } from "../store/rows.ts";
import type { MovedFile } from "../store/transfer.ts";
import type { RowWriter } from "./changes.ts";
import type { Row } from "./tables.ts";

/** Where a payload was cut out, and the file it is in now. */
export interface PayloadPart {
  readonly at: number;
  readonly length: number;
  readonly fileId: string;
  readonly encoding: PayloadEncoding;
}

/** Type and place of each part, without text. Cut payloads come after the others. */
export function addParts(
  writer: RowWriter,
  messageId: number,
  parts: DerivedMessage["parts"],
  payloads: readonly PayloadPart[],
): void {
  let ordinal = 0;
  for (const { type, at, length, toolCallId = null, toolName = null } of parts)
    writer.insert("message_parts", {
      message_id: messageId,
      ordinal: ordinal++,
      type,
      at,
      length,
      tool_call_id: toolCallId,
      tool_name: toolName,
      file_id: null,
      encoding: null,
    });
  for (const { at, length, fileId, encoding } of payloads)
    writer.insert("message_parts", {
      message_id: messageId,
      ordinal: ordinal++,
      type: "payload",
      at,
      length,
      tool_call_id: null,
      tool_name: null,
      file_id: fileId,
      encoding,
    });
}

export function describeFile(
  conversationId: number,
  file: Omit<MovedFile, "byteSize">,
  content: Uint8Array,
): Row<"large_files"> {
  const fileId = deriveFileId(conversationId, file.sha256);
  return {
    file_id: fileId,
    conversation_id: conversationId,
    file_name: file.fileName,
    mime_type: file.mimeType,
    byte_size: content.byteLength,
    line_count: file.lineCount,
    sha256: file.sha256,
    storage_path: nameBlob(conversationId, fileId, file.extension),
    exploration_summary: file.explorationSummary,
    created_at: file.createdAt,
  };
}

/** The ledger record of a new file. */
export const recordFile = (row: Row<"large_files">): { readonly fileId: string; readonly facts: string } => ({
  fileId: row.file_id,
  facts: hashFacts([
    row.file_id,
    row.conversation_id,
    row.file_name,
    row.mime_type,
    row.byte_size,
    row.line_count,
    row.sha256,
    row.storage_path,
    row.exploration_summary,
    row.created_at,
  ]),
});

export function addRedaction(
  writer: RowWriter,
  messageId: number,
  redaction: PreparedRedaction | null,
): void {
  if (redaction === null) return;
  const { keyId, keyed, values } = redaction;
  writer.insert("redactions", { message_id: messageId, key_id: keyId, keyed, sealed: values.length });
  addSealedValues(writer, messageId, values);
}

export function addSealedValues(writer: RowWriter, messageId: number, values: readonly SealedValue[]): void {
  for (const { ordinal, at, length, keyId, nonce, sealed } of values)
    writer.insert("sealed_values", {
      message_id: messageId,
      ordinal,
      at,
      length,
      key_id: keyId,
      nonce,
      sealed,
    });
}

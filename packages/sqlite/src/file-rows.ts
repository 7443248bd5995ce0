/**
 * Writing a large file and its row. The file is on the disk before the row that names it is committed, so a crash leaves at most a file nobody
 * refers to.
 */
import { describeFile, recordFile } from "@lossless/core/adapter";
import type { MovedFile } from "@lossless/core/ports";
import type { StoreContext } from "./context.ts";
import { PlanReads } from "./plan-reads.ts";

/** `record`: what the ledger is to say of it; null for content that the conversation has already. */
export function writeFile(
  { connection, files }: StoreContext,
  conversationId: number,
  file: Omit<MovedFile, "byteSize">,
  content: Uint8Array,
): { fileId: string; record: object | null } {
  const row = describeFile(conversationId, file, content);
  files.put(row.storage_path, content);
  const isNew = new PlanReads(connection).files([row.file_id]).length === 0;
  if (isNew) connection.insert("large_files", row);
  return { fileId: row.file_id, record: isNew ? recordFile(row) : null };
}

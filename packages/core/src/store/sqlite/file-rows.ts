/**
 * Writing a large file and its row. The file is on the disk before the row that names it is committed, so a crash leaves at most a file nobody
 * refers to.
 */
import { hashFacts } from "../../model/chain.ts";
import { deriveFileId } from "../../model/ids.ts";
import { LargeFiles } from "../large-files.ts";
import type { MovedFile } from "../transfer.ts";
import type { StoreContext } from "./context.ts";

const INSERT_FILE = `
  INSERT INTO large_files (file_id, conversation_id, file_name, mime_type, byte_size, line_count, sha256, storage_path,
                           exploration_summary, created_at)
  VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`;

/** `record`: what the ledger is to say of it; null for content that the conversation has already. */
export function writeFile(
  { connection, files }: StoreContext,
  conversationId: number,
  file: Omit<MovedFile, "byteSize">,
  content: Uint8Array,
): { fileId: string; record: object | null } {
  const fileId = deriveFileId(conversationId, file.sha256);
  const storagePath = LargeFiles.storagePath(conversationId, fileId, file.extension);
  files.write(storagePath, content);
  const facts = [
    fileId,
    conversationId,
    file.fileName,
    file.mimeType,
    content.byteLength,
    file.lineCount,
    file.sha256,
    storagePath,
    file.explorationSummary,
    file.createdAt,
  ] as const;
  const isNew = connection.change(INSERT_FILE, ...facts) > 0;
  return { fileId, record: isNew ? { fileId, facts: hashFacts(facts) } : null };
}

/**
 * Large payloads: values under names, stored in a folder beside the database or in the database itself. Callers know names, not paths. A
 * blob is written before the row that names it is committed and removed after the row is gone, so a crash leaves at most one unreferenced
 * blob; the doctor finds those.
 */
export interface Blobs {
  /** Stores content, unless the name already has the same. It survives a crash. */
  put(name: string, content: Uint8Array): void;
  /** Null when there is none. */
  read(name: string): Uint8Array | null;
  /** False when there was none, or it is not one of ours. */
  remove(name: string): boolean;
  list(): string[];
}

/** The name of a payload: by conversation, because conversations are forgotten separately, and by its content through the file's id. */
export const nameBlob = (conversationId: number, fileId: string, extension: string): string =>
  `${conversationId}/${fileId}.${extension}`;

/**
 * Large payloads: values under names, kept in a folder beside the database or in the database itself. Who stores them knows names and no
 * paths. A blob is put before the row that names it is committed and removed after the row is gone, so a crash leaves at most one that
 * nobody names; the doctor finds those.
 */
export interface Blobs {
  /** Stores content, unless the name holds the same already. What was put survives a crash. */
  put(name: string, content: Uint8Array): void;
  /** Null when there is none. */
  read(name: string): Uint8Array | null;
  /** False when there was none. */
  remove(name: string): boolean;
  list(): string[];
}

/** The name of a payload: of its conversation, because conversations are forgotten apart, and of its content by the file's id. */
export const nameBlob = (conversationId: number, fileId: string, extension: string): string =>
  `${conversationId}/${fileId}.${extension}`;

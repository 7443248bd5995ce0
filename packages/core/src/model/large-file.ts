/** How a message refers to a payload that was moved to a file: one line with its id and a description of its content. */

export interface FileReference {
  readonly fileId: string;
  readonly fileName: string | null;
  readonly mimeType: string;
  readonly byteSize: number;
  readonly explorationSummary: string;
}

/** Used instead of the id while counting tokens, so that a count does not depend on the digits of a hash. */
export const ANY_FILE_ID = "file_0000000000000000";

export function renderReference(file: FileReference): string {
  const fields = [file.fileId, file.fileName ?? "unnamed", file.mimeType, `${file.byteSize} bytes`];
  return `[LCM File: ${fields.join(" | ")}]\n${file.explorationSummary}`;
}

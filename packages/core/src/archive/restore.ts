/** Rebuilds a stored message: its body, with each payload put back from its file. */
import { EngineError } from "../model/errors.ts";
import { decodeBody } from "../store/body.ts";
import type { CutPayload } from "../store/rows.ts";
import { spliceRanges } from "../store/splice.ts";
import { read } from "./plan.ts";
import type { Asking } from "./plan.ts";
import type { Row } from "./tables.ts";

export interface StoredBody extends Pick<Row<"messages">, "message_id" | "body" | "encoding"> {
  readonly arrival_bytes?: number;
}

/** A payload that was cut out of a message, with the row of its file. */
export interface CutPart extends Pick<Row<"message_parts">, "at" | "length" | "encoding" | "file_id"> {
  readonly file: Pick<
    Row<"large_files">,
    "storage_path" | "file_name" | "mime_type" | "byte_size" | "exploration_summary"
  > | null;
}

/** The columns of a payload's file; null for other parts, and if the file is unknown. */
interface FileColumns {
  readonly storage_path: string | null;
  readonly file_name: string | null;
  readonly mime_type: string | null;
  readonly byte_size: number | null;
  readonly exploration_summary: string | null;
}

/** A part of a message, each payload with its file. */
export interface PartRecord extends Omit<Row<"message_parts">, "message_id">, FileColumns {}

/** The payloads among the parts of a message. */
export const listPayloads = (parts: readonly PartRecord[]): CutPart[] =>
  parts.filter((part) => part.type === "payload").map((part) => ({ ...part, file: toFile(part) }));

function toFile({
  storage_path,
  file_name,
  mime_type,
  byte_size,
  exploration_summary,
}: FileColumns): CutPart["file"] {
  const isKnown =
    storage_path !== null && mime_type !== null && byte_size !== null && exploration_summary !== null;
  return isKnown ? { storage_path, file_name, mime_type, byte_size, exploration_summary } : null;
}

/** The arrival bytes. `contents` has the content of each payload's file, or null. */
export function putTogether(
  message: StoredBody,
  payloads: readonly CutPart[],
  contents: readonly (Uint8Array | null)[],
): Uint8Array {
  const body = decodeBody(message, message.arrival_bytes);
  const splices = payloads.map(({ at, length, encoding, file_id: fileId }, index) => {
    const content = contents[index] ?? null;
    if (encoding === null) throw new Error(`the encoding of its payload ${fileId} is gone`);
    if (content === null) {
      throw new EngineError(
        "not_found",
        `cannot read msg_${message.message_id}: its large file ${fileId} is gone`,
        { hint: "restore the files folder from a backup" },
      );
    }
    return { at, length, encoding, content };
  });
  return spliceRanges(body, splices);
}

/** The same, with the current content of its files. */
export function* restoreWhole({
  message,
  payloads,
}: {
  readonly message: StoredBody;
  readonly payloads: readonly CutPart[];
}): Asking<Uint8Array> {
  const contents: (Uint8Array | null)[] = [];
  for (const { file } of payloads)
    contents.push(file === null ? null : yield* read.content(file.storage_path));
  return putTogether(message, payloads, contents);
}

/** What the references of a message say about its cut payloads. */
export const toCutPayloads = (payloads: readonly CutPart[]): CutPayload[] =>
  payloads.flatMap(({ at, length, file }) =>
    file === null
      ? []
      : [
          {
            at,
            length,
            fileName: file.file_name,
            mimeType: file.mime_type,
            byteSize: file.byte_size,
            explorationSummary: file.exploration_summary,
          },
        ],
  );

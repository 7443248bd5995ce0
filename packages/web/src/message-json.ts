/**
 * A message as the page shows it: its row and its parts as text. Long parts are cut, so that a page of fifty messages stays small whatever was
 * pasted into one of them; a single message is complete. Images are served separately as bytes.
 */
import type { MessageBody, MessageView } from "@lossless/core";
import { readBareLine, readPart } from "@lossless/interchange/parts";
import type { MessageJson } from "./api-types.ts";

export function toMessageJson(
  { row, parts, bytes, view }: MessageBody & { readonly view: MessageView },
  maxChars: number,
): MessageJson {
  return {
    id: row.messageId,
    row,
    model: view.model?.model ?? null,
    parts:
      view.parts.length === 0 && row.hidden.length > 0 && bytes.length > 0
        ? [readBareLine(bytes, maxChars)]
        : view.parts.map((part) => readPart(bytes, part, maxChars)),
    fileIds: [...new Set(parts.flatMap((part) => part.fileId ?? []))],
    problem: null,
  };
}

export function toUnreadable(id: number, problem: string): MessageJson {
  return { id, row: null, model: null, parts: [], fileIds: [], problem };
}

/** A short form of a message: its beginning on one line, and the kinds of its parts. Pure. */
import type { MessageView, PartView } from "../model/message.ts";
import type { MessageBody } from "../store/store.ts";

const PREVIEW_CHARS = 160;

/** The first words of a message; parts without text are named, and a line that is not a message is shown as it is. */
export function previewOf({
  view,
  bytes,
}: Pick<MessageBody, "bytes"> & { readonly view: MessageView }): string {
  if (view.parts.length === 0)
    return toPreview(Buffer.from(bytes.subarray(0, 4 * PREVIEW_CHARS)).toString("utf8"));
  const pieces = view.parts.map((part) => {
    // Only the beginning is shown; the text may be very long.
    const text = part.text.slice(0, 20 * PREVIEW_CHARS);
    if (part.type === "text") return text;
    if (part.type === "tool_call") return `→ ${part.toolName ?? "tool"} ${dropName(text, part.toolName)}`;
    return `[${describePart(part)}] ${text}`;
  });
  return toPreview(pieces.join(" "));
}

/** The text of a call begins with the name of its tool. */
const dropName = (text: string, name = ""): string =>
  name !== "" && /^\s/.test(text.slice(name.length)) && text.startsWith(name)
    ? text.slice(name.length)
    : text;

function toPreview(long: string): string {
  const text = long.replaceAll(/\s+/gu, " ").trim();
  return text.length <= PREVIEW_CHARS ? text : `${text.slice(0, PREVIEW_CHARS).toWellFormed().trimEnd()}…`;
}

export function describePart(part: PartView): string {
  const name = part.type.replace("_", " ");
  const details = [part.toolName, part.fileName, part.mimeType, part.isError ? "error" : undefined].filter(
    Boolean,
  );
  return details.length === 0 ? name : `${name}: ${details.join(", ")}`;
}

/** Messages as Markdown, for pasting elsewhere. Pure. */
import type { MessageJson, PartJson } from "./api.ts";
import { formatTime } from "./format.ts";

/** Headings and parts of some messages; empty ones are omitted. */
export const toMarkdown = (messages: readonly MessageJson[]): string =>
  messages
    .map((message) => {
      const body = message.parts.map(writePart).filter((text) => text.trim() !== "");
      if (body.length === 0 || message.row === null) return "";
      return `## ${message.row.role}, ${formatTime(message.row.createdAt)}\n\n${body.join("\n\n")}\n`;
    })
    .filter((text) => text !== "")
    .join("\n");

function writePart(part: PartJson): string {
  const text =
    part.chars > part.text.length ? `${part.text}\n[… ${part.chars} characters in all]` : part.text;
  if (part.type === "text") return text;
  if (part.type === "image" || part.type === "file")
    return `[${part.type}: ${part.fileName ?? part.mimeType ?? ""}]`;
  const name = part.type.replace("_", " ");
  return `**${name}${part.toolName === null ? "" : `: ${part.toolName}`}**\n\n${fence(text)}`;
}

/** A fence longer than any in the text. */
function fence(text: string): string {
  const longest = Math.max(2, ...[...text.matchAll(/`{3,}/g)].map(([ticks]) => ticks.length));
  const ticks = "`".repeat(longest + 1);
  return `${ticks}\n${text}\n${ticks}`;
}

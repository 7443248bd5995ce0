/** Wraps the written part of a help text at words for the terminal: paragraphs are filled, examples continue under their explanation. Pure. */
import { wrapToWidth } from "@lossless/core/doors";

/** An explanation that would begin further right gets its own line. */
const MAX_TERM_SHARE = 0.6;
const EXAMPLE = /^( +\S.*?)( {2,})(\S.*)$/;

export function wrapHelp(text: string, columns: number): string {
  const lines: string[] = [];
  let paragraph: string[] = [];
  const close = (): void => {
    if (paragraph.length > 0) lines.push(...wrapToWidth(paragraph.join(" "), columns));
    paragraph = [];
  };
  for (const line of text.split("\n")) {
    // A heading, such as "Examples:", is followed by indented lines, which end the paragraph.
    if (line.trim() !== "" && !line.startsWith(" ")) paragraph.push(line);
    else {
      close();
      lines.push(...(line.length <= columns ? [line] : wrapIndented(line, columns)));
    }
  }
  close();
  return lines.join("\n");
}

function wrapIndented(line: string, columns: number): string[] {
  const [, term = "", gap = "", words = ""] = EXAMPLE.exec(line) ?? [];
  const at = term.length + gap.length;
  const isBeside = term !== "" && at <= columns * MAX_TERM_SHARE;
  const indent = " ".repeat(isBeside ? at : 6);
  const wrapped = wrapToWidth(term === "" ? line.trim() : words, Math.max(20, columns - indent.length));
  if (isBeside) return wrapped.map((piece, index) => (index === 0 ? term + gap : indent) + piece);
  return [...(term === "" ? [] : [term]), ...wrapped.map((piece) => indent + piece)];
}

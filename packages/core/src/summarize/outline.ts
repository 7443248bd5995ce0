/**
 * The declarations in code, as its own lines: the signatures of functions, types and classes that a tool call wrote or a result showed. A
 * reader can work with a signature; a bare name says only that something exists. Handles the notations of most languages; nothing is
 * parsed.
 */
import { cutAtWord } from "./sentences.ts";

/** A line that declares something, after line numbers and diff marks. Blanks in it never extend into the next line. */
const DECLARATION =
  /^[^\S\n]*(?:\d+[→\t|:][^\S\n]*)?(?:\+[^\S\n]*)?((?:(?:export|public|private|protected|static|async|default|abstract|pub(?:\([a-z]+\))?|unsafe|final)[^\S\n]+)*(?:func|function\*?|def|class|type|interface|struct|enum|trait|fn|impl|module|CREATE TABLE|const[^\S\n]+\w+[^\S\n]*=[^\S\n]*(?:async[^\S\n]*)?\()\b.*)$/gm;
const MAX_SIGNATURE = 110;
const MAX_SIGNATURES = 24;

/** Signatures of a text, in order, each once. */
export function listSignatures(text: string): string[] {
  const found = new Set<string>();
  for (const [, line = ""] of text.matchAll(DECLARATION)) {
    const signature = line
      .trimEnd()
      .replace(/(?:\{|=>|:)$/, "")
      .trimEnd()
      .replace(/\s+/g, " ")
      .replaceAll("`", "'");
    if (/\w{3}/.test(signature) && /[(<{=]|^\S+ \S+$/.test(signature))
      found.add(cutAtWord(signature, MAX_SIGNATURE));
    if (found.size >= MAX_SIGNATURES) break;
  }
  return [...found];
}

const MAX_WRITTEN = 6_000;
const MAX_EXCERPT = 220;

/** What was written, in pieces of a few lines: the most exact account of a change. Lines that only close or import are omitted. */
export function cutExcerpts(text: string): string[] {
  const pieces: string[] = [];
  let open = "";
  for (const raw of text.slice(0, MAX_WRITTEN).split("\n")) {
    const line = raw.replace(/\s+/g, " ").replaceAll("`", "'").trim();
    if (!/[\p{L}_]{4}/u.test(line) || /^(?:import|from|use|package|#include|\/\/ eslint)\b/.test(line))
      continue;
    if (open !== "" && open.length + line.length > MAX_EXCERPT) {
      pieces.push(open);
      open = "";
    }
    open = open === "" ? cutAtWord(line, MAX_EXCERPT) : `${open} ⏎ ${line}`;
  }
  return open === "" ? pieces : [...pieces, open];
}

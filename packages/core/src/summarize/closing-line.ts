/**
 * The last line of every summary: what was left out and can be opened again. Prompts ask for it, the gate adds it when a model omits it,
 * the extractive summariser writes it, and a condensing pass parses it.
 */
export const CLOSING_PREFIX = "Expand for details about:";

const CLOSING_LINE = /^[ \t>*_-]*expand for details about\b[ \t]*[:：]?[ \t*_]*(.*)$/gim;

/** If nothing in particular was left out, the exact wording was. */
export function renderClosingLine(topics: readonly string[], sources = 0): string {
  if (topics.length > 0) return `${CLOSING_PREFIX} ${topics.join("; ")}.`;
  return `${CLOSING_PREFIX} ${WORDING}${sources === 0 ? "" : ` of ${sources === 1 ? "1 message" : `${sources} messages`}`}.`;
}

const WORDING = "the exact wording";

export function hasClosingLine(text: string): boolean {
  return new RegExp(CLOSING_LINE.source, "im").test(text);
}

/** Splits a summary into its body and the topics its closing lines name. */
export function splitClosingLine(text: string): { body: string; topics: string[] } {
  const topics: string[] = [];
  const body = text.replace(CLOSING_LINE, (_line, rest: string) => {
    for (const topic of rest.split(/[;；]/)) {
      const clean = topic.trim().replace(/[.。]$/, "");
      if (clean !== "" && !clean.startsWith(WORDING)) topics.push(clean);
    }
    return "";
  });
  return { body: body.trimEnd(), topics };
}

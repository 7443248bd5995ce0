/**
 * The last line of every summary: what was left out and can be opened again. Prompts ask for it, the gate adds it when a model
 * forgets, the extractive summariser writes it, and a condensing pass reads it back.
 */
export const CLOSING_PREFIX = "Expand for details about:";

const CLOSING_LINE = /^[ \t>*_-]*expand for details about\b[ \t]*[:：]?[ \t*_]*(.*)$/gim;

export function renderClosingLine(topics: readonly string[]): string {
  return topics.length === 0
    ? `${CLOSING_PREFIX} the exact wording.`
    : `${CLOSING_PREFIX} ${topics.join("; ")}.`;
}

export function hasClosingLine(text: string): boolean {
  return new RegExp(CLOSING_LINE.source, "im").test(text);
}

/** Splits a summary into its body and the topics its closing lines name. */
export function splitClosingLine(text: string): { body: string; topics: string[] } {
  const topics: string[] = [];
  const body = text.replace(CLOSING_LINE, (_line, rest: string) => {
    for (const topic of rest.split(/[;；]/)) {
      const clean = topic.trim().replace(/[.。]$/, "");
      if (clean !== "" && clean !== "the exact wording") topics.push(clean);
    }
    return "";
  });
  return { body: body.trimEnd(), topics };
}

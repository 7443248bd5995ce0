/** Small pieces shared by all descriptions of files: one-line excerpts, counts with their noun, bounded lists. */

/** One line of text, at most `maxChars` long. */
export function excerpt(text: string, maxChars: number): string {
  const line = text
    .slice(0, maxChars * 4)
    .replace(/\s+/g, " ")
    .trim();
  return line.length <= maxChars ? line : `${line.slice(0, maxChars).replace(/[\ud800-\udbff]$/, "")}…`;
}

export function countOf(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? "" : "s"}`;
}

/** The first items of a list, and how many are left. */
export function listSome(items: readonly string[], max: number, separator = ", "): string {
  const shown = items.slice(0, max).join(separator);
  return items.length > max ? `${shown}${separator}and ${items.length - max} more` : shown;
}

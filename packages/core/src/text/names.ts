/**
 * Names that a text mentions: files, functions, fields. Told by their shape alone, as code spells them; words of prose are none. Used where
 * a text is left out and a line says what it is about.
 */

const NAME =
  /(?:[\w.-]*\/)?[\w-]{2,60}\.(?:[cm]?[jt]sx?|py|go|rs|java|kt|rb|php|cc?|h|cpp|cs|swift|mdx?|jsonl?|ya?ml|toml|sh|sql|html?|css)\b|\b[a-z]{2,}(?:[A-Z][a-z0-9]+)+\b|\b(?:[A-Z][a-z0-9]+){2,}\b|\b[A-Za-z]{2,}(?:_[A-Za-z0-9]+)+\b/g;
/** Beyond this a text is known well enough. */
const MAX_READ = 20_000;
const MAX_LENGTH = 48;

/** The names of a text, the most frequent first, among equals in order of appearance. */
export function listNames(text: string): string[] {
  const counts = new Map<string, number>();
  for (const [name] of text.slice(0, MAX_READ).matchAll(NAME))
    if (name.length <= MAX_LENGTH) counts.set(name, (counts.get(name) ?? 0) + 1);
  return [...counts].sort((a, b) => b[1] - a[1]).map(([name]) => name);
}

/**
 * Names that a text mentions: files, functions, fields. Recognised by their shape alone, as code spells them; words of prose do not count.
 * Used where a text is omitted and a line says what it is about.
 */

const TOKEN = /[\w./-]+/g;
const MIN_LENGTH = 4;
const MAX_LENGTH = 48;
const FILE =
  /\w\.(?:[cm]?[jt]sx?|py|go|rs|java|kt|rb|php|cc?|h|cpp|cs|swift|mdx?|jsonl?|ya?ml|toml|sh|sql|html?|css)$/;
const CODE = /^[a-z]{2,}(?:[A-Z][a-z0-9]+)+$|^(?:[A-Z][a-z0-9]+){2,}$|^[A-Za-z]{2,}(?:_[A-Za-z0-9]+)+$/;
/** This much is enough to describe a text, and every context would pay for reading more. */
const MAX_READ = 4_000;

/** The names in a text, the most frequent first, ties in order of appearance. */
export function listNames(text: string): string[] {
  const counts = new Map<string, number>();
  for (const [found] of text.slice(0, MAX_READ).matchAll(TOKEN)) {
    const token = found.endsWith(".") ? found.replace(/\.+$/, "") : found;
    if (token.length >= MIN_LENGTH && token.length <= MAX_LENGTH)
      counts.set(token, (counts.get(token) ?? 0) + 1);
  }
  return [...counts]
    .filter(([token]) => CODE.test(token) || FILE.test(token))
    .sort((a, b) => b[1] - a[1])
    .map(([token]) => token);
}

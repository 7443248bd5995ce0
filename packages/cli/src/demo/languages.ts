/** A rough guess at the language of short texts, for a count in the demo: by script, then by common words of a language. */
import { STOP_WORDS_BY_LANGUAGE } from "@lossless/core/testing";

const KANA = /[\u3041-\u30FF]/u;
const HAN = /\p{Script=Han}/u;
const NAMES = new Intl.DisplayNames("en", { type: "language" });

export function countLanguages(texts: Iterable<string>): Map<string, number> {
  const counts = new Map<string, number>();
  for (const text of texts) {
    const code = guessLanguage(text);
    if (code === null) continue;
    const name = NAMES.of(code) ?? code;
    counts.set(name, (counts.get(name) ?? 0) + 1);
  }
  return counts;
}

/** Null when a text is too short, or is not prose. */
function guessLanguage(text: string): string | null {
  const head = text.slice(0, 2000);
  const letters = head.match(/\p{L}/gu)?.length ?? 0;
  const wide = head.match(/[\p{Script=Han}\u3041-\u30FF]/gu)?.length ?? 0;
  if (wide > 0 && wide * 4 > letters) return KANA.test(head) ? "ja" : HAN.test(head) ? "zh" : null;
  const words = head.toLowerCase().match(/\p{L}+/gu) ?? [];
  let best: string | null = null;
  let most = 2;
  for (const [code, list] of STOP_WORDS_BY_LANGUAGE) {
    const hits = words.filter((word) => list.has(word)).length;
    if (hits > most) [best, most] = [code, hits];
  }
  return best;
}

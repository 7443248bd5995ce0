/**
 * Plain letters: two spellings that a person reads as the same word become the same string. Case and diacritics are removed, full-width and
 * styled letters become plain ones. Idempotent, and only an empty text becomes empty.
 */

// oxlint-disable-next-line no-control-regex -- the whole ASCII range is meant
const ASCII_ONLY = /^[\x00-\x7f]*$/;
const MARKS = /\p{M}+/gu;
/** Letters that Unicode does not decompose and that people still type without their stroke. */
const PLAIN: Record<string, string> = {
  ø: "o",
  ł: "l",
  đ: "d",
  ß: "ss",
  æ: "ae",
  œ: "oe",
  ı: "i",
  þ: "th",
  ð: "d",
};
const STROKED = /[øłđßæœıþð]/g;

/** A word of a script with letters: "Straße" → "strasse", "Éclair" → "eclair", "ＡＢＣ" → "abc". */
export function toPlainWord(word: string): string {
  const lower = word.toLowerCase();
  if (ASCII_ONLY.test(lower)) return lower;
  const bare = lower.normalize("NFKD").replace(MARKS, "").toLowerCase();
  const plain = bare.replace(STROKED, (letter) => PLAIN[letter] as string).normalize("NFC");
  return plain === "" ? lower : plain;
}

/** A character that is searched for by itself. Its marks distinguish words (か and が, Thai vowels), so they stay. */
export function toPlainGlyph(glyph: string): string {
  return glyph.normalize("NFKC").replace(/[\uFE0E\uFE0F\u200D\s]/g, "");
}

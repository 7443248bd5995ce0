/**
 * A compact English stemmer in the spirit of Porter's: it strips endings while enough of the word stays to distinguish it from others, and
 * maps irregular forms to their base. It is meant for finding, not for reading: "decide", "decided" and "deciding" share a stem that is not
 * a word. Words with other than plain letters a–z are returned unchanged, since the rules are English. Invariant: the stem of a plain word
 * is a plain word, never empty, and at most one letter longer than the word unless that is an irregular form ("lit" becomes "light").
 */

import { IRREGULAR_FORMS } from "./vocabulary.ts";

const PLAIN_LETTERS = /^[a-z]+$/;
const HAS_VOWEL = /[aeiouy]/;
const DOUBLE_END = /([bdfgmnprt])\1$/;
/** Ends in consonant, vowel, consonant, as in "mak(ing)" or "hop(ing)": the base had a final e. */
const SHORT_END = /(^|[^aeiou])[aeiouy][^aeiouywx]$/;

/** Derivational endings, longest first within a group, with their replacements. They apply when the rest has a full syllable. */
const MIDDLE_ENDINGS: readonly (readonly [string, string])[] = [
  ["ational", "ate"],
  ["ization", "ize"],
  ["isation", "ize"],
  ["fulness", "ful"],
  ["ousness", "ous"],
  ["iveness", "ive"],
  ["tional", "tion"],
  ["biliti", "ble"],
  ["ation", "ate"],
  ["alism", "al"],
  ["aliti", "al"],
  ["iviti", "ive"],
  ["ator", "ate"],
  ["enci", "ence"],
  ["anci", "ance"],
  ["izer", "ize"],
  ["iser", "ize"],
  ["ise", "ize"],
  ["abli", "able"],
  ["alli", "al"],
  ["entli", "ent"],
  ["ousli", "ous"],
  ["eli", "e"],
  ["ical", "ic"],
  ["icate", "ic"],
  ["ness", ""],
  ["ful", ""],
];

/** Endings that are stripped only when two syllables stay. */
const LATE_ENDINGS = [
  "ement",
  "ance",
  "ence",
  "able",
  "ible",
  "ment",
  "ant",
  "ent",
  "ism",
  "ate",
  "iti",
  "ous",
  "ive",
  "ize",
  "al",
  "er",
  "ic",
];

/** How many times a vowel run is followed by a consonant run: Porter's measure of a word's length. */
function measure(word: string): number {
  let count = 0;
  let inVowel = false;
  for (let at = 0; at < word.length; at++) {
    const letter = word[at] as string;
    const vowel: boolean = "aeiou".includes(letter) || (letter === "y" && at > 0 && !inVowel);
    if (inVowel && !vowel) count++;
    inVowel = vowel;
  }
  return count;
}

function dropPlural(word: string): string {
  if (!word.endsWith("s") || word.endsWith("ss") || word.endsWith("us") || word.endsWith("is")) return word;
  if (word.endsWith("sses") || word.endsWith("shes") || word.endsWith("ches") || word.endsWith("xes"))
    return word.slice(0, -2);
  if (word.endsWith("ies")) return word.length > 4 ? `${word.slice(0, -3)}y` : word.slice(0, -1);
  return HAS_VOWEL.test(word.slice(0, -2)) ? word.slice(0, -1) : word;
}

function repairBase(base: string): string {
  if (/(?:at|bl|iz|[^aeiou]v|dg|rc|rg|nc|ns|[a-z]{2}is)$/.test(base)) return `${base}e`;
  if (DOUBLE_END.test(base)) return base.length > 3 ? base.slice(0, -1) : base;
  return measure(base) === 1 && SHORT_END.test(base) ? `${base}e` : base;
}

function dropTense(word: string): string {
  if (word.endsWith("eed")) return measure(word.slice(0, -3)) > 0 ? word.slice(0, -1) : word;
  if (word.endsWith("ied")) return word.length > 4 ? `${word.slice(0, -3)}y` : word.slice(0, -1);
  const base = word.endsWith("ed") ? word.slice(0, -2) : word.endsWith("ing") ? word.slice(0, -3) : "";
  return base.length > 1 && HAS_VOWEL.test(base) ? repairBase(base) : word;
}

function dropMiddle(word: string): string {
  for (const [ending, replacement] of MIDDLE_ENDINGS) {
    if (!word.endsWith(ending)) continue;
    const base = word.slice(0, -ending.length);
    // "creation" is from "create", though "cre" is short; "nation" and "station" are not from anything.
    const isLongEnough =
      measure(base) > 0 || (ending.startsWith("at") && /[aeiou]/.test(base) && base.length > 2);
    return isLongEnough ? base + replacement : word;
  }
  return /[cdeghkmnrt]li$/.test(word) && measure(word.slice(0, -2)) > 0 ? word.slice(0, -2) : word;
}

function dropLate(word: string): string {
  if (/[st]ion$/.test(word)) return measure(word.slice(0, -3)) > 1 ? word.slice(0, -3) : word;
  for (const ending of LATE_ENDINGS) {
    if (!word.endsWith(ending)) continue;
    const base = word.slice(0, -ending.length);
    return measure(base) > 1 ? base : word;
  }
  return word;
}

function dropFinalLetter(word: string): string {
  if (word.endsWith("e")) {
    const base = word.slice(0, -1);
    const size = measure(base);
    return size > 1 || (size === 1 && !SHORT_END.test(base)) ? base : word;
  }
  return word.endsWith("ll") && measure(word) > 1 ? word.slice(0, -1) : word;
}

/** The stem of a plain word. */
export function stem(word: string): string {
  if (word.length < 3 || word.length > 40 || !PLAIN_LETTERS.test(word)) return word;
  const irregular = IRREGULAR_FORMS.get(word);
  if (irregular !== undefined) return irregular;
  const singular = dropPlural(word);
  const present = IRREGULAR_FORMS.get(singular) ?? dropTense(singular);
  if (IRREGULAR_FORMS.has(present)) return IRREGULAR_FORMS.get(present) as string;
  if (present.length > 6 && present.endsWith("ily")) return stem(`${present.slice(0, -3)}y`);
  const softened = present.length > 3 && /[^aeiou]y$/.test(present) ? `${present.slice(0, -1)}i` : present;
  return dropFinalLetter(dropLate(dropMiddle(softened)));
}

/** The index splits at every ASCII character that is not in its list; a term that held one would become two. */
import { analyzeForIndex } from "../../src/text/index.ts";
import { isSoak } from "@lossless/testkit/rounds.ts";
import { expect, test } from "vitest";

/** A character that stands for itself can only bring itself into a term: of these, a soak asks for all, and a test for some. */
const PLAIN_STEP = 16;
const standsForItself = (character: string): boolean =>
  character.normalize("NFKD") === character && character.toLowerCase() === character;
const isAsked = (point: number, character: string): boolean =>
  isSoak || point < 0x3000 || point % PLAIN_STEP === 0 || !standsForItself(character);

test("no character of Unicode brings anything into a term that the index would split at", () => {
  const broken: string[] = [];
  for (let point = 1; point < 0x30000; point++) {
    if (point >= 0xd800 && point < 0xe000) continue;
    const character = String.fromCodePoint(point);
    if (!isAsked(point, character)) continue;
    for (const text of [
      character,
      `a${character}b c`,
      `foo${character}Bar.x`,
      `x ${character}${character} y`,
    ]) {
      const { words, idents } = analyzeForIndex(text);
      for (const terms of [words, idents]) {
        if (/[^a-z0-9_\-./@ \u0080-\uffff]| {2}|^ | $/.test(terms))
          broken.push(`U+${point.toString(16)}: ${terms}`);
      }
    }
  }
  expect(broken).toEqual([]);
});

test("an identifier in the possessive is the identifier", () => {
  expect(analyzeForIndex("go-git's Reset").idents.split(" ")).toContain("go-git");
});

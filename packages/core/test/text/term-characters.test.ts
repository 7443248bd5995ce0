/** The index splits at every ASCII character that is not in its list; a term that held one would become two. */
import { analyzeForIndex } from "../../src/text/index.ts";
import { expect, test } from "vitest";

test("no character of Unicode brings anything into a term that the index would split at", () => {
  const broken: string[] = [];
  for (let point = 1; point < 0x30000; point++) {
    if (point >= 0xd800 && point < 0xe000) continue;
    const character = String.fromCodePoint(point);
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

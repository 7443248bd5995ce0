/** What texts spell, and what a pattern requires of it: never may a text that matches be left out. */
import { fc } from "@lossless/testkit/properties.ts";
import { describe, expect, test } from "vitest";
import { analyzeForIndex, Spelling } from "../../src/text/index.ts";

/** Stands for what no word tells. No word contains it. */
const OPAQUE = "*";

function spell(text: string): string {
  const spelling = new Spelling();
  analyzeForIndex(text, spelling);
  return [...spelling.readWords(), ...(spelling.takeOpaque() ? [OPAQUE] : [])].join(" ");
}

const PIECES = [
  "fixed",
  "Fixed",
  "don't",
  "we'll",
  "o'clock",
  "parseHTTPHeader2",
  "a_b__c9",
  "src/a/fooBar.ts",
  "C:\\Users\\me",
  "me@x.org",
  "  312→\t",
  "\n77→",
  "重跑gen-itgc后",
  "naïve",
  "e\u0301clair",
  "K1",
  "İstanbul",
  "🚀go",
  "QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVphYmNkZWZnaGlqa2xtbm9wcXJzdHV2d3h5ejAxMjM0NTY3",
  "0".repeat(70),
  "deadbeef".repeat(9),
  "x.".repeat(300),
  " ",
  "'",
  "-",
  "=",
  "\u0000",
  "\ud800",
];

const messyText = fc
  .array(fc.oneof(fc.constantFrom(...PIECES), fc.string({ unit: "binary", maxLength: 6 })), { maxLength: 20 })
  .map((pieces) => pieces.join(""));

describe("spelled words", () => {
  test.each([
    ["the words as they stand, small, each once", "Fixed the failing, fixed", "fixed the failing fixed"],
    [
      "the pieces of chains, and what they cut whole",
      "src/a/FooBar_x.ts don't v2",
      "src a foo bar x ts foobar_x do don v2",
    ],
  ])("are %s", (_rule, text, words) => {
    expect(new Set(spell(text).split(" "))).toEqual(new Set(words.split(" ")));
  });

  test("hold every run of letters and digits of a text, or say that they do not", () => {
    fc.assert(
      fc.property(messyText, (text) => {
        const spelled = spell(text).split(" ");
        if (spelled.includes(OPAQUE)) return;
        for (const [run] of text.matchAll(/[A-Za-z0-9]{3,}/g)) {
          if (!/[A-Za-z]/.test(run)) continue;
          expect(
            spelled.some((word) => word.includes(run.toLowerCase())),
            `${run} in ${text}`,
          ).toBe(true);
        }
      }),
      { numRuns: 3_000 },
    );
  });

  test("are marked as incomplete where base64 or an endless chain stands", () => {
    const base64 = Buffer.from(Array.from({ length: 90 }, (_, i) => (i * 73) % 256)).toString("base64");
    for (const text of [`see ${base64} there`, "deadbeef".repeat(200)])
      expect(spell(text).split(" ")).toContain(OPAQUE);
    expect(spell("nothing * special").split(" ")).not.toContain(OPAQUE);
  });
});

describe("a spelling", () => {
  const words = fc.array(fc.string({ unit: "grapheme", minLength: 1, maxLength: 5 }), { maxLength: 900 });
  const give = (spelling: Spelling, word: string): void => {
    const bytes = Buffer.from(`before${word}behind`);
    spelling.add(bytes, 6, bytes.length - 6);
  };

  test("holds each word once, whatever they are, and nothing of what it held before it was cleared", () => {
    const spelling = new Spelling();
    fc.assert(
      fc.property(words, (given) => {
        const kept = given.filter((word) => !word.includes("\n"));
        spelling.clear();
        for (const word of [...kept, ...kept.toReversed()]) give(spelling, word);
        expect(spelling.readWords()).toEqual(new Set(kept));
        const lines = Buffer.from(spelling.encode()).toString();
        expect(lines).toBe([...new Set(kept)].join("\n"));
      }),
    );
  });

  test("is given the words of a text again once it is cleared", () => {
    const spelling = new Spelling();
    for (let round = 0; round < 2; round++) {
      analyzeForIndex("Fixed parseConfig", spelling);
      expect(spelling.readWords()).toEqual(new Set(["fixed", "parse", "config", "parseconfig"]));
      spelling.clear();
      expect(spelling.readWords().size).toBe(0);
    }
  });
});

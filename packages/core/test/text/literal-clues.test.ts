import { fc } from "@lossless/testkit/properties.ts";
import { describe, expect, test } from "vitest";
import {
  analyzeForIndex,
  DoubtReader,
  holdsClue,
  readLiteralClue,
  readTextTerms,
  Spelling,
} from "../../src/text/index.ts";

/** Whether the index and the spelled words let a text be looked at for a literal. */
function isCandidate(text: string, literal: string): boolean {
  const found = readLiteralClue(literal);
  if (found === null) return true;
  const spelling = new Spelling();
  analyzeForIndex(text, spelling);
  if (spelling.takeOpaque()) return true;
  const terms = readTextTerms(text);
  if (found.certain !== null && !holdsClue(terms, found.certain)) return false;
  if (holdsClue(terms, found.clue)) return true;
  const words = Buffer.from(spelling.encode());
  const reader = new DoubtReader(found.doubts);
  if (!reader.read(words)) return true;
  const longer = found.spellOut(reader.found);
  return longer !== null && holdsClue(terms, longer);
}

const run = (...words: string[]) => ({ kind: "phrase", words });

describe("the clue of a literal", () => {
  test.each([
    ["src/great/really.ts", run("src", "great", "realli"), ["before src"]],
    ["great_really", run("great", "realli"), ["before great", "behind really"]],
    ["PROJ-42420", { kind: "prefix", words: ["proj", "42420"] }, ["before proj"]],
    [": the timeout.", run("the", "timeout"), []],
    ["fooBar", run("foo", "bar"), ["before foobar", "behind foobar"]],
    ["42 ", null, []],
    ["ab", null, []],
    ["重跑后", null, []],
    ["\n 42", null, []],
  ])("%j", (literal, clue, doubts) => {
    const found = readLiteralClue(literal);
    expect(found?.clue ?? null).toEqual(clue);
    expect((found?.doubts ?? []).map(({ side, letters }) => `${side} ${letters}`)).toEqual(doubts);
  });

  test("is held by every text that contains the literal, unless its spelling raises a doubt", () => {
    const piece = fc.constantFrom(
      ..."abnstABSTN019_-./@' \n→é中\u0301",
      "don",
      "'t",
      "'s",
      "URLs",
      "HTTP",
      "really",
      "great",
      "went",
      "42420",
      "fooBar",
      "session2",
      "QmFzZTY0IGlzIG1peGVkIDEyMzQ1Njc4OTBBYkNkRWZHaElqS2xNbk9wUXJTdFV2V3hZeg",
    );
    const texts = fc.array(piece, { maxLength: 6 }).map((pieces) => pieces.join(""));
    fc.assert(
      fc.property(texts, texts, texts, (before, literal, behind) => {
        expect(isCandidate(before + literal + behind, literal)).toBe(true);
      }),
      { numRuns: 20_000 },
    );
  });

  test.each([
    ["it was really42420N't", "42420N"],
    ["a session2N't", " session2"],
    ["_adon't", "don"],
    ["an HTTPServer", "HTTPS"],
    ["3ab12_", "ab12_"],
    ["xURLs_x", "URLs"],
  ])("is found in %j by the longer word, or by its own: %j", (text, literal) => {
    expect(isCandidate(text, literal)).toBe(true);
  });

  test("leaves out texts that hold its words apart", () => {
    expect(isCandidate("it was really great", "great_really")).toBe(false);
    expect(isCandidate("an ingreat_really", "great_really")).toBe(true);
    expect(isCandidate("PROJ-4242 and 420", "PROJ-42420")).toBe(false);
    expect(isCandidate("reallyness, great", "great_really")).toBe(false);
    expect(isCandidate("a great_reallyness12", "great_really")).toBe(true);
    expect(isCandidate("tale_reallyness12 great", "great_really")).toBe(false);
  });
});

import { fc } from "@lossless/testkit/properties.ts";
import { describe, expect, test } from "vitest";
import { analyzeQuery, findMatches, makeSnippet, verbatimShare } from "../../src/text/index.ts";
import { listMatchedWords } from "../../src/text/matches.ts";

const TEXT = `First sentence here about nothing at all. We finally decided to retry the upload three times, because the GitStore was flaky.
The third paragraph   mentions gitstore again and src/a/fooBar.ts. 重跑gen-itgc后结果很好。More text follows here to make it long enough.`;

function highlight(text: string, question: string): string[] {
  return findMatches(text, analyzeQuery(question)).map(({ start, end }) => text.slice(start, end));
}

function snippetOf(question: string, maxChars: number): { text: string; marked: string[] } {
  const { text, ranges } = makeSnippet(TEXT, analyzeQuery(question), { maxChars });
  return { text, marked: ranges.map(({ start, end }) => text.slice(start, end)) };
}

describe("highlighting", () => {
  test.each([
    ["what did we decide about retries?", ["decided", "retry"]],
    ["gitstore", ["GitStore", "gitstore"]],
    ["fooBar", ["fooBar"]],
    ["src/a/fooBar.ts", ["src/a/fooBar.ts"]],
    ["结果", ["结果"]],
    ["GEN-ITGC", ["gen-itgc"]],
    ['"three times"', ["three times"]],
    ["absent", []],
  ])("marks what answers %j", (question, marked) => {
    expect(highlight(TEXT, question)).toEqual(marked);
  });

  test("marks the pieces of an identifier where it is nowhere whole", () => {
    expect(highlight("the foo of the bar", "fooBar")).toEqual(["foo", "bar"]);
  });

  test("marks a hash by its beginning", () => {
    expect(highlight("commit 4f3c2a1b9d8e7f60 fixed it", "4f3c2a1")).toEqual(["4f3c2a1b9d8e7f60"]);
  });

  test("gives ordered ranges that do not overlap, for any text and question", () => {
    const text = fc.string({
      unit: fc.constantFrom(..."ab. _-重跑é", "foo", "Bar", "\ud83d", "😀"),
      maxLength: 60,
    });
    fc.assert(
      fc.property(text, text, (body, question) => {
        let last = 0;
        for (const { start, end } of findMatches(body, analyzeQuery(question))) {
          expect(start).toBeGreaterThanOrEqual(last);
          expect(end).toBeGreaterThan(start);
          last = end;
        }
        expect(last).toBeLessThanOrEqual(body.length);
      }),
    );
  });
});

describe("a snippet", () => {
  test("starts with the sentence of the match and ends on a whole word", () => {
    expect(snippetOf("what did we decide about retries?", 80)).toEqual({
      text: "…We finally decided to retry the upload three times, because the GitStore was…",
      marked: ["decided", "retry"],
    });
  });

  test("shows white space as single spaces", () => {
    expect(snippetOf("third paragraph mentions", 60).text).toContain("third paragraph mentions");
  });

  test("is the beginning when nothing matches", () => {
    const { text, marked } = snippetOf("absent", 40);
    expect(text).toBe("First sentence here about nothing at…");
    expect(marked).toEqual([]);
  });

  test("is the whole text when that is short", () => {
    expect(makeSnippet("all of it", analyzeQuery("all"), { maxChars: 200 }).text).toBe("all of it");
  });

  test("finds a match deep in a long text", () => {
    const long = `${"filler words go here. ".repeat(6000)}The needle is here. ${"more filler. ".repeat(6000)}`;
    expect(makeSnippet(long, analyzeQuery("needle"), { maxChars: 100 }).text).toContain(
      "The needle is here.",
    );
  });

  test("keeps to its length, in whole characters, with ranges inside, for any text", () => {
    const text = fc.string({ unit: fc.constantFrom(..."ab. \n重跑", "foo ", "Bar ", "😀"), maxLength: 200 });
    fc.assert(
      fc.property(text, text, fc.integer({ min: 8, max: 80 }), (body, question, maxChars) => {
        const snippet = makeSnippet(body, analyzeQuery(question), { maxChars });
        expect(snippet.text.length).toBeLessThanOrEqual(maxChars);
        expect(snippet.text.isWellFormed()).toBe(true);
        for (const { start, end } of snippet.ranges) {
          expect(start).toBeGreaterThanOrEqual(0);
          expect(end).toBeGreaterThan(start);
          expect(end).toBeLessThanOrEqual(snippet.text.length);
        }
      }),
    );
  });
});

test("tells spelling to the letter from the same identifier in other capitals", () => {
  const query = analyzeQuery("CHECKPOINT_ID");
  expect(verbatimShare("the CHECKPOINT_ID is set", query)).toBe(1);
  expect(verbatimShare("the checkpoint_id is set", query)).toBe(0);
  expect(verbatimShare("anything", analyzeQuery("plain words"))).toBe(0);
});

test("matched words are the forms in a text, and no long runs of them", () => {
  expect(listMatchedWords("Folding: what was folded, Folding again", "fold")).toEqual(["folding", "folded"]);
  expect(listMatchedWords(`日本 ${"日本".repeat(20_000)}`, "日本")).toEqual(["日本"]);
  expect(listMatchedWords("nothing of it", "fold")).toEqual([]);
});

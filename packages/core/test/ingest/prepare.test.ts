/** What preparing a message must not change: the terms of its text. */
import { readFileSync } from "node:fs";
import { findSharedData, listTranscripts } from "@lossless/testkit";
import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { analyzeRemembering } from "../../src/ingest/prepare.ts";
import { analyzeForIndex } from "../../src/text/index.ts";

const data = findSharedData();

describe("analysing stretch by stretch", () => {
  test.each([
    ["a line number at the start of a line", "   12→import x\n13→\ty 14→z\n\t15→w\n 16→"],
    ["a line number at the start of the text", "7→first"],
    ["a number with an arrow inside a line", "see 12→13 and x 5→6"],
    ["contractions, paths and versions", "don't parseConfig's src/a/fooBar.ts v1.2.3 PROJ-42"],
    ["scripts without spaces and marks", "漢字かな交じり文 สวัสดี e\u0301 \u0301x 😀👍🏽 full\u3000width"],
    ["base64 between words", `a ${"aB3xY9kQ".repeat(12)} b`],
    ["nothing but blanks", " \t\n\u0000\r "],
  ])("gives the terms of the whole text: %s", (_, text) => {
    expect(analyzeRemembering(text)).toEqual(analyzeForIndex(text));
  });

  test("gives the terms of the whole text, whatever the text is", () => {
    const piece = fc.oneof(
      fc.constantFrom(" ", "\n", "\t", "  ", "→", "12", "9→", "'", "’", "n't", "/", ".", "_", "-", "@", "\\", "foo", "Bar", "URLs", "漢", "é", "e\u0301"),
      fc.string({ unit: "binary", maxLength: 6 }),
    );
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 40 }), (pieces) => {
        const text = pieces.join("");
        expect(analyzeRemembering(text)).toEqual(analyzeForIndex(text));
      }),
      { numRuns: 3_000 },
    );
  });

  test.skipIf(data === null)("gives the terms of the whole text on real transcripts", () => {
    for (const path of listTranscripts(data ?? "", "claude-code")) {
      const text = readFileSync(path, "utf8").slice(0, 400_000);
      expect(analyzeRemembering(text)).toEqual(analyzeForIndex(text));
    }
  });
});

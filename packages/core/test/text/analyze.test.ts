import { fc } from "@lossless/testkit/properties.ts";
import { describe, expect, test } from "vitest";
import { analyzeForIndex } from "../../src/text/index.ts";
import { scan } from "../../src/text/scan.ts";

const anyText = fc.string({ unit: "binary", maxLength: 300 });

describe("analysis for the index", () => {
  test.each([
    ["stems words in order", "Fixed the failing tests", "fix the fail test"],
    [
      "splits camel case, snake case and final numbers",
      "parseHTTPHeader max_retry_count session2",
      "pars http header max retri count session 2",
    ],
    ["keeps an acronym with its plural", "two URLs", "two url"],
    ["keeps hashes whole", "commit a262de1", "commit a262de1"],
    ["splits paths, versions and addresses", "src/a/b.ts v1.2 me@x.org", "src a b ts v1 2 me x org"],
    ["reads over contractions", "Caroline's kids don't", "carolin kid do"],
    ["folds case and diacritics", "Straße NAÏVE Éclair", "strass naiv eclair"],
    ["takes each glyph of a script without spaces by itself", "重跑后", "重 跑 后"],
    ["finds words glued into such a script", "重跑gen-itgc后", "重 跑 gen itgc 后"],
    ["keeps a Thai letter with its marks", "ดีครับ", "ดี ค รั บ"],
    ["finds emoji", "launch 🚀!", "launch 🚀"],
    ["leaves out line numbers of listings", "   312→\treturn nil\n313→}", "return nil"],
    ["keeps other numbers", "HTTP 404 at line 12", "http 404 at line 12"],
  ])("%s", (_rule, text, words) => {
    expect(analyzeForIndex(text).words).toBe(words);
  });

  test.each([
    ["fooBar_baz", "foobar_baz"],
    ["src/a/fooBar.ts", "foobar foobar.ts src/a/foobar.ts"],
    ["PROJ-42", "proj-42"],
    ["GitStore.ListCommitted", "gitstore listcommitted gitstore.listcommitted"],
    ["@scope/pkg-name@0.8.0", "pkg-name 0.8.0 scope/pkg-name@0.8.0"],
    ["C:\\Users\\me\\a.txt", "a.txt users/me/a.txt"],
    ["https://example.org/docs/intro?x=1", "example.org example.org/docs/intro"],
    ["plain words only", ""],
    ["fooBar and FooBar and foobar", "foobar"],
  ])("names the identifiers of %s whole", (text, idents) => {
    expect(analyzeForIndex(text).idents).toBe(idents);
  });

  test("skips base64 and keeps what stands around it", () => {
    const payload = Buffer.from(Array.from({ length: 300 }, (_, index) => (index * 97) % 251)).toString(
      "base64",
    );
    const { words, idents } = analyzeForIndex(`before data:image/png;base64,${payload} after`);
    expect(words).toBe("befor data imag png base 64 after");
    expect(idents).toBe("image/png base64");
  });

  test("keeps long paths and long hexadecimal strings, cut to a bearable length", () => {
    const path = `${"deeply/nested/".repeat(8)}file.ts`;
    expect(analyzeForIndex(path).words.endsWith("deepli nest file ts")).toBe(true);
    expect(analyzeForIndex("0123456789abcdef".repeat(8)).words).toHaveLength(64);
  });

  test("gives only terms the index can hold, for any text", () => {
    fc.assert(
      fc.property(anyText, (text) => {
        const { words, idents } = analyzeForIndex(text);
        for (const term of `${words} ${idents}`.split(" ").filter((term) => term !== "")) {
          expect(term).toMatch(
            /^(?:[\p{L}\p{N}\p{M}\p{Extended_Pictographic}\p{Emoji_Modifier}_./@-]|\p{S})+$/u,
          );
          expect(term.length).toBeLessThanOrEqual(200);
        }
      }),
    );
  });

  test("gives the same words for a text and for its analysed words again", () => {
    fc.assert(
      fc.property(fc.lorem({ maxCount: 30 }), (text) => {
        const { words } = analyzeForIndex(text.toUpperCase());
        expect(words).toBe(analyzeForIndex(text).words);
      }),
    );
  });
});

const mixedText = fc.oneof(
  fc.string({ unit: "binary", maxLength: 60 }),
  fc.string({ unit: "grapheme", maxLength: 60 }),
  fc.string({ unit: fc.constantFrom(..."aAbZ09_-./@'tT \n"), maxLength: 150 }),
);

describe("reading many texts", () => {
  test("leaves nothing of one in the terms of another", () => {
    fc.assert(
      fc.property(fc.array(mixedText, { maxLength: 12 }), (texts) => {
        const first = texts.map((text) => analyzeForIndex(text));
        const again = texts.toReversed().map((text) => analyzeForIndex(text));
        expect(again.toReversed()).toEqual(first);
      }),
    );
  });

  test("gives a text without glyphs the words and identifiers of its lines, in order, each identifier once", () => {
    const line = fc.string({ unit: fc.constantFrom(..."aAbZ09_-./@'tT \t"), maxLength: 80 });
    fc.assert(
      fc.property(fc.array(line, { maxLength: 6 }), (lines) => {
        const whole = analyzeForIndex(lines.join("\n"));
        const apart = lines.map((one) => analyzeForIndex(one));
        const join = (columns: string[]): string[] =>
          columns.flatMap((terms) => terms.split(" ")).filter(Boolean);
        expect(whole.words).toBe(join(apart.map(({ words }) => words)).join(" "));
        expect(whole.idents).toBe([...new Set(join(apart.map(({ idents }) => idents)))].join(" "));
      }),
    );
  });

  test("finds the same pieces whatever separates them", () => {
    const chain = fc.string({ unit: fc.constantFrom(..."aaabbAZ09_-./@'tT"), minLength: 1, maxLength: 75 });
    // Of these only the first are known to the short way for plain words.
    const separators = [" ", ",", "\0", "\u0001", "，", "\ud800"];
    const piecesOf = (text: string): string => {
      const pieces: unknown[] = [];
      scan(text, {
        word: (start, end, inChain) => pieces.push(["word", start, end, inChain]),
        identifier: (start, end, inChain) => pieces.push(["identifier", start, end, inChain]),
        glyph: (start, end) => pieces.push(["glyph", start, end]),
        run: (start, end) => pieces.push(["run", start, end]),
        payload: (start, end) => pieces.push(["payload", start, end]),
      });
      return JSON.stringify(pieces);
    };
    fc.assert(
      fc.property(fc.array(chain, { maxLength: 8 }), (chains) => {
        const [first, ...others] = separators.map((separator) => piecesOf(chains.join(separator)));
        for (const other of others) expect(other).toBe(first);
      }),
      { numRuns: 1_000 },
    );
  });

  test("tells apart identifiers that fold to the same term no more than once, also in a very long text", () => {
    const text = Array.from({ length: 60_000 }, (_, n) => `a/b${n % 30_000}c A/B${n % 30_000}C`).join(" ");
    expect(analyzeForIndex(text).idents.split(" ")).toHaveLength(30_000);
    expect(analyzeForIndex("A/b a/B").idents).toBe("a/b");
  });
});

import { fc } from "@lossless/testkit/properties.ts";
import { describe, expect, test } from "vitest";
import { looksLikeRegex, requiredLiterals } from "../../src/text/index.ts";

describe("required literals", () => {
  test.each([
    ["foo(bar|baz)?_qux\\d+", ["_qux", "foo"]],
    ["a|b", []],
    ["abc?d", ["ab", "d"]],
    ["(?:foo)+bar", ["foo", "bar"]],
    ["\\bTODO\\b.*fix", ["TODO", "fix"]],
    ["(?!no)yes", ["yes"]],
    ["(?<=\\$)price", ["price"]],
    ["[abc]def", ["def"]],
    ["x{0,3}yz", ["yz"]],
    ["a{2}b", ["a", "b"]],
    ["foo\\.bar\\n", ["foo.bar\n"]],
    ["(?<n>ab)c\\k<n>", ["ab", "c"]],
    ["(?i:abc)d", ["d"]],
    ["重跑+后", ["重跑", "后"]],
    ["(", []],
    ["", []],
  ])("of %j", (pattern, literals) => {
    expect(requiredLiterals(pattern)).toEqual(literals);
  });

  test("are contained in every match", () => {
    const atom = fc.constantFrom(
      "ab",
      "c",
      "(d|ef)",
      "(gh)",
      "(?:i)",
      "[jk]",
      "\\.",
      ".",
      "\\d",
      "\\bl",
      "(?=m)",
      "(n(o|p)?q)",
      "\\u0072",
      "\\x73",
      "{",
      "}",
    );
    const quantified = fc
      .tuple(atom, fc.constantFrom("", "", "", "?", "*", "+", "{2}", "{0,2}", "+?"))
      .map((pair) => pair.join(""));
    const pattern = fc.array(quantified, { minLength: 1, maxLength: 6 }).map((parts) => parts.join(""));
    const text = fc.string({ unit: fc.constantFrom(..."abcdefghijklmnopqrs.{}19"), maxLength: 40 });
    fc.assert(
      fc.property(pattern, text, (source, body) => {
        const literals = requiredLiterals(source);
        let expression: RegExp;
        try {
          expression = new RegExp(source);
        } catch {
          expect(literals).toEqual([]);
          return;
        }
        if (expression.test(body)) for (const literal of literals) expect(body).toContain(literal);
      }),
      { numRuns: 2000 },
    );
  });
});

describe("looking like a regular expression", () => {
  test.each([
    "foo|bar",
    "err.*timeout",
    "^\\s+at ",
    "\\bfoo\\b",
    "[a-z]+_id",
    "(?:a|b)",
    "v\\d+",
    "x{2,}",
    "end\\.$",
  ])("%s does", (text) => {
    expect(looksLikeRegex(text)).toBe(true);
  });

  test.each([
    "what did we decide?",
    "src/a/b.ts",
    "PROJ-42",
    "cost in $ per month",
    "array[0] is (maybe) empty",
    "why? because.",
    "C++ or C#",
    "foo_bar-baz",
    "重跑了吗？",
    'fmt.Errorf("failed: %w", err)',
  ])("%s does not", (text) => {
    expect(looksLikeRegex(text)).toBe(false);
  });
});

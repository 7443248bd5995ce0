import { fc } from "@lossless/testkit/properties.ts";
import { expect, test } from "vitest";
import { diffLines, renderDiff } from "../../src/doors/diff.ts";

const plain = { gone: (text: string) => text, new: (text: string) => text };

test("a diff holds both texts, whatever they are", () => {
  const lines = fc.array(fc.constantFrom("a", "b", "c", ""), { minLength: 1, maxLength: 12 });
  fc.assert(
    fc.property(lines, lines, (a, b) => {
      const diff = diffLines(a.join("\n"), b.join("\n"));
      expect(diff.filter((line) => line.kind !== "new").map((line) => line.text)).toEqual(a);
      expect(diff.filter((line) => line.kind !== "gone").map((line) => line.text)).toEqual(b);
    }),
  );
});

test("a diff for people shows changed lines with one line around them", () => {
  expect(renderDiff(diffLines("1\n2\n3\n4\n5", "1\n2\n3\nfour\n5"), plain)).toBe(
    "  …\n  3\n- 4\n+ four\n  5",
  );
});

import { fc } from "@lossless/testkit/properties.ts";
import { expect, test } from "vitest";
import { editDistance, findNearest } from "../../src/text/nearest.ts";

test.each([
  ["", "", 0],
  ["", "abc", 3],
  ["kitten", "sitting", 3],
  ["count", "cuont", 2],
])("from %j to %j it takes %i edits", (from, to, expected) => {
  expect(editDistance(from, to)).toBe(expected);
});

test("distance is symmetric, and zero only for equal words", () => {
  fc.assert(
    fc.property(fc.string({ maxLength: 12 }), fc.string({ maxLength: 12 }), (left, right) => {
      expect(editDistance(left, right)).toBe(editDistance(right, left));
      expect(editDistance(left, right) === 0).toBe(left === right);
    }),
  );
});

test("the nearest word is found whatever its case, and a wild word finds none", () => {
  expect(findNearest("FRESHTAIL", ["freshTailCount", "enabled"])).toBe("freshTailCount");
  expect(findNearest("enabeld", ["disabled", "enabled"])).toBe("enabled");
  expect(findNearest("zzzzzz", ["enabled"])).toBeNull();
  expect(findNearest("anything", [])).toBeNull();
});

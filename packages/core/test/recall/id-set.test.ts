/** A set of ids answers as a set does, whichever way it keeps them: near each other, far apart, in order or not. */
import { fc } from "@lossless/testkit/properties.ts";
import { expect, test } from "vitest";
import { IdSet } from "../../src/recall/id-set.ts";

const ids = (most: number) => fc.uniqueArray(fc.integer({ min: 1, max: most }), { maxLength: 12 });
const ordered = (most: number) => ids(most).map((list) => list.toSorted((a, b) => b - a));

test("an IdSet holds what is in its lists, and nothing else", () => {
  const list = fc.oneof(ids(20), ids(5_000), ordered(20), ordered(5_000), ordered(9_000_000));
  fc.assert(
    fc.property(fc.array(list, { maxLength: 3 }), (lists) => {
      const [found, wanted] = [new IdSet(lists), new Set(lists.flat())];
      expect(found.size).toBe(wanted.size);
      for (const id of wanted) {
        expect(found.has(id)).toBe(true);
        for (const beside of [id - 1, id + 1]) expect(found.has(beside)).toBe(wanted.has(beside));
      }
    }),
  );
});

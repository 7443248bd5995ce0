/** Remembered bodies: the answer is always that of the bytes in the row, and what is kept is bounded. */
import { BodyCache } from "../../src/store/body-cache.ts";
import { decodeBody, encodeBody } from "../../src/store/body.ts";
import { fc } from "@lossless/testkit/properties.ts";
import { expect, test } from "vitest";

test("whatever the rows become, the answer is what their bytes decode to", () => {
  const reads = fc.array(
    fc.record({
      id: fc.integer({ min: 1, max: 4 }),
      text: fc.constantFrom("", "a", "b".repeat(900), "c".repeat(900)),
    }),
    { maxLength: 40 },
  );
  fc.assert(
    fc.property(reads, (rows) => {
      const cache = new BodyCache();
      for (const { id, text } of rows) {
        const encoded = encodeBody(Buffer.from(text));
        const stored = { ...encoded, body: Uint8Array.from(encoded.body) };
        expect(Buffer.from(cache.decode(id, stored, text.length))).toEqual(Buffer.from(decodeBody(stored)));
      }
    }),
  );
});

test("a body that did not change is decoded once; one that was long unused is decoded again", () => {
  const cache = new BodyCache();
  const bodyOf = (letter: string) => encodeBody(Buffer.from(letter.repeat(1_000_000)));
  const first = cache.decode(1, bodyOf("a"), 1_000_000);
  expect(cache.decode(1, bodyOf("a"), 1_000_000)).toBe(first);
  expect(cache.decode(1, bodyOf("b"), 1_000_000)).not.toBe(first);
  const second = cache.decode(2, bodyOf("c"), 1_000_000);
  for (let id = 3; id < 9; id++) cache.decode(id, bodyOf("d"), 1_000_000);
  expect(cache.decode(2, bodyOf("c"), 1_000_000)).not.toBe(second);
});

import { fc } from "@lossless/testkit/properties.ts";
import { expect, test } from "vitest";
import { Heights } from "../../page/heights.ts";

const step = fc.record({ index: fc.nat(199), height: fc.integer({ min: 1, max: 500 }) });

test("places and rows agree with adding up the heights one by one", () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 200 }),
      fc.array(step, { maxLength: 50 }),
      fc.nat(30_000),
      (count, steps, offset) => {
        const heights = new Heights(count, 40);
        const plain = Array.from({ length: count }, () => 40);
        for (const { index, height } of steps) {
          if (index >= count) continue;
          heights.set(index, height);
          plain[index] = height;
        }
        const sums = plain.reduce<number[]>((all, height) => [...all, (all.at(-1) ?? 0) + height], [0]);
        for (let index = 0; index <= count; index++)
          expect(heights.offsetOf(index)).toBeCloseTo(sums[index] ?? 0);
        expect(heights.total).toBeCloseTo(sums[count] ?? 0);
        const row = sums.findLastIndex((sum) => sum <= offset);
        expect(heights.indexAt(offset)).toBe(Math.min(row, count - 1));
      },
    ),
  );
});

test("says whether a height has changed", () => {
  const heights = new Heights(3, 10);
  expect(heights.set(1, 10)).toBe(false);
  expect(heights.set(1, 25)).toBe(true);
  expect(heights.total).toBe(45);
});

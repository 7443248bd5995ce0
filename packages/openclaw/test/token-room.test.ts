import { fc } from "@lossless/testkit/properties.ts";
import { describe, expect, test } from "vitest";
import {
  findBase,
  findCap,
  findHostLimit,
  learnOverflow,
  learnRoom,
  learnWindow,
  NOTHING_LEARNED,
  OVERFLOW_SHARE,
  raiseCap,
} from "../src/assemble/token-room.ts";

describe("a learned limit", () => {
  test("after an overflow the next context is smaller, and each turn that fills it gives a tenth back", () => {
    let learned = learnOverflow(NOTHING_LEARNED, 11_000);
    expect(findCap(learned)).toBe(7_700);
    expect(raiseCap(learned, 6_900)).toBe(learned);
    const caps: number[] = [];
    for (let turn = 1; turn <= 5; turn++) {
      learned = raiseCap(learned, findCap(learned));
      caps.push(findCap(learned));
    }
    expect(caps).toEqual([8_470, 9_317, 10_249, 11_274, 12_401]);
  });

  test("what overflowed twice is not tried again", () => {
    let learned = learnOverflow(learnOverflow(NOTHING_LEARNED, 11_000), 10_500);
    for (let turn = 1; turn <= 50; turn++) learned = raiseCap(learned, findCap(learned));
    expect(findCap(learned)).toBe(9_900);
  });

  test("a tiny context was not the reason, and teaches nothing", () => {
    expect(learnOverflow(NOTHING_LEARNED, 700)).toBe(NOTHING_LEARNED);
  });

  test("another window of the same model starts anew, the same one does not", () => {
    const learned = learnOverflow(learnWindow(NOTHING_LEARNED, 64_000), 11_000);
    expect(learnWindow(learned, 64_000)).toBe(learned);
    expect(learnWindow(learned, undefined)).toBe(learned);
    expect(learnWindow(learned, 128_000)).toEqual({ windowTokens: 128_000, overflows: [] });
  });

  test("whatever the real limit and the sizes are, it is found with few overflows and mostly used", () => {
    const sizes = fc.record({
      real: fc.integer({ min: 2_000, max: 150_000 }),
      budget: fc.integer({ min: 2_000, max: 200_000 }),
    });
    fc.assert(
      fc.property(sizes, ({ real, budget }) => {
        let learned = NOTHING_LEARNED;
        let overflows = 0;
        for (let turn = 0; turn < 300; turn++) {
          const sent = Math.min(budget, findCap(learned));
          const before = learned;
          learned = sent > real ? learnOverflow(learned, sent) : raiseCap(learned, sent);
          if (sent > real) overflows += 1;
          else expect(findCap(learned)).toBeGreaterThanOrEqual(findCap(before));
          // A size that overflowed twice is never sent again.
          expect(sent).toBeLessThan(before.overflows[1] ?? Infinity);
        }
        const sent = Math.min(budget, findCap(learned));
        expect(sent).toBeLessThanOrEqual(real);
        expect(sent).toBeGreaterThanOrEqual(Math.min(budget, 0.75 * real));
        const stepsDown = Math.max(0, Math.ceil(Math.log(real / budget) / Math.log(OVERFLOW_SHARE)));
        expect(overflows).toBeLessThanOrEqual(stepsDown + 4);
      }),
    );
  });
});

describe("the room of a window", () => {
  test("is what the host's own part leaves below its limit, and never less than a share of it", () => {
    expect(findHostLimit(64_000)).toBe(48_000);
    expect(findHostLimit(128_000)).toBe(108_000);
    const room = (ownTokens: number, windowTokens: number): number =>
      findCap(learnRoom(NOTHING_LEARNED, { ownTokens, windowTokens }));
    expect(room(27_000, 64_000)).toBe(21_000);
    expect(room(27_000, 32_000)).toBe(3_600);
  });

  test("is the base of the threshold; a limit counts once it is sure, and leaves room to fill it", () => {
    const once = learnOverflow(NOTHING_LEARNED, 11_000);
    expect(findBase(NOTHING_LEARNED, 41_700, 0.75)).toBe(41_700);
    expect(findBase(once, 41_700, 0.75)).toBe(41_700);
    const twice = learnOverflow(once, 10_000);
    expect(findBase(twice, 41_700, 0.75)).toBe(Math.ceil(findCap(twice) / 0.75));
    const room = learnRoom(twice, { ownTokens: 43_000, windowTokens: 64_000 });
    expect(findBase(room, 41_700, 0.75)).toBe(7_200);
  });
});

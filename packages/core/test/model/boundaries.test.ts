import { expect, test } from "vitest";

import { isDivided, isHiddenByBoundary } from "../../src/model/boundaries.ts";
import { POSITION_STEP } from "../../src/model/message.ts";
import { message, summary } from "./cover-kit.ts";

const boundary = (n: number, retainDepth: number) => ({ position: n * POSITION_STEP, retainDepth });

test.each([
  ["hides messages before it", message(4), boundary(5, 2), true],
  ["hides summaries that are too shallow", summary(1, 4, { depth: 1 }), boundary(5, 2), true],
  ["shows summaries deep enough", summary(1, 4, { depth: 2 }), boundary(5, 2), false],
  ["hides nothing from its position on", message(5), boundary(5, 2), false],
  ["hides nothing when everything is retained", message(4), boundary(5, -1), false],
  ["with depth 0 hides messages only", summary(1, 4), boundary(5, 0), false],
])("a boundary %s", (_, item, at, expected) => {
  expect(isHiddenByBoundary(item, [at])).toBe(expected);
});

test("a boundary divides the neighbours on its two sides only", () => {
  expect(isDivided(message(4), message(5), [boundary(5, 2)])).toBe(true);
  expect(isDivided(message(5), message(6), [boundary(5, 2)])).toBe(false);
  expect(isDivided(message(3), message(4), [boundary(5, 2)])).toBe(false);
});

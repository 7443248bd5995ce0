/** Turns as lists show them: what was said in each, and how long it took. */
import { expect, test } from "vitest";
import { sumTurns } from "../../src/doors/turn-sums.ts";
import type { Outline } from "../../src/store/rows.ts";

test("lines that add nothing to the conversation are not counted as messages of a turn", () => {
  const rows = [
    ["user", 20],
    ["assistant", 30],
    ["other", 0],
    ["tool", 5],
    ["other", 0],
    ["user", 7],
    ["assistant", 8],
  ] as const;
  const roleNames = ["user", "assistant", "other", "tool"];
  const column = (make: (index: number) => number): Float64Array =>
    Float64Array.from(rows, (_, index) => make(index));
  const outline: Outline = {
    messageIds: column((index) => index + 1),
    seqs: column((index) => index + 1),
    positions: column((index) => index),
    tokens: column((index) => rows[index]?.[1] ?? 0),
    createdAts: column((index) => index * 1_000),
    roles: Uint16Array.from(rows, ([role]) => roleNames.indexOf(role)),
    roleNames,
  };
  expect(sumTurns(outline)).toEqual([
    { messageId: 1, messages: 3, tokens: 55, tookMs: 3_000 },
    { messageId: 6, messages: 2, tokens: 15, tookMs: 1_000 },
  ]);
});

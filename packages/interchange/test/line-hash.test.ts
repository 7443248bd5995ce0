import { createHash } from "node:crypto";

import { fc } from "@lossless/testkit/properties.ts";
import { describe, expect, test } from "vitest";

import { LineHash } from "../src/transcript/line-hash.ts";

const digest = (lines: readonly Uint8Array[]): string => {
  const hash = createHash("sha256");
  for (const line of lines) hash.update(line).update("\n");
  return hash.digest("hex");
};

/** Lines as a splitter gives them: ranges of a few buffers, some of them joined from two. */
const anyFile = fc.array(
  fc.record({
    lines: fc.array(fc.uint8Array({ maxLength: 12 }), { minLength: 1, maxLength: 6 }),
    /** What stands between two lines; only a line feed makes neighbours of them. */
    gap: fc.constantFrom([10], [10], [10], [32], [], [10, 10]),
    isApart: fc.boolean(),
  }),
  { maxLength: 5 },
);

function layOut({
  lines,
  gap,
  isApart,
}: {
  lines: readonly Uint8Array[];
  gap: readonly number[];
  isApart: boolean;
}): Uint8Array[] {
  if (isApart) return lines.map((line) => new Uint8Array(line));
  const bytes = new Uint8Array(lines.flatMap((line) => [...line, ...gap]));
  let at = 0;
  return lines.map((line) => {
    const range = bytes.subarray(at, at + line.length);
    at += line.length + gap.length;
    return range;
  });
}

describe("the hash of lines", () => {
  test("is that of each line with its line feed, wherever the lines lie", () => {
    fc.assert(
      fc.property(anyFile, (file) => {
        const lines = file.flatMap(layOut);
        const hash = new LineHash();
        for (const line of lines) hash.add(line);
        expect(hash.digest()).toBe(digest(lines));
      }),
    );
  });

  test("can be asked at any line, and continues a hash", () => {
    fc.assert(
      fc.property(anyFile, fc.uint8Array(), (file, prefix) => {
        const lines = file.flatMap(layOut);
        const hash = new LineHash(createHash("sha256").update(prefix));
        const whole = createHash("sha256").update(prefix);
        for (const line of lines) {
          hash.add(line);
          whole.update(line).update("\n");
          expect(hash.digest()).toBe(whole.copy().digest("hex"));
        }
      }),
    );
  });
});

/** A filter never calls a name new that it was given, and seldom calls one seen that it was not. */
import { expect, test } from "vitest";
import { NameFilter } from "../../src/model/name-filter.ts";

test("knows every name it was given, and hardly another", () => {
  const filter = new NameFilter();
  const count = 100_000;
  const name = (number: number): string => `${(number * 2_654_435_761) % 4_294_967_296}-${number}`;
  for (let number = 0; number < count; number++) filter.add(name(number));
  let [missed, mistaken] = [0, 0];
  for (let number = 0; number < count; number++) {
    if (!filter.mayHave(name(number))) missed += 1;
    if (filter.mayHave(name(number + count))) mistaken += 1;
  }
  expect(missed).toBe(0);
  expect(mistaken).toBeLessThan(count / 1_000);
});

test("knows nothing at first", () => {
  expect(["", "a", "\u{1f600}"].some((name) => new NameFilter().mayHave(name))).toBe(false);
});

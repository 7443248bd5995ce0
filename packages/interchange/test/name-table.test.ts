/** The table of names is a map, only smaller. */
import { fc } from "@lossless/testkit/properties.ts";
import { expect, test } from "vitest";
import { NameTable } from "../src/transcript/name-table.ts";

test("gives back what was last set, for any names and however many", () => {
  const change = fc.tuple(fc.string({ maxLength: 4 }), fc.nat(1_000_000));
  fc.assert(
    fc.property(fc.array(change, { maxLength: 200 }), (changes) => {
      const [table, map] = [new NameTable(), new Map<string, number>()];
      for (const [name, value] of changes) {
        expect(table.get(name)).toBe(map.get(name));
        table.set(name, value);
        map.set(name, value);
      }
      for (const [name, value] of map) expect(table.get(name)).toBe(value);
    }),
  );
});

test("keeps names that differ little apart while it grows", () => {
  const table = new NameTable();
  for (let number = 0; number < 50_000; number += 1) table.set(`entry-${number}`, number);
  for (let number = 0; number < 50_000; number += 1) expect(table.get(`entry-${number}`)).toBe(number);
  expect(table.has("entry-50000")).toBe(false);
});

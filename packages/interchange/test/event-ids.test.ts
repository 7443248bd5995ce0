import { fc } from "@lossless/testkit/properties.ts";
import { describe, expect, test } from "vitest";

import { EventIds, nameLine } from "../src/transcript/event-ids.ts";

describe("EventIds", () => {
  test("counts repetitions of a name", () => {
    const ids = new EventIds();
    expect(["a", "b", "a", "a"].map((name) => ids.assign(name))).toEqual(["a", "b", "a#2", "a#3"]);
  });

  test("never gives the same id twice, even when entries are called like repetitions", () => {
    const names = fc.array(fc.constantFrom("a", "a#2", "a#3", "a#2#2", "b"), { maxLength: 30 });
    fc.assert(
      fc.property(names, (list) => {
        const ids = new EventIds();
        const given = list.map((name) => ids.assign(name));
        expect(new Set(given).size).toBe(list.length);
      }),
    );
  });

  test("takes back an id of the same name and goes on counting behind it", () => {
    const ids = new EventIds();
    expect(ids.adopt("a", "a#3")).toBe(true);
    expect(ids.adopt("a", "ab")).toBe(false);
    expect(ids.assign("a")).toBe("a#4");
  });
});

test("a line without an id is named by its bytes", () => {
  const name = nameLine(Buffer.from("{}"), undefined);
  expect(name).toMatch(/^line:[0-9a-f]{24}$/u);
  expect(nameLine(Buffer.from("{} "), undefined)).not.toBe(name);
  expect(nameLine(Buffer.from("{}"), "own")).toBe("own");
});

/** The pieces the screens are made of: keys, places in lists, a line of input, wrapped text, two texts side by side. All pure. */
import { fc } from "@lossless/testkit/properties.ts";
import { describe, expect, test } from "vitest";
import { diffLines, displayWidth } from "@lossless/core/doors";
import { readKey, readMove } from "../src/keys.ts";
import { startInput, typeKey, type LineInput } from "../src/line-input.ts";
import { keepInList, moveInList } from "../src/list-cursor.ts";
import { createPaint, renderRow, renderSpans, span } from "../src/paint.ts";
import { pairLines, renderSideBySide } from "../src/side-by-side.ts";
import { toTextLines, WrappedText } from "../src/wrapped-text.ts";

describe("keys", () => {
  test.each([
    ["j", "j", "j"],
    ["R", "R", "R"],
    [" ", "space", " "],
    ["/", "/", "/"],
    ["é", "é", "é"],
    ["\r", "enter", null],
    ["\u001B", "escape", null],
    ["\u001B[A", "up", null],
    ["\u001BOA", "up", null],
    ["\u001B[6~", "pageDown", null],
    ["\u001B[1~", "home", null],
    ["\u007F", "backspace", null],
    ["\u0003", "ctrl+c", null],
    ["\u001B[114;2u", "R", "R"],
    ["\u001B[114:82;2u", "R", "R"],
    ["\u001B[99;5u", "ctrl+c", null],
    ["\u001B[27;2;82~", "R", "R"],
    ["\u001B[200~two\nlines\u001B[201~", "paste", "two lines"],
  ])("%j is %s", (data, name, text) => {
    expect(readKey(data)).toEqual({ name, text });
  });

  test("a key that is let go of is none", () => {
    expect(readKey("\u001B[114;1:3u")).toBeNull();
  });

  test("arrows and hjkl move alike", () => {
    expect(readMove("j", 10)).toEqual(readMove("down", 10));
    expect(readMove("k", 10)).toEqual(readMove("up", 10));
    expect(readMove("pageDown", 10)).toEqual({ kind: "by", rows: 9 });
    expect(readMove("G", 10)).toEqual({ kind: "last" });
    expect(readMove("x", 10)).toBeNull();
  });
});

test("the chosen row is in the list and on the screen, and the screen is as full as it can be", () => {
  const numbers = fc.record({
    selected: fc.integer({ min: -50, max: 500 }),
    top: fc.integer({ min: -50, max: 500 }),
    count: fc.integer({ min: 0, max: 300 }),
    rows: fc.integer({ min: 1, max: 60 }),
    by: fc.integer({ min: -100, max: 100 }),
  });
  fc.assert(
    fc.property(numbers, ({ selected, top, count, rows, by }) => {
      const cursor = moveInList(
        keepInList({ selected, top }, count, rows),
        { kind: "by", rows: by },
        count,
        rows,
      );
      expect(cursor.selected).toBeGreaterThanOrEqual(0);
      expect(cursor.selected).toBeLessThan(Math.max(1, count));
      expect(cursor.top).toBeLessThanOrEqual(cursor.selected);
      expect(cursor.selected).toBeLessThan(cursor.top + rows);
      expect(cursor.top).toBeLessThanOrEqual(Math.max(0, count - rows));
    }),
  );
});

describe("a line of input", () => {
  const type = (...names: string[]): LineInput => {
    let line = startInput();
    for (const name of names) {
      const text = [...name].length === 1 ? name : null;
      line = typeKey(line, { name, text }) ?? line;
    }
    return line;
  };

  test("is typed, corrected and cut", () => {
    expect(type("a", "b", "c", "backspace").text).toBe("ab");
    expect(type("a", "c", "left", "b").text).toBe("abc");
    expect(type("a", "b", "home", "delete").text).toBe("b");
    expect(type("a", " ", "b", "c", "ctrl+w").text).toBe("a ");
    expect(type("a", "b", "left", "ctrl+u").text).toBe("b");
    expect(type("a", "b", "left", "ctrl+k").text).toBe("a");
  });

  test("takes away whole characters, whatever they are made of", () => {
    const family = "👩‍👩‍👧";
    expect(typeKey(startInput(`x${family}`), { name: "backspace", text: null })?.text).toBe("x");
  });
});

describe("wrapped text", () => {
  test("keeps every character and no line is too wide", () => {
    fc.assert(
      fc.property(
        fc.array(fc.string({ maxLength: 200 })),
        fc.integer({ min: 2, max: 50 }),
        (lines, columns) => {
          const source = toTextLines(lines.join("\n"));
          const wrapped = new WrappedText(source, columns);
          const shown = wrapped.read(0, wrapped.count());
          for (const line of shown) expect(displayWidth(line)).toBeLessThanOrEqual(columns);
          const strip = (text: string): string => text.replaceAll(/\s/g, "");
          expect(strip(shown.join(""))).toBe(strip(source.map(({ text }) => text).join("")));
        },
      ),
    );
  });

  test("wraps a megabyte without spaces in pieces, and only as far as it is read", () => {
    const wrapped = new WrappedText(toTextLines("x".repeat(1_000_000)), 80);
    expect(wrapped.read(0, 2)).toEqual(["x".repeat(80), "x".repeat(80)]);
    expect(wrapped.clampTop(5, 20)).toBe(5);
    expect(wrapped.count()).toBe(12_500);
  });

  test("keeps the spaces a line begins with", () => {
    expect(new WrappedText(toTextLines("if (x)\n    return;"), 40).read(0, 9)).toEqual([
      "if (x)",
      "    return;",
    ]);
  });
});

describe("side by side", () => {
  test("the left side is the old text, the right side the new one", () => {
    const text = fc
      .array(fc.constantFrom("a", "b", "c", "d", ""), { maxLength: 12 })
      .map((lines) => lines.join("\n"));
    fc.assert(
      fc.property(text, text, (before, after) => {
        const pairs = pairLines(diffLines(before, after));
        expect(pairs.flatMap(({ left }) => left ?? []).join("\n")).toBe(before);
        expect(pairs.flatMap(({ right }) => right ?? []).join("\n")).toBe(after);
      }),
    );
  });

  test("what changed is marked by signs, and fits the width", () => {
    const lines = renderSideBySide("same\nold words here", "same\nnew words", 24, createPaint(false));
    expect(lines.map((line) => line.trimEnd())).toEqual([
      "  same     │   same",
      "- old      │ + new",
      "- words    │ + words",
      "- here     │",
    ]);
  });
});

describe("rows", () => {
  const paint = createPaint(true);

  test("text is cut before it is coloured", () => {
    const line = renderSpans([span("abc", paint.bad), span("defgh", paint.good)], 6);
    expect(displayWidth(line)).toBe(6);
    expect(line).toBe(`${paint.bad("abc")}${paint.good("de…")}`);
  });

  test("the chosen one is marked over its whole width, with a sign for those who see no colour", () => {
    expect(renderRow([span("x")], { columns: 6, isSelected: true, paint })).toBe(paint.selected("▸ x   "));
    expect(renderRow([span("x")], { columns: 6, isSelected: true, paint: createPaint(false) })).toBe(
      "▸ x   ",
    );
    expect(renderRow([span("x")], { columns: 6, isSelected: false, paint })).toBe("  x");
  });
});

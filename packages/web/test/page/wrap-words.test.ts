import { describe, expect, test } from "vitest";
import { wrap } from "../../page/wrap-words.ts";

/** Letters of one width. */
const measure = (text: string): number => text.length;

describe("words in lines", () => {
  test("lines break at words and fit", () => {
    expect(wrap("one two three four", 9, 3, measure)).toEqual(["one two", "three", "four"]);
  });

  test("what has no room is left out, and the last line says so", () => {
    expect(wrap("one two three four", 9, 2, measure)).toEqual(["one two", "three …"]);
    expect(wrap("one two three four", 7, 1, measure)).toEqual(["one …"]);
  });

  test("a word wider than the box is cut, never the box", () => {
    const lines = wrap("a /home/me/a/long/path b", 8, 5, measure);
    expect(lines).toEqual(["a", "/home/m…", "b"]);
    for (const line of lines) expect(measure(line)).toBeLessThanOrEqual(8);
  });

  test("no room, no lines", () => {
    expect(wrap("words", 20, 0, measure)).toEqual([]);
    expect(wrap("", 20, 3, measure)).toEqual([]);
  });
});

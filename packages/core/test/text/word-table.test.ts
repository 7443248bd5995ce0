/** Words are remembered by what they are, wherever they stand. */
import * as fc from "fast-check";
import { expect, test } from "vitest";
import { WordTable } from "../../src/text/word-table.ts";

test("remembers one value for equal words and never mixes two up, in any text", () => {
  const table = new WordTable((word) => ({ word }));
  fc.assert(
    fc.property(fc.array(fc.string({ unit: "binary", minLength: 1, maxLength: 4 })), (words) => {
      const text = words.join("");
      let at = 0;
      for (const word of words) {
        const value = table.get(text, at, (at += word.length));
        expect(value.word).toBe(word);
        expect(table.get(word, 0, word.length)).toBe(value);
      }
    }),
  );
});

test("goes on when it has met more words than it keeps", () => {
  let made = 0;
  const table = new WordTable((word) => ({ word, number: ++made }));
  const count = 120_000;
  for (let number = 0; number < count; number++) {
    const word = `w${number}`;
    expect(table.get(word, 0, word.length).word).toBe(word);
  }
  expect(made).toBe(count);
  const last = `w${count - 1}`;
  expect(table.get(last, 0, last.length).number).toBe(count);
});

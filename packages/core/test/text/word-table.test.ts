/** Words are remembered by what they are, wherever they stand. */
import { fc } from "@lossless/testkit/properties.ts";
import { expect, test } from "vitest";
import { ByteWriter } from "../../src/text/byte-writer.ts";
import { Spelling } from "../../src/text/index.ts";
import { returnUnits, takeUnits } from "../../src/text/text-units.ts";
import { hashUnits } from "../../src/text/word-units.ts";
import { WordTable } from "../../src/text/word-table.ts";

/** The record of the word at a place, which is made where there is none. */
function recordOf(table: WordTable, text: string, start: number, end: number): number {
  const taken = takeUnits(text);
  const { units } = taken;
  const hash = hashUnits(units, start, end);
  const word = text.slice(start, end);
  const described = { term: `${word}!`, spelled: word.toLowerCase() };
  const record = table.find(units, start, end, hash) || table.add(units, [start, end], hash, described);
  returnUnits(taken);
  return record;
}

test("remembers one record for equal words and never mixes two up, in any text", () => {
  const table = new WordTable(1_000_000);
  fc.assert(
    fc.property(fc.array(fc.string({ unit: "binary", minLength: 1, maxLength: 4 })), (words) => {
      const text = words.join("");
      let at = 0;
      for (const word of words) {
        const record = recordOf(table, text, at, (at += word.length));
        expect(table.readTerm(record)).toBe(Buffer.from(`${word}!`).toString());
        expect(recordOf(table, word, 0, word.length)).toBe(record);
      }
    }),
  );
});

test("writes terms one after the other, and none for a word that has none", () => {
  const table = new WordTable(1_000_000);
  const { units } = takeUnits("running2024");
  const hashes = [hashUnits(units, 0, 7), hashUnits(units, 7, 11)] as const;
  const records = [
    table.add(units, [0, 7], hashes[0], { term: "run", spelled: "running" }),
    table.addAsItIs(units, 7, 11, hashes[1], false),
    table.addAsItIs(units, 0, 11, hashUnits(units, 0, 11), true),
  ];
  const [terms, spelling] = [new ByteWriter(1), new Spelling()];
  for (const record of [...records, ...records]) {
    table.writeTerm(record, terms);
    table.giveSpelled(record, spelling);
  }
  expect(terms.finish().toString()).toBe("run running2024 run running2024 ");
  expect([...spelling.readWords()]).toEqual(["running", "2024", "running2024"]);
});

test("marks a word once in a text", () => {
  const table = new WordTable(1_000_000);
  const record = recordOf(table, "word", 0, 4);
  expect([7, 7, 8, 8, 7].map((text) => table.mark(record, text))).toEqual([true, false, true, false, true]);
});

test("keeps what it knows while it grows, and goes on after it has forgotten all", () => {
  const table = new WordTable(1_000_000);
  const count = 30_000;
  const wordOf = (number: number): string => `Wörd${number}`;
  const check = (): void => {
    for (let number = 0; number < count; number++) {
      const word = wordOf(number);
      expect(table.readTerm(recordOf(table, word, 0, word.length))).toBe(`${word}!`);
    }
  };
  check();
  check();
  table.trim();
  const { units } = takeUnits("Wörd1");
  expect(table.find(units, 0, 5, hashUnits(units, 0, 5))).toBe(0);
  check();
});

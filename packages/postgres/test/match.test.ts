import { expect, it } from "vitest";
import { encodeForIndex } from "@lossless/core/adapter";
import { holdsClue, readTextTerms } from "@lossless/core/ports";
import type { TextClue } from "@lossless/core/ports";
import { fc } from "@lossless/testkit/properties.ts";
import { SegmentMatcher } from "../src/match.ts";
import type { SegmentTerms, TermPostings } from "../src/match.ts";
import { decodeDocuments, decodeIds } from "../src/posting-blocks.ts";
import { dropFromBlock, FIELD, mergeBlocks, SegmentWriter } from "../src/segment.ts";
import type { PostingRow } from "../src/segment.ts";

const WORDS = ["alpha", "alphabet", "beta", "gamma", "delta", "parse_config", "src/a.ts"];
const word = fc.constantFrom(...WORDS);
const text = fc.array(word, { maxLength: 14 }).map((words) => words.join(" "));
const archive = fc
  .array(fc.tuple(fc.integer({ min: 1, max: 2 ** 40 }), text), { maxLength: 12 })
  .map((entries) => [...new Map(entries)].sort(([a], [b]) => a - b));

const termsOf = (value: string): readonly string[] => readTextTerms(value).words;
const run = fc.array(word, { minLength: 1, maxLength: 3 }).map((words) => words.flatMap(termsOf));
const simple: fc.Arbitrary<TextClue> = fc.oneof(
  run.map((words): TextClue => ({ kind: "phrase", words })),
  run.map((words): TextClue => ({
    kind: "prefix",
    words: [...words.slice(0, -1), (words.at(-1) ?? "").slice(0, 2)],
  })),
  word.map((value): TextClue => ({ kind: "first", word: termsOf(value)[0] as string })),
  word.map((value): TextClue => ({ kind: "identifier", identifier: value })),
  fc.tuple(word, word, fc.nat(4)).map(([a, b, between]): TextClue => ({
    kind: "near",
    words: [termsOf(a)[0] as string, termsOf(b)[0] as string],
    between,
  })),
);
const clue: fc.Arbitrary<TextClue> = fc.oneof(
  simple,
  fc
    .tuple(fc.constantFrom("any" as const, "all" as const), fc.array(simple, { minLength: 1, maxLength: 3 }))
    .map(([kind, of]): TextClue => ({ kind, of })),
);

function writeSegment(documents: readonly (readonly [number, string])[]): PostingRow[] {
  const writer = new SegmentWriter();
  for (const [id, content] of documents) writer.add(id, 1, encodeForIndex(content));
  return [...writer.finish()];
}

function readSegment(
  rows: readonly PostingRow[],
  withPlaces: boolean,
): SegmentTerms & { words: Map<string, TermPostings> } {
  const pick = (field: number): PostingRow[] => rows.filter((row) => row.field === field);
  return {
    words: new Map(
      pick(FIELD.word).map(({ term, documents, places }) => [
        term,
        { ...decodeDocuments(documents), places: withPlaces ? places : null },
      ]),
    ),
    identifiers: new Map(pick(FIELD.identifier).map(({ term, documents }) => [term, decodeIds(documents)])),
  };
}

const holding = (documents: readonly (readonly [number, string])[], sought: TextClue): number[] =>
  documents.filter(([, content]) => holdsClue(readTextTerms(content), sought)).map(([id]) => id);

it("finds in a segment the documents that hold a clue", () => {
  fc.assert(
    fc.property(archive, clue, (documents, sought) => {
      const matcher = new SegmentMatcher(readSegment(writeSegment(documents), true));
      expect([...matcher.match(sought)]).toEqual(holding(documents, sought));
      expect(matcher.listMissing()).toEqual([]);
    }),
    { numRuns: 2_000 },
  );
});

it("asks for the places it needs, and then finds the same", () => {
  fc.assert(
    fc.property(archive, clue, (documents, sought) => {
      const rows = writeSegment(documents);
      const segment = readSegment(rows, false);
      const first = new SegmentMatcher(segment);
      const likely = new Set(first.match(sought));
      const expected = holding(documents, sought);
      expect(expected.every((id) => likely.has(id))).toBe(true);
      for (const { term, from, length } of first.listMissing()) {
        const stored = rows.find((row) => row.field === FIELD.word && row.term === term)
          ?.places as Uint8Array;
        const postings = segment.words.get(term) as TermPostings;
        postings.places ??= new Uint8Array(stored.length).fill(255);
        postings.places.set(stored.subarray(from, from + length), from);
      }
      const second = new SegmentMatcher(segment);
      expect([...second.match(sought)]).toEqual(expected);
      expect(second.listMissing()).toEqual([]);
    }),
    { numRuns: 1_000 },
  );
});

it("merges segments into what one segment of all documents would be, and takes documents out again", () => {
  fc.assert(
    fc.property(archive, fc.integer({ min: 1, max: 3 }), (documents, parts) => {
      const segments = Array.from({ length: parts }, (_, part) =>
        writeSegment(documents.filter((_one, at) => at % parts === part)),
      );
      const nameOf = ({ field, term }: PostingRow): string => `${field} ${term}`;
      const merged = Map.groupBy(segments.flat(), nameOf);
      const whole = writeSegment(documents);
      expect(new Set(merged.keys())).toEqual(new Set(whole.map(nameOf)));
      const gone = new Set(documents.filter((_one, at) => at % 2 === 0).map(([id]) => id));
      const rest = new Map(
        writeSegment(documents.filter(([id]) => !gone.has(id))).map((row) => [nameOf(row), row]),
      );
      for (const row of whole) {
        const { documents: ids, places } = mergeBlocks(row.field, merged.get(nameOf(row)) ?? []);
        expect([ids, places]).toEqual([row.documents, row.places]);
        const left = dropFromBlock(row.field, row, gone);
        const expected = rest.get(nameOf(row));
        expect(left === null ? undefined : [left.documents, left.places]).toEqual(
          expected && [expected.documents, expected.places],
        );
      }
    }),
    { numRuns: 300 },
  );
});

it("refuses a block that ends inside a number or names a document twice", () => {
  expect(() => decodeIds(Uint8Array.of(1, 0x80))).toThrow("damaged");
  expect(() => decodeDocuments(Uint8Array.of(1, 2, 3))).toThrow("damaged");
  expect(() => decodeIds(Uint8Array.of(5, 0))).toThrow("damaged");
});

import { DatabaseSync } from "node:sqlite";
import { fc } from "@lossless/testkit/properties.ts";
import { afterAll, describe, expect, test } from "vitest";
import {
  analyzeForIndex,
  analyzeQuery,
  buildClues,
  FTS_TOKENIZE,
  holdsClue,
  nameClue,
  readTextTerms,
} from "../../src/text/index.ts";
import type { TextClue } from "../../src/text/index.ts";
import { toMatch } from "@lossless/sqlite/testing";

const TEXTS = [
  "We decided to retry uploads three times because GitStore is flaky.",
  "func (s *GitStore) ListCommitted() error",
  "see src/retry/backoff_policy.ts and PROJ-42",
  "重跑gen-itgc后结果很好",
  "金融科技精英论坛的地点是北京",
  "สวัสดีครับ ยินดีที่ได้รู้จัก",
  "東京タワーに行きました",
  "서울에서 회의를 했습니다",
  "The support of the whole group matters",
  "a support group met yesterday",
  "sessionTranscriptPath := filepath.Join(dir, name)",
  "commit 4f3c2a1b9d8e7f60 fixed it",
];

const database = new DatabaseSync(":memory:");
database.exec(
  `CREATE VIRTUAL TABLE t USING fts5 (words, idents, content = '', contentless_delete = 1, tokenize = "${FTS_TOKENIZE}")`,
);
const insert = database.prepare("INSERT INTO t (rowid, words, idents) VALUES (?, ?, ?)");
TEXTS.forEach((text, row) => {
  const { words, idents } = analyzeForIndex(text);
  insert.run(row, words, idents);
});
const select = database.prepare("SELECT rowid AS row FROM t WHERE t MATCH ? ORDER BY rowid");
afterAll(() => database.close());

const find = (clue: TextClue): number[] => select.all(toMatch(clue)).map(({ row }) => Number(row));

/** What holds all that the question asks for. */
function findComplete(question: string): number[] {
  const required = buildClues(analyzeQuery(question)).filter((clue) => clue.required);
  const found = required.map(({ sought }) => find(sought));
  return (found[0] ?? []).filter((row) => found.every((rows) => rows.includes(row)));
}

describe("testing a text without the index", () => {
  const terms = TEXTS.map(readTextTerms);
  const pieces = TEXTS.flatMap((text) => [text, ...text.split(/\s+/), ...(text.match(/\p{L}{1,4}/gu) ?? [])]);
  const question = fc
    .array(fc.oneof(fc.constantFrom(...pieces), fc.constantFrom("back*", '"support group"', "over")), {
      minLength: 1,
      maxLength: 5,
    })
    .map((words) => words.join(" "));

  test("finds what FTS5 finds, for every clue that a question can become", () => {
    fc.assert(
      fc.property(question, (asked) => {
        const clues = buildClues(analyzeQuery(asked)).map(({ sought }) => sought);
        for (const clue of [...clues, { kind: "all", of: clues.slice(0, 2) } as const]) {
          if (clue.kind === "all" && clue.of.length === 0) continue;
          const found = terms.flatMap((text, row) => (holdsClue(text, clue) ? [row] : []));
          expect(found, nameClue(clue)).toEqual(find(clue));
        }
      }),
      { numRuns: 60 },
    );
  });
});

describe("required clues", () => {
  test.each([
    ["what did we decide about retries?", [0]],
    ["what did we decide about holidays?", []],
    ["decide retries upload", [0]],
    ["gitstore", [0, 1]],
    ["listcommitted", [1]],
    ["ListCommitted", [1]],
    ["list committed", [1]],
    ["backoff_policy", [2]],
    ["policy.ts", [2]],
    ["retry/backoff_policy.ts", [2]],
    ["proj-42", [2]],
    ["gen-itgc", [3]],
    ["重跑", [3]],
    ["论坛 地点", [4]],
    ["ยินดี", [5]],
    ["東京", [6]],
    ["회의", [7]],
    ['"support group"', [9]],
    ["TranscriptPath", [10]],
    ["4f3c2a1b9d8e7f60", [11]],
    ["4f3c2a1", [11]],
    ["nothing-like-this", []],
  ])("%j", (question, rows) => {
    expect(findComplete(question)).toEqual(rows);
  });
});

describe("clues of a question", () => {
  const nasty = fc.string({
    unit: fc.oneof(
      fc.constantFrom(..."\"'()*^:-+{}?[]\\/.@ ", "AND", " OR ", "NOT", "NEAR(", "words", "重", "é"),
      fc.string({ unit: "binary", maxLength: 2 }),
    ),
    maxLength: 30,
  });

  test("are valid for any question", () => {
    fc.assert(
      fc.property(nasty, (question) => {
        for (const { sought } of buildClues(analyzeQuery(question))) find(sought);
      }),
    );
  });

  test("are missing only when nothing can be searched for", () => {
    expect(buildClues(analyzeQuery("?! …"))).toEqual([]);
    expect(buildClues(analyzeQuery("the"))).not.toEqual([]);
  });

  test("find any text again by one of its own words", () => {
    const word = fc.string({
      unit: fc.constantFrom(..."abcxyzABC019_-./é中文日"),
      minLength: 1,
      maxLength: 12,
    });
    fc.assert(
      fc.property(fc.array(word, { minLength: 1, maxLength: 6 }), fc.nat(), (words, pick) => {
        const { words: terms, idents } = analyzeForIndex(words.join(" "));
        const asked = analyzeQuery(words[pick % words.length] as string);
        for (const term of asked.terms) {
          const found =
            ` ${terms} `.includes(` ${term.words.join(" ")} `) || ` ${idents} `.includes(` ${term.ident} `);
          expect(found).toBe(true);
        }
      }),
    );
  });
});

describe("clues", () => {
  test("give every term its weight and say which are required", () => {
    const clues = buildClues(analyzeQuery("GitStore flaky"));
    expect(clues.filter(({ required }) => required).map(({ sought }) => toMatch(sought))).toEqual([
      '(words : "git store" OR idents : "gitstore")',
      '(words : "flaki" OR idents : "flaky")',
    ]);
    expect(clues.map(({ sought }) => toMatch(sought))).toContain('words : NEAR("store" "flaki", 2)');
  });

  test("come each once, and single glyphs do not speak for their neighbours", () => {
    const clues = buildClues(analyzeQuery("论坛论坛"));
    expect(new Set(clues.map(({ sought }) => nameClue(sought))).size).toBe(clues.length);
    expect(clues.every(({ spreads }) => !spreads)).toBe(true);
  });
});

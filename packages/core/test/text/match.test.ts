import { DatabaseSync } from "node:sqlite";
import fc from "fast-check";
import { afterAll, describe, expect, test } from "vitest";
import {
  analyzeForIndex,
  analyzeQuery,
  buildClues,
  buildMatch,
  compileMatch,
  FTS_TOKENIZE,
  readTextTerms,
} from "../../src/text/index.ts";
import type { MatchMode } from "../../src/text/index.ts";

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
const select = database.prepare("SELECT rowid AS row FROM t WHERE t MATCH ? ORDER BY rank");
afterAll(() => database.close());

function search(question: string, mode: MatchMode): number[] {
  const match = buildMatch(analyzeQuery(question), { mode });
  return match === "" ? [] : select.all(match).map(({ row }) => Number(row));
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

  test("finds what FTS5 finds, for every expression that a question can become", () => {
    fc.assert(
      fc.property(question, (asked) => {
        const query = analyzeQuery(asked);
        const clues = buildClues(query).map(({ match }) => match);
        const [first, second] = clues;
        const pair = first && second ? [`(${first}) AND (${second})`] : [];
        for (const match of [...clues, ...pair, buildMatch(query, { mode: "strict" })]) {
          if (match === "") continue;
          const holds = compileMatch(match);
          const found = terms.flatMap((text, row) => (holds(text) ? [row] : []));
          const rows = select.all(match).map(({ row }) => Number(row));
          expect(found, match).toEqual(rows.toSorted((a, b) => a - b));
        }
      }),
      { numRuns: 60 },
    );
  });
});

describe("strict search", () => {
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
    expect(search(question, "strict").toSorted((a, b) => a - b)).toEqual(rows);
  });
});

describe("relaxed search", () => {
  test.each([
    ["what did we decide about retries?", 0],
    ["which forum is in Beijing: 论坛在北京吗？", 4],
    ["where did the support group meet", 9],
  ])("puts the best first for %j", (question, row) => {
    expect(search(question, "relaxed")[0]).toBe(row);
  });
});

describe("match expressions", () => {
  const nasty = fc.string({
    unit: fc.oneof(
      fc.constantFrom(..."\"'()*^:-+{}?[]\\/.@ ", "AND", " OR ", "NOT", "NEAR(", "words", "重", "é"),
      fc.string({ unit: "binary", maxLength: 2 }),
    ),
    maxLength: 30,
  });

  test("are valid for any question", () => {
    fc.assert(
      fc.property(nasty, fc.constantFrom<MatchMode>("strict", "relaxed"), (question, mode) => {
        search(question, mode);
        for (const { match } of buildClues(analyzeQuery(question))) select.all(match);
      }),
    );
  });

  test("are empty only when nothing can be searched for", () => {
    expect(buildMatch(analyzeQuery("?! …"), { mode: "relaxed" })).toBe("");
    expect(buildMatch(analyzeQuery("the"), { mode: "strict" })).not.toBe("");
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
    expect(clues.filter(({ required }) => required).map(({ match }) => match)).toEqual([
      '(words : "git store" OR idents : "gitstore")',
      '(words : "flaki" OR idents : "flaky")',
    ]);
    expect(clues.map(({ match }) => match)).toContain('words : NEAR("store" "flaki", 2)');
  });

  test("come each once, and single glyphs do not speak for their neighbours", () => {
    const clues = buildClues(analyzeQuery("论坛论坛"));
    expect(new Set(clues.map(({ match }) => match)).size).toBe(clues.length);
    expect(clues.every(({ spreads }) => !spreads)).toBe(true);
  });
});

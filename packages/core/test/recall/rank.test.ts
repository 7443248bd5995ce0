import { fc } from "@lossless/testkit/properties.ts";
import { describe, expect, test } from "vitest";
import { promoteVerbatim, rankCandidates, selectSeeds } from "../../src/recall/rank.ts";
import type { FoundClue, Candidate } from "../../src/recall/rank.ts";

const TOTAL = 100;

function clue(ids: number[], more: Partial<FoundClue> = {}): FoundClue {
  return { weight: 1, required: true, spreads: true, ids, frequency: ids.length, ...more };
}

/** Twenty short messages in two sessions. */
const PLACES: Candidate[] = Array.from({ length: 20 }, (_, id) => ({
  id,
  group: id < 10 ? 1 : 2,
  position: id,
  words: 20,
}));

function order(clues: FoundClue[], candidates: readonly Candidate[] = PLACES, needsAll = false): number[] {
  return rankCandidates({ clues, needsAll }, candidates, TOTAL).map(({ id }) => id);
}

describe("ranking", () => {
  test("puts a document with a rare clue before one with a common clue", () => {
    expect(order([clue([2], { frequency: 40 }), clue([15])])[0]).toBe(15);
  });

  test("puts more clues first", () => {
    expect(order([clue([2, 15]), clue([15, 17]), clue([15])])[0]).toBe(15);
  });

  test("lets an answer without the words follow its question", () => {
    const ranked = order([clue([4]), clue([4])]);
    expect(ranked.slice(0, 3)).toEqual([4, 3, 5]);
    expect(ranked).not.toContain(15);
  });

  test("gives who answers a question more of its clues than other neighbours get", () => {
    const asking = new Set([4]);
    const ranked = rankCandidates({ clues: [clue([4]), clue([4])], needsAll: false, asking }, PLACES, TOTAL);
    expect(ranked.slice(0, 3).map(({ id }) => id)).toEqual([4, 5, 3]);
  });

  test("lets what others say count less than the same from who is meant", () => {
    const ranked = rankCandidates(
      { clues: [clue([2, 15])], needsAll: false, others: new Set([2]) },
      PLACES,
      TOTAL,
    );
    expect(ranked[0]?.id).toBe(15);
  });

  test("puts the first to say something before others of equal worth, whatever their ids", () => {
    const candidates: Candidate[] = [
      { id: 7, group: 1, position: 50, words: 20, createdAt: 1_000 },
      { id: 3, group: 2, position: 50, words: 20, createdAt: 2_000 },
      { id: 9, group: 2, position: 10, words: 20, createdAt: 2_000 },
    ];
    expect(order([clue([3, 7, 9], { spreads: false })], candidates)).toEqual([7, 9, 3]);
  });

  test("does not reach into another session", () => {
    expect(order([clue([9])])).not.toContain(10);
  });

  test("keeps clues that do not spread where they stand", () => {
    const ranked = rankCandidates({ clues: [clue([4], { spreads: false })], needsAll: false }, PLACES, TOTAL);
    const scoreOf = (id: number): number => ranked.find((document) => document.id === id)?.score ?? 0;
    expect(scoreOf(3)).toBe(scoreOf(8));
  });

  test("prefers a short document to a long one, and short ones equally", () => {
    const candidates = PLACES.map((candidate) =>
      candidate.id === 2 ? { ...candidate, words: 5000 } : candidate,
    );
    expect(order([clue([2, 15])], candidates)[0]).toBe(15);
    const [one, other] = rankCandidates(
      { clues: [clue([2, 15])], needsAll: false },
      PLACES.map((candidate) => ({ ...candidate, words: candidate.id === 2 ? 3 : 70 })),
      TOTAL,
    );
    expect(one?.score).toBe(other?.score);
  });

  test("puts complete documents first only when all is needed", () => {
    const clues = [
      clue([2, 15], { frequency: 60 }),
      clue([2], { frequency: 60 }),
      clue([15], { required: false, weight: 5 }),
    ];
    expect(order(clues, PLACES, false)[0]).toBe(15);
    expect(order(clues, PLACES, true)[0]).toBe(2);
  });

  test("answers each of several questions among the first", () => {
    const first = [clue([2]), clue([2]), clue([2, 3])];
    const second = [clue([15])];
    const ranked = rankCandidates(
      { clues: [...first, ...second], parts: [first, second], needsAll: false },
      PLACES,
      TOTAL,
    );
    expect(ranked.slice(0, 2).map(({ id }) => id)).toEqual([2, 15]);
  });

  test("moves documents with the exact spelling up, within their tier", () => {
    const ranked = [1, 2, 3, 4].map((id) => ({ id, score: 10 - id, complete: id < 4 }));
    const share = (id: number): number => (id >= 3 ? 1 : 0);
    expect(promoteVerbatim(ranked, share, { needsAll: true, limit: 4 }).map(({ id }) => id)).toEqual([
      3, 1, 2, 4,
    ]);
    expect(promoteVerbatim(ranked, share, { needsAll: false, limit: 3 }).map(({ id }) => id)).toEqual([
      3, 1, 2, 4,
    ]);
  });

  test("selects as seeds the documents with the most and rarest clues", () => {
    expect(selectSeeds([clue([1, 2, 3], { frequency: 50 }), clue([3])], TOTAL, 1)).toEqual({
      ids: [3],
      tied: { ids: [], count: 0 },
    });
    expect(selectSeeds([clue([1, 2, 3]), clue([2])], TOTAL, 2)).toEqual({
      ids: [2],
      tied: { ids: [3, 1], count: 1 },
    });
  });

  test("selects the same seeds near each other and far apart, and leaves out none of very many equals", () => {
    const apart = [1, 2, 3].map((id) => id * 1e9);
    expect(selectSeeds([clue(apart), clue([2e9])], TOTAL, 2)).toEqual({
      ids: [2e9],
      tied: { ids: [3e9, 1e9], count: 1 },
    });
    const many = Array.from({ length: 6_000 }, (_, at) => at + 1);
    const { tied } = selectSeeds([clue(many)], 100_000, 400);
    expect([tied.count, tied.ids.length]).toEqual([400, 6_000]);
  });

  test("ranks only given places, each once, best first, for any input", () => {
    const anyClue = fc.record({
      weight: fc.double({ min: 0, max: 3, noNaN: true }),
      required: fc.boolean(),
      spreads: fc.boolean(),
      ids: fc.uniqueArray(fc.nat(30), { maxLength: 10 }),
      frequency: fc.nat(120),
    });
    fc.assert(
      fc.property(fc.array(anyClue, { maxLength: 6 }), fc.boolean(), (clues, needsAll) => {
        const ranked = rankCandidates({ clues, needsAll }, PLACES, TOTAL);
        expect(new Set(ranked.map(({ id }) => id)).size).toBe(ranked.length);
        expect(ranked.every(({ id, score }) => id < 20 && Number.isFinite(score) && score > 0)).toBe(true);
        if (!needsAll)
          expect(ranked.map(({ score }) => score)).toEqual(
            ranked.map(({ score }) => score).toSorted((a, b) => b - a),
          );
      }),
    );
  });
});

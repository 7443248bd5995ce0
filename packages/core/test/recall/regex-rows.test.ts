/**
 * What a regular expression looks at, as a count of the texts that are read: the index and the spelled words narrow it, a full page ends it.
 * No clock: a counter tells whether the way that saves time was taken.
 */
import { openEngine } from "lossless-claw";
import type { Engine } from "@lossless/core";
import { makeTemporaryFolder } from "@lossless/testkit";
import { afterAll, beforeAll, beforeEach, expect, test, vi } from "vitest";
import { SqliteStore } from "@lossless/sqlite";

const MESSAGES = 3_000;
const session = { key: "agent:main:main", id: "s1", owner: "main" };
const folder = makeTemporaryFolder();
const database = folder.file("lcm.db");
let engine: Engine;
let rows = 0;

const textOf = (n: number): string =>
  [
    `It was really great to see PROJ-${n} in step ${n}.`,
    n === 500 ? "The file src/great/really.ts has great_really and PROJ-42420 in it." : "",
    n === 900 ? "An ingreat_reallyness hides the name inside a word." : "",
    n % 3 === 0 ? "Marked: everyThird." : "",
  ].join(" ");

beforeAll(async () => {
  const writer = await openEngine({ database, thread: false });
  for (let at = 0; at < MESSAGES; at += 500)
    await writer.ingest({
      session,
      messages: Array.from({ length: 500 }, (_, i) => ({
        eventId: `e${at + i}`,
        createdAt: 1_700_000_000_000 + (at + i) * 1_000,
        message: { role: "user", content: textOf(at + i) },
      })),
    });
  await writer.close();
  const read = SqliteStore.prototype.readTextsWithin;
  vi.spyOn(SqliteStore.prototype, "readTextsWithin").mockImplementation(async function (
    this: SqliteStore,
    ...args
  ) {
    const texts = await read.apply(this, args);
    rows += texts.length;
    return texts;
  });
});
beforeEach(async () => {
  engine = await openEngine({ database, thread: false });
  rows = 0;
  return () => engine.close();
});
afterAll(() => {
  vi.restoreAllMocks();
  folder[Symbol.dispose]();
});

async function find(
  pattern: string,
  limit = 20,
): Promise<{ ids: string[]; total: number; isTotalExact: boolean }> {
  const { hits, total, isTotalExact } = await engine.grep({ session, pattern, scope: "messages", limit });
  return { ids: hits.flatMap((hit) => ("eventId" in hit ? hit.eventId : [])), total, isTotalExact };
}

/** The block of words that is being filled has to be read. */
const UNFILLED = MESSAGES % 512;

test.each([
  ["PROJ-42420\\b", ["e500"], UNFILLED],
  ["src/great/really\\.ts", ["e500"], UNFILLED],
  ["great_really", ["e900", "e500"], UNFILLED],
  ["see PROJ-77 in", ["e77"], UNFILLED],
  ["reallyness", ["e900"], UNFILLED],
])("%s looks at the messages that can hold its literal", async (pattern, ids, most) => {
  expect(await find(pattern)).toEqual({ ids, total: ids.length, isTotalExact: true });
  expect(rows).toBeLessThan(most + 10);
  expect(rows).toBeLessThan(MESSAGES / 2);
});

test("a full page ends the search, and the total says at least", async () => {
  const newest = Array.from({ length: 20 }, (_, n) => `e${MESSAGES - 1 - n}`);
  const found = await find("PROJ");
  expect(found.ids).toEqual(newest);
  expect(found.isTotalExact).toBe(false);
  expect(found.total).toBeGreaterThan(20);
  expect(rows).toBeLessThanOrEqual(250);
});

test("a page that is not full sees everything, once", async () => {
  const third = Array.from({ length: MESSAGES / 3 }, (_, n) => `e${MESSAGES - 3 * (n + 1)}`);
  expect((await find("[e]veryThir[d]", 200)).ids).toEqual(third.slice(0, 200));
  rows = 0;
  expect((await find("[!][!]+[?]")).ids).toEqual([]);
  expect(rows).toBeLessThan(MESSAGES);
  rows = 0;
  expect((await find("[!][!]+[#]")).ids).toEqual([]);
  expect(rows).toBe(0);
});

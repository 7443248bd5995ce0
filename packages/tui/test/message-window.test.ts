/** The window over the messages of a conversation: bounded, gapless, and in the right place, however one moves. */
import { openEngine } from "lossless-claw";
import type { Engine } from "@lossless/core";
import { makeTemporaryFolder } from "@lossless/testkit";
import { fc } from "@lossless/testkit/properties.ts";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Move } from "../src/keys.ts";
import { KEPT, MessageWindow, PAGE } from "../src/message-window.ts";
import { MAIN, START } from "./stage.ts";

const COUNT = 4_000;
const HOUR = 3_600_000;
const folder = makeTemporaryFolder();
let engine: Engine;

beforeAll(async () => {
  engine = await openEngine({ database: folder.file("lcm.db"), thread: false });
  const messages = Array.from({ length: COUNT }, (_, at) => ({
    eventId: `e${at}`,
    message: { role: "user", content: `number ${at}`, timestamp: START + at * HOUR },
  }));
  for (let at = 0; at < COUNT; at += 500)
    await engine.ingest({ session: MAIN, messages: messages.slice(at, at + 500) });
});

afterAll(async () => {
  await engine.close();
  folder[Symbol.dispose]();
});

const make = (): MessageWindow => new MessageWindow(engine, {}, 1);
/** Message ids count from 1. */
const chosen = (window: MessageWindow): number => (window.selected?.row.messageId ?? 0) - 1;

function expectWhole(window: MessageWindow): void {
  const ids = window.rows.map(({ row }) => row.messageId);
  expect(ids.length).toBeLessThanOrEqual(KEPT);
  expect(ids).toEqual(Array.from({ length: ids.length }, (_, at) => (ids[0] ?? 0) + at));
  if (window.isAtStart) expect(ids[0]).toBe(1);
  if (window.isAtEnd) expect(ids.at(-1)).toBe(COUNT);
}

describe("a window over four thousand messages", () => {
  test("any moves lead where they would in a list of all of them", async () => {
    const move: fc.Arbitrary<Move> = fc.oneof(
      { weight: 8, arbitrary: fc.integer({ min: -90, max: 90 }).map((rows): Move => ({ kind: "by", rows })) },
      { weight: 1, arbitrary: fc.constant<Move>({ kind: "first" }) },
      { weight: 1, arbitrary: fc.constant<Move>({ kind: "last" }) },
    );
    await fc.assert(
      fc.asyncProperty(fc.array(move, { maxLength: 60 }), async (moves) => {
        const window = make();
        await window.openEnd(20);
        let expected = COUNT - 1;
        for (const step of moves) {
          await window.move(step, 20);
          if (step.kind === "by") expected = Math.max(0, Math.min(COUNT - 1, expected + step.rows));
          else expected = step.kind === "first" ? 0 : COUNT - 1;
          expect(chosen(window)).toBe(expected);
          expect(window.cursor.selected - window.cursor.top).toBeLessThan(20);
        }
        expectWhole(window);
      }),
      { numRuns: 30 },
    );
  });

  test("paging through all of it never keeps more than a bounded number of rows", async () => {
    const window = make();
    await window.openStart(20);
    for (let at = 0; at < COUNT / 100; at++) {
      await window.move({ kind: "by", rows: 100 }, 20);
      expectWhole(window);
    }
    expect(chosen(window)).toBe(COUNT - 1);
    expect(window.isFollowing).toBe(true);
  });

  test("goes to a time: the first message at or after it", async () => {
    const window = make();
    for (const [at, wanted] of [
      [START + 1_234 * HOUR, 1_234],
      [START + 1_234 * HOUR + 1, 1_235],
      [START - HOUR, 0],
      [START + 10 * COUNT * HOUR, COUNT - 1],
    ] as const) {
      await window.openTime(at, 20);
      expect(chosen(window)).toBe(wanted);
      expectWhole(window);
    }
  });

  test("opens around a place without reading what lies between", async () => {
    const window = make();
    const message = await engine.readMessage({ messageId: 2_001 });
    if (message === null) throw new Error("it is there");
    await window.openAt(message.row, 20);
    expect(chosen(window)).toBe(2_000);
    expect(window.rows.length).toBe(2 * PAGE);
    expect(window.cursor.selected - window.cursor.top).toBe(10);
  });
});

test("a changed message is listed once, at its first place", async () => {
  using own = makeTemporaryFolder();
  const archive = await openEngine({ database: own.file("lcm.db"), thread: false });
  const store = (content: string): Promise<unknown> =>
    archive.ingest({ session: MAIN, messages: [{ eventId: "a", message: { role: "user", content } }] });
  await store("first words");
  await archive.ingest({
    session: MAIN,
    messages: [{ eventId: "b", message: { role: "user", content: "other" } }],
  });
  await store("changed words");
  const window = new MessageWindow(archive, {}, 1);
  await window.openEnd(10);
  expect(window.rows.map(({ row }) => [row.eventId, row.newest !== null])).toEqual([
    ["a", true],
    ["b", false],
  ]);
  await archive.close();
});

test("an empty conversation opens, and takes the first message that comes", async () => {
  using own = makeTemporaryFolder();
  const archive = await openEngine({ database: own.file("lcm.db"), thread: false });
  const window = new MessageWindow(archive, {}, 1);
  await window.openEnd(10);
  await window.move({ kind: "by", rows: 5 }, 10);
  expect(window.selected).toBeUndefined();
  await archive.ingest({
    session: MAIN,
    messages: [{ eventId: "a", message: { role: "user", content: "x" } }],
  });
  await window.reload(10);
  expect(window.rows.length).toBe(1);
  await archive.close();
});

test("lines of the host are listed only on request, or when somebody came for one", async () => {
  using other = makeTemporaryFolder();
  const small = await openEngine({ database: other.file("lcm.db"), thread: false });
  const messages = Array.from({ length: 800 }, (_, at) => ({
    eventId: `h${at}`,
    message:
      at % 200 < 199 ? { type: "model_change", modelId: `m${at}` } : { role: "user", content: `word ${at}` },
  }));
  await small.ingest({ session: MAIN, messages });
  const window = new MessageWindow(small, {}, 1);
  await window.openEnd(20);
  await window.move({ kind: "first" }, 20);
  expect(window.rows.map(({ row }) => row.messageId)).toEqual([200, 400, 600, 800]);
  const line = await small.readMessage({ messageId: 300 });
  await window.openAt(line?.row ?? { position: 0, seq: 0 }, 20);
  expect(window.rows.map(({ row }) => row.messageId)).toEqual([200, 300, 400, 600, 800]);
  expect(window.selected?.row.messageId).toBe(300);
  window.showsHousekeeping = true;
  await window.reload(20);
  expect(window.rows.length).toBeGreaterThan(100);
  expect(window.selected?.row.messageId).toBe(300);
  await small.close();
});

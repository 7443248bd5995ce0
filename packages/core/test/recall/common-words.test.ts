/** Words too common to be listed whole: they count in every document that is ranked, and are looked up only where it is not known yet whether they stand there. */
import { openMemoryStore } from "@lossless/testkit/memory-store.ts";
import { expect, test } from "vitest";
import { createLocalEngine } from "../../src/engine/local-engine.ts";
import { resolveSettings } from "../../src/index.ts";
import { deriveMessage } from "../../src/ingest/prepare.ts";
import { findDocuments } from "../../src/recall/find-documents.ts";
import type { FindRequest } from "../../src/recall/find-documents.ts";
import { OwnWords } from "../../src/recall/own-words.ts";
import { analyzeQuery } from "../../src/text/index.ts";
import { main, say } from "./archive.ts";

const MESSAGES = 60;
/** The newest ten of a word are listed. */
const COMMON_ABOVE = 10;

async function search(
  pattern: string,
  options: Pick<FindRequest, "newest"> = {},
  withPhrase: readonly number[] = [5],
) {
  const store = openMemoryStore(deriveMessage);
  const engine = createLocalEngine({ store, settings: resolveSettings({ env: {} }).settings });
  const messages = Array.from({ length: MESSAGES }, (_, at) =>
    say(
      `e${at}`,
      "user",
      withPhrase.includes(at)
        ? "the pump runs, and the zeppelin lands"
        : "the runs of a pump, see runs_pump.ts",
      at,
    ),
  );
  await engine.ingest({ session: main, messages });
  await engine.flushIndex();
  const tested: number[][] = [];
  let listed = 0;
  const watched = {
    ...store,
    findClues: (request: Parameters<typeof store.findClues>[0]) => {
      listed += 1;
      return store.findClues(request);
    },
    testClues: (request: Parameters<typeof store.testClues>[0]) => {
      tested.push([...request.ids]);
      return store.testClues(request);
    },
  };
  const find = (commonAbove: number) =>
    findDocuments(new OwnWords(watched, {}), {
      kind: "message",
      query: analyzeQuery(pattern),
      scope: {},
      commonAbove,
      ...options,
    });
  const few = await find(COMMON_ABOVE);
  const lists = listed;
  const all = await find(1_000);
  await engine.close();
  return { few, all, tested, lists };
}

test("a common word is looked up in the old documents that a rare one brings in", async () => {
  const { few, all, tested } = await search("pump zeppelin");
  expect(few.ranked[0]).toEqual(all.ranked[0]);
  expect(few.ranked[0]).toMatchObject({ id: 6, complete: true });
  expect(tested).toHaveLength(1);
  expect(Math.max(...(tested[0] ?? []))).toBeLessThan(MESSAGES - COMMON_ABOVE);
});

test("of a common word alone hardly anything is looked up: its newest documents are listed", async () => {
  const { few, tested } = await search("pump");
  expect(few.isExact).toBe(false);
  // Neighbours of the oldest document that is listed.
  expect(tested.flat().length).toBeLessThan(COMMON_ABOVE);
});

test("of a phrase that is listed whole, its common words are not looked up, and all that hold it are complete", async () => {
  const { few, all, tested } = await search('"pump runs"');
  expect(few.complete).toEqual([6]);
  expect(few.complete).toEqual(all.complete);
  expect(tested).toEqual([]);
});

test("an identifier that is common is looked for by itself, not in pairs with the words it is made of", async () => {
  const { few, tested, lists } = await search("runs_pump.ts");
  expect([lists, tested]).toEqual([1, []]);
  expect(few.complete.slice(0, COMMON_ABOVE)).toEqual(
    Array.from({ length: COMMON_ABOVE }, (_, at) => MESSAGES - at),
  );
});

test("common words are looked up nowhere else where the newest documents that hold all of them are wanted, and known", async () => {
  const { few, tested } = await search("pump runs", { newest: 10 });
  expect(tested).toEqual([]);
  expect(few.complete.slice(0, COMMON_ABOVE)).toEqual(
    Array.from({ length: COMMON_ABOVE }, (_, at) => MESSAGES - at),
  );
  expect((await search("pump runs")).tested).not.toEqual([]);
  // Too few of them hold a rare word for that.
  expect((await search("pump zeppelin", { newest: 10 })).tested).not.toEqual([]);
});

test("where a phrase is listed whole, old and new documents that hold it are ranked alike", async () => {
  const { few, all } = await search('"pump runs"', {}, [5, 30, MESSAGES - 2]);
  const order = ({ ranked }: typeof few) => ranked.flatMap(({ id, complete }) => (complete ? id : []));
  expect(order(few)).toEqual([6, 31, MESSAGES - 1]);
  expect(order(few)).toEqual(order(all));
});

test("the newest messages with a word are found also after an import of thousands of older ones", async () => {
  const store = openMemoryStore(deriveMessage);
  const engine = createLocalEngine({ store, settings: resolveSettings({ env: {} }).settings });
  const old = Array.from({ length: 5_600 }, (_, at) => say(`old ${at}`, "user", "the pump runs", at));
  await engine.ingest({ session: main, messages: [say("new", "user", "the pump stops", 10_000)] });
  await engine.ingest({ session: { ...main, key: "agent:main:imported", id: "imported" }, messages: old });
  const { hits } = await engine.grep({ pattern: "pump", mode: "full_text", limit: 1 });
  await engine.close();
  expect(hits).toMatchObject([{ eventId: "new" }]);
});

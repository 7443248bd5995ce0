/** Keywords that many messages hold: the newest come first, on every page, and no page reads the times of messages that cannot be on it. */
import { openMemoryStore } from "@lossless/testkit/memory-store.ts";
import { expect, test } from "vitest";
import { createLocalEngine } from "../../src/engine/local-engine.ts";
import { resolveSettings } from "../../src/index.ts";
import { deriveMessage } from "../../src/ingest/prepare.ts";
import { grepFullText } from "../../src/recall/grep.ts";
import type { GrepRequest } from "../../src/recall/grep.ts";
import { main, say } from "./archive.ts";

/** More than are looked at closely. */
const MESSAGES = 450;
const REACH = { scope: {}, owner: undefined, grant: null, label: "" };

/** Messages that arrived in another order than they were written. */
const hourOf = (at: number): number => (at * 7_919) % MESSAGES;

async function openWatched() {
  const store = openMemoryStore(deriveMessage);
  const engine = createLocalEngine({ store, settings: resolveSettings({ env: {} }).settings });
  const messages = Array.from({ length: MESSAGES }, (_, at) =>
    say(`hour ${hourOf(at)}`, "user", `the greenhouse pump ${at}`, hourOf(at)),
  );
  await engine.ingest({ session: main, messages });
  await engine.flushIndex();
  const dated: number[] = [];
  const watched = {
    ...store,
    readTimes: (request: Parameters<typeof store.readTimes>[0]) => {
      dated.push(request.ids.length);
      return store.readTimes(request);
    },
  };
  const search = (request: Partial<GrepRequest>) =>
    grepFullText(watched, { pattern: "pump", scope: "messages", ...request }, REACH, { now: 0 });
  return { search, dated };
}

const eventsOf = ({ hits }: Awaited<ReturnType<typeof grepFullText>>): string[] =>
  hits.map((hit) => (hit.type === "message" ? hit.eventId : hit.type));

const NEWEST = Array.from({ length: MESSAGES }, (_, at) => `hour ${MESSAGES - 1 - at}`);

for (const pattern of ["pump", '"greenhouse pump"'])
  test(`a page of ${pattern} that the newest fill reads no other times, and says how many there are`, async () => {
    const { search, dated } = await openWatched();
    const page = await search({ pattern, limit: 10 });
    expect(eventsOf(page)).toEqual(NEWEST.slice(0, 10));
    expect(page).toMatchObject({ rule: "strict", total: MESSAGES, isTotalExact: true, next: "at_10" });
    expect(dated).toEqual([]);
  });

for (const [pattern, read] of [
  ["pump", []],
  // Only the last page goes beyond those that are looked at closely.
  ['"greenhouse pump"', [50]],
] as const)
  test(`all pages of ${pattern} together have every message, the newest first`, async () => {
    const { search, dated } = await openWatched();
    const events: string[] = [];
    let after: string | null = "at_0";
    while (after !== null) {
      const page = await search({ pattern, limit: 150, after });
      events.push(...eventsOf(page));
      after = page.next;
    }
    expect(events).toEqual(NEWEST);
    expect(dated).toEqual(read);
  });

test("by relevance, messages that were not ranked are read for the page that shows them", async () => {
  const { search, dated } = await openWatched();
  const first = await search({ sort: "relevance", limit: 200 });
  expect([first.hits.length, first.next, dated]).toEqual([200, "at_200", []]);
  const last = await search({ sort: "relevance", limit: 200, after: "at_400" });
  expect([last.hits.length, last.next, dated]).toEqual([50, null, [50]]);
});

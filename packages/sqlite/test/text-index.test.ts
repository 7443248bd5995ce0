/** The text index of SQLite finds what a scan over the texts finds, for random texts, clues and scopes. */
import { makeEvent, makeTemporaryFolder, ScanTextIndex } from "@lossless/testkit";
import { fc } from "@lossless/testkit/properties.ts";
import { afterAll, beforeAll, expect, test } from "vitest";
import { SqliteStore } from "../src/sqlite-store.ts";
import { readTextTerms } from "@lossless/core/ports";
import { analyzeQuery, buildClues, readLiteralClue } from "@lossless/core/testing";
import type { TextClue } from "@lossless/core/ports";

const PIECES = [
  "retry",
  "retries",
  "uploads",
  "GitStore",
  "gitstore",
  "src/retry/backoff_policy.ts",
  "PROJ-42",
  "PROJ-4242",
  "don't",
  "it's",
  "重跑gen-itgc后",
  "論壇在北京",
  "東京タワー",
  "회의를",
  "ยินดี",
  "4f3c2a1b9d8e7f60",
  "4f3c2a1",
  "sessionTranscriptPath",
  "Straße",
  "v1.2.3",
  "the",
  "support",
  "group",
  "e\u0301clair",
  "💥",
  "42",
  "a_b",
  "URLs_x",
];
const SESSIONS = [
  { key: "agent:main:a", id: "a", owner: "main" },
  { key: "agent:main:b", id: "b", owner: "main" },
  { key: "agent:other:c", id: "c", owner: "other" },
];
const ROLES = ["user", "assistant"];

const folder = makeTemporaryFolder();
const scanned = new ScanTextIndex();
const texts: string[] = [];
const conversations: number[] = [];
let store: SqliteStore;

beforeAll(async () => {
  store = new SqliteStore({ path: folder.file("lcm.db"), filesDir: folder.file("files"), create: true });
  const pieces = fc
    .array(fc.constantFrom(...PIECES), { minLength: 1, maxLength: 9 })
    .map((words) => words.join(" "));
  for (const [at, session] of SESSIONS.entries()) {
    const said = fc.sample(pieces, { numRuns: 60, seed: at + 1 });
    const events = said.map((text, n) => makeEvent(`e${n}`, { role: ROLES[n % 2], content: text }));
    const { conversationId, results } = await store.append({ session, events, now: 1 });
    conversations.push(conversationId);
    for (const [n, text] of said.entries()) {
      const row = (await store.readMessage(results[n]?.messageId ?? 0))?.row;
      if (row === undefined) throw new Error("a message is missing");
      scanned.add("message", { ...row, id: row.messageId, owner: session.owner, text });
      texts.push(text);
    }
    // A revision and a removal, so that not everything in the index is current.
    const revised = await store.append({
      session,
      events: [makeEvent("e0", { role: "user", content: "support v1.2.3" })],
      now: 2,
    });
    const row = (await store.readMessage(revised.results[0]?.messageId ?? 0))?.row;
    scanned.remove("message", results[0]?.messageId ?? 0);
    if (row)
      scanned.add("message", { ...row, id: row.messageId, owner: session.owner, text: "support v1.2.3" });
  }
  await store.flushIndex();
});

afterAll(async () => {
  await store.close();
  folder[Symbol.dispose]();
});

const question = fc.array(
  fc.oneof(fc.constantFrom(...PIECES), fc.constantFrom('"support group"', "nowhere")),
  {
    minLength: 1,
    maxLength: 4,
  },
);
const word = fc.constantFrom(...PIECES.flatMap((text) => readTextTerms(text).words));
const single: fc.Arbitrary<TextClue> = fc.oneof(
  fc.array(word, { minLength: 1, maxLength: 2 }).map((words): TextClue => ({ kind: "phrase", words })),
  word.map((text): TextClue => ({ kind: "first", word: text })),
  fc
    .tuple(word, fc.nat(4))
    .map(([text, cut]): TextClue => ({ kind: "prefix", words: [[...text].slice(0, cut + 1).join("")] })),
  fc
    .tuple(word, word, fc.nat(3))
    .map(([a, b, between]): TextClue => ({ kind: "near", words: [a, b], between })),
  fc
    .constantFrom(...PIECES)
    .map((text): TextClue => ({ kind: "identifier", identifier: text.toLowerCase() })),
);
const clues = fc.oneof(
  question.map((words) => buildClues(analyzeQuery(words.join(" "))).map(({ sought }) => sought)),
  fc
    .constantFrom(...PIECES)
    .map((text) => [readLiteralClue(text)?.clue ?? { kind: "phrase" as const, words: ["none"] }]),
  fc
    .tuple(fc.constantFrom("any", "all"), fc.array(single, { minLength: 1, maxLength: 3 }))
    .map(([kind, of]): TextClue[] => [{ kind: kind === "any" ? "any" : "all", of }, ...of]),
);

test("SQLite lists what a scan lists", async () => {
  const scope = fc.record(
    {
      owner: fc.constantFrom("main", "other", "nobody"),
      conversationIds: fc.subarray([0, 1, 2]).map((chosen) => chosen.map((at) => conversations[at] ?? 0)),
      role: fc.constantFrom(...ROLES),
    },
    { requiredKeys: [] },
  );
  await fc.assert(
    fc.asyncProperty(clues, scope, fc.constantFrom(3, 1_000), async (sought, where, limit) => {
      const request = { kind: "message", clues: sought, scope: where, limit } as const;
      const [found, expected] = [await store.findClues(request), await scanned.findClues(request)];
      const lists = (answer: typeof found): unknown =>
        answer.listings.map(({ ids, listedFrom }) => [ids, listedFrom]);
      if (limit > texts.length) expect(lists(found)).toEqual(lists(expected));
      else
        for (const [at, { ids }] of found.listings.entries())
          expect(expected.listings[at]?.ids).toEqual(expect.arrayContaining([...ids]));
      const ids = [...new Set(expected.listings.flatMap((listing) => [...listing.ids]))];
      const tests = { kind: "message", clues: sought, ids } as const;
      const sorted = (lists: number[][]): number[][] => lists.map((list) => list.toSorted((a, b) => a - b));
      expect(sorted(await store.testClues(tests))).toEqual(sorted(await scanned.testClues(tests)));
    }),
    { numRuns: 150 },
  );
});

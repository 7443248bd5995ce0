/**
 * A regular expression finds what reading every text finds: with words of the literal inside longer ones, in any order of times, whether the
 * page is full within the newest messages or not.
 */
import { makeRandom } from "@lossless/testkit";
import { rounds } from "@lossless/testkit/rounds.ts";
import { makeTemporaryFolder } from "@lossless/testkit/temporary.ts";
import { openEngine, openStore } from "lossless-claw";
import { expect, test } from "vitest";
import { deriveMessage } from "../../src/ingest/prepare.ts";
import { grepRegex } from "../../src/recall/regex.ts";
import { RegexScanner } from "../../src/recall/regex-scanner.ts";

const MESSAGES = 1_700;
/** Small beside the messages, as the defaults are in a large archive. */
const FIRST = { part: 300, listed: 3, few: 1 };
const session = { key: "agent:main:main", id: "s1", owner: "main" };
const PIECES = [
  "great",
  "really",
  "ness",
  "in",
  "un",
  "Parse",
  "config",
  "URLs",
  "didn",
  "'t",
  "42",
  "2",
  "s",
  "N",
];
const JOINERS = ["_", "/", "-", ".", " ", " ", " ", "", "", "é", "→"];

test("a regular expression finds what reading every text finds", async () => {
  using folder = makeTemporaryFolder();
  const database = folder.file("lcm.db");
  const random = makeRandom(7);
  const texts = Array.from({ length: MESSAGES }, () =>
    Array.from({ length: 3 + random.below(6) }, () => random.pick(PIECES) + random.pick(JOINERS)).join(""),
  );
  // Every time once, and not in the order of arrival.
  const timeOf = (n: number): number => 1_700_000_000_000 + ((n * 613) % MESSAGES) * 1_000;
  const engine = await openEngine({ database, thread: false });
  await engine.ingest({
    session,
    messages: texts.map((content, n) => ({
      eventId: `e${n}`,
      createdAt: timeOf(n),
      message: { role: "user", content },
    })),
  });
  await engine.close();

  const store = await openStore(database, { readOnly: true, derive: deriveMessage });
  const scanner = new RegexScanner();
  const reach = { scope: {}, owner: undefined, grant: null, label: "everything" };
  try {
    for (let round = 0; round < rounds({ test: 60, soak: 3_000 }); round++) {
      const text = random.pick(texts);
      const from = random.below(text.length);
      const literal = text.slice(from, from + 3 + random.below(14)).trim();
      if (literal === "") continue;
      const pattern = literal.replaceAll(/[.\\/-]/g, "\\$&") + random.pick(["", "", "\\b", "\\w*$"]);
      const limit = random.pick([5, 50, 200]);
      const expected = texts
        .map((content, n) => ({ content, eventId: `e${n}`, at: timeOf(n) }))
        .filter(({ content }) => new RegExp(pattern).test(content))
        .sort((a, b) => b.at - a.at)
        .map(({ eventId }) => eventId);
      const request = { pattern, scope: "messages", limit } as const;
      const found = await grepRegex(store, scanner, request, reach, Date.now(), FIRST);
      expect(
        found.hits.map((hit) => ("eventId" in hit ? hit.eventId : "")),
        pattern,
      ).toEqual(expected.slice(0, limit));
      if (found.isTotalExact) expect(found.total, pattern).toBe(expected.length);
      else expect(expected.length, pattern).toBeGreaterThan(limit);
    }
  } finally {
    await scanner.close();
    await store.close();
  }
});

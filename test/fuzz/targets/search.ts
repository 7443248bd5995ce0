/** Search input of people and agents: words, quotes, regular expressions. There is always a result, and its hits exist. */
import { analyzeQuery, buildClues } from "@lossless/core/testing";
import { openMemoryEngine } from "../memory-engine.ts";
import { accept, hold } from "../target.ts";
import type { Target } from "../target.ts";

const TEXTS = [
  "We retry uploads three times with exponential backoff, in uploadQueue_v2.",
  "The key is MAX_RETRY_COUNT in src/upload/queue.ts:41, commit a262de1f0.",
  "深圳银行的招聘会在周五。",
  "ร้านอาหารไทย เปิดวันจันทร์",
  "Größe und Maße: 12,5 cm am 3. März 2026 😀",
  "function f(a, b) { return a[b] ?? /x+/.test('y'); }",
  "\u0000 \ud800 odd \u200b text",
];
const session = { key: "agent:main:fuzz", id: "s1", owner: "main" };
/** The program itself ends a longer search. */
const TIMEOUT_MS = 200;

export const searchTarget: Target = {
  name: "search",
  words: [
    "(",
    ")",
    "[",
    "]",
    "{2,3}",
    "*",
    "+",
    "?",
    "|",
    "^",
    "$",
    "\\b",
    "\\d",
    "\\w",
    "\\p{L}",
    "(?<n>",
    "(?i)",
    "(?=",
    "(?<!",
    "\\k<n>",
    "\\1",
    ".*",
    '"',
    "-",
    "OR",
    "NEAR",
    "retry",
    "uploadQueue_v2",
    "深圳",
    "März",
    "2026-03-03",
    "yesterday",
    "src/upload",
    "a".repeat(300),
  ],
  open: async () => {
    const engine = openMemoryEngine();
    await engine.ingest({
      session,
      messages: TEXTS.map((content, at) => ({ eventId: `e${at}`, message: { role: "user", content } })),
    });
    return {
      run: async (input) => {
        const pattern = input.toString("utf8").slice(0, 4_000);
        buildClues(analyzeQuery(pattern));
        for (const mode of ["full_text", "regex"] as const) {
          const found = await accept(() => engine.grep({ session, pattern, mode, timeoutMs: TIMEOUT_MS }));
          if (found === null) continue;
          for (const hit of found.hits)
            if (hit.type === "message") hold(/^e\d$/.test(hit.eventId), "a hit is no message", hit);
          if (found.mode === "regex")
            checkMatches(
              pattern,
              found.hits.map((hit) => ("eventId" in hit ? hit.eventId : "")),
            );
        }
        await accept(() => engine.search({ query: pattern, limit: 5 }));
      },
      close: () => engine.close(),
    };
  },
};

/** A hit of a regular expression matches it. */
function checkMatches(pattern: string, eventIds: readonly string[]): void {
  const flags = ["iu", "i", "u", "", "ims", "imsu"];
  for (const eventId of eventIds) {
    const text = TEXTS[Number(eventId.slice(1))] ?? "";
    const matches = flags.some((flag) => {
      try {
        return new RegExp(pattern.trim().replace(/^\(\?i\)/, ""), flag).test(text);
      } catch {
        // Not a pattern under these flags.
        return false;
      }
    });
    hold(matches, "a hit does not match its pattern", pattern, text);
  }
}

import { appendFileSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";

import { makeRandom } from "@lossless/testkit";
import { someOf } from "@lossless/testkit/rounds.ts";
import { describe, expect, test } from "vitest";

import { importTranscript } from "../src/transcript/import.ts";

import { generateSession, openTestEngine, readStoredLines } from "@lossless/testkit/session-archive.ts";
import { makeTemporaryDirectory } from "@lossless/testkit";
import { cutRandomly, listRealTranscripts, readLatin1Lines, splitLines } from "./support.ts";

const SMALL_BYTES = 160_000;
const real = someOf(listRealTranscripts(), 5);

describe("into a real database", () => {
  test.skipIf(real.length === 0)(
    "every real transcript comes back byte for byte, and a second import adds nothing (skipped without shared data)",
    async () => {
      const engine = await openTestEngine();
      let rows = 0;
      for (const path of real) {
        const report = await importTranscript({ engine, path });
        const stored = await readStoredLines(engine, report.conversationId);
        expect([path, stored.map((line) => line.text)]).toEqual([path, readLatin1Lines(path)]);
        rows += stored.length;
      }
      for (const path of real) {
        const lines = readLatin1Lines(path).length;
        expect(await importTranscript({ engine, path })).toMatchObject({
          imported: 0,
          revisions: 0,
          skipped: lines,
        });
      }
      expect(await engine.verify()).toMatchObject({ ok: true, conversations: real.length, messages: rows });
    },
  );

  const samples = [
    { name: "generated.jsonl", content: generateSession(1, 300) },
    ...real
      .filter((path) => statSync(path).size < SMALL_BYTES)
      .map((path) => ({ name: basename(path), content: readFileSync(path) })),
  ];
  test.each(samples)(
    "a file that grows by random steps ends as after one clean import ($name)",
    async ({ name, content }) => {
      const directory = makeTemporaryDirectory();
      const [grown, clean] = [await openTestEngine(), await openTestEngine()];
      const path = join(directory, name);
      let done = 0;
      writeFileSync(path, "");
      for (const cut of cutRandomly(content.length, 12, makeRandom(content.length))) {
        appendFileSync(path, content.subarray(done, cut));
        await importTranscript({ engine: grown, path, batchLines: 25 });
        done = cut;
      }
      const last = await importTranscript({ engine: grown, path });
      const once = await importTranscript({ engine: clean, path });
      const stored = await readStoredLines(grown, last.conversationId);
      expect(stored).toEqual(await readStoredLines(clean, once.conversationId));
      expect(stored.map((line) => line.text)).toEqual(splitLines(content));
      expect(last).toMatchObject({ imported: 0, revisions: 0, skipped: stored.length });
      expect(await grown.verify()).toMatchObject({ ok: true, messages: stored.length });
    },
  );
});

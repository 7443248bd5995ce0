/** Preparing on the thread that reads changes nothing but who does the work. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { resolveSettings } from "../../src/index.ts";
import { openEngine } from "lossless-claw";
import { importTranscript } from "@lossless/interchange";
import { createPreparer } from "../../src/bulk/prepare-ahead.ts";
import { generateSession, openTestEngine, readStoredLines } from "@lossless/testkit/session-archive.ts";
import { makeTemporaryDirectory } from "@lossless/testkit";

test("stores the same through a thread as an engine that does everything itself", async () => {
  const folder = makeTemporaryDirectory();
  const path = join(folder, "session.jsonl");
  writeFileSync(path, generateSession(3, 300));
  const plain = await openTestEngine();
  const expected = await importTranscript({ engine: plain, path });
  const database = join(folder, "lcm.db");
  const engine = await openEngine({ database });
  onTestFinished(() => engine.close());
  const prepareAhead = createPreparer(resolveSettings({ env: {} }).settings);
  const report = await importTranscript({ engine, path, prepareAhead });
  expect({ ...report, path }).toEqual({ ...expected, path });
  const [ours, theirs] = [await readStoredLines(engine, 1), await readStoredLines(plain, 1)];
  expect(ours).toEqual(theirs);
  expect(await engine.verify()).toEqual(await plain.verify());
  expect((await engine.verify()).files).toBeGreaterThan(0);
  const query = { query: "größer", limit: 3 };
  expect((await engine.search(query)).total).toBe((await plain.search(query)).total);
  const again = await importTranscript({ engine, path, prepareAhead });
  expect([again.imported, again.revisions]).toEqual([0, 0]);
});

test("leaves what is redacted to the engine", () => {
  const { settings } = resolveSettings({ env: {}, config: { redactPatterns: ["@keys"] } });
  expect(createPreparer(settings)).toBeUndefined();
});

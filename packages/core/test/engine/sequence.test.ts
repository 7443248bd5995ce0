/** Batches that are handed over without waiting: stored in order, and none after one that failed. */
import { makeTemporaryFolder } from "@lossless/testkit";
import { describe, expect, onTestFinished, test } from "vitest";

import { openEngine } from "lossless-claw";
import type { Engine, IngestRequest } from "../../src/index.ts";

const SESSION = { key: "agent:main:sequence", id: "sequence", owner: "main" };

async function open(thread: boolean): Promise<Engine> {
  const folder = makeTemporaryFolder();
  const engine = await openEngine({ database: folder.file("lcm.db"), thread });
  onTestFinished(async () => {
    await engine.close();
    folder[Symbol.dispose]();
  });
  return engine;
}

const makeBatch = (number: number, sequence?: string): IngestRequest => ({
  session: SESSION,
  messages: Array.from({ length: 3 }, (_, index) => ({
    eventId: `${number}-${index}`,
    message: { role: "user", content: `message ${index} of batch ${number}` },
  })),
  cursor: { value: String(number) },
  sequence,
});

/** A message that is neither bytes nor a value. */
const makeBadBatch = (sequence?: string): IngestRequest => ({
  ...makeBatch(99, sequence),
  messages: [{ eventId: "bad", message: { role: "user", content: "late" }, position: Number.NaN }],
});

const readCursor = async (engine: Engine): Promise<string | null | undefined> =>
  (await engine.readSession({ sessionId: SESSION.id, owner: SESSION.owner }))?.cursor;

describe.each([
  ["in this thread", false],
  ["behind a thread", true],
] as const)("a sequence of batches %s", (_, thread) => {
  test("is stored in the order in which it was handed over", async () => {
    const engine = await open(thread);
    const answers = await Promise.all(
      Array.from({ length: 12 }, (_unused, number) => engine.ingest(makeBatch(number, "first"))),
    );
    const seqs = answers.flatMap(({ results }) => results.map(({ seq }) => seq));
    expect(seqs).toEqual([...seqs].sort((a, b) => a - b));
    expect(new Set(seqs).size).toBe(36);
    expect(await readCursor(engine)).toBe("11");
  });

  test("ends with the first batch that fails, and leaves others alone", async () => {
    const engine = await open(thread);
    const outcomes = await Promise.allSettled([
      engine.ingest(makeBatch(1, "broken")),
      engine.ingest(makeBadBatch("broken")),
      engine.ingest(makeBatch(2, "broken")),
      engine.ingest(makeBatch(3, "broken")),
    ]);
    expect(outcomes.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "rejected", "rejected"]);
    expect(await readCursor(engine)).toBe("1");
    await expect(engine.ingest(makeBatch(4, "broken"))).rejects.toThrow("position");
    await expect(engine.ingest(makeBatch(5, "another"))).resolves.toMatchObject({ skipped: null });
    await expect(engine.ingest(makeBatch(6))).resolves.toMatchObject({ skipped: null });
    expect(await readCursor(engine)).toBe("6");
  });
});

/** What an import says about the lines of a host that are no messages. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { makeTemporaryDirectory } from "@lossless/testkit";
import {
  CLAUDE_CODE_FOUND,
  readClaudeCodeLines,
  searchClaudeCodeLines,
} from "@lossless/testkit/older-archive.ts";
import { openTestEngine, readStoredLines } from "@lossless/testkit/session-archive.ts";
import { encodeBody } from "@lossless/core/formats";
import { importTranscript } from "@lossless/interchange";
import { expect, test } from "vitest";

const message = { role: "user", content: "The heron." };
const talk = JSON.stringify({
  type: "user",
  uuid: "u1",
  parentUuid: null,
  isSidechain: false,
  sessionId: "s1",
  message,
});
/** As Claude Code writes them, by their types. */
const besides = [
  { type: "queue-operation", operation: "enqueue", sessionId: "s1", content: "The heron." },
  { type: "api-request-shape", sessionId: "s1", tools: Array.from({ length: 200 }, (_, n) => `tool ${n}`) },
  { type: "cost-state", sessionId: "s1", total: 1 },
].map((line) => JSON.stringify(line));

test("counts them, and what they take when they are compressed as the archive does it", async () => {
  const path = join(makeTemporaryDirectory(), "s1.jsonl");
  writeFileSync(path, [besides[0], talk, besides[1], besides[2], ""].join("\n"));
  const engine = await openTestEngine();
  const { housekeeping, imported, conversationId } = await importTranscript({ engine, path });
  const sizes = besides.map((line) => encodeBody(Buffer.from(line)).body.byteLength);
  expect(imported).toBe(4);
  expect(housekeeping).toEqual({
    lines: 3,
    bytes: besides.join("").length,
    storedBytes: sizes.reduce((sum, size) => sum + size),
  });
  expect(housekeeping?.storedBytes).toBeLessThan((housekeeping?.bytes ?? 0) / 2);
  // Nothing of it is left out for that.
  expect((await readStoredLines(engine, conversationId ?? 0)).map(({ text }) => text)).toContain(besides[1]);
  expect((await importTranscript({ engine, path })).housekeeping?.lines).toBe(0);
});

test("what is only a copy of what was sent is kept as it was, and no search finds it", async () => {
  const path = join(makeTemporaryDirectory(), "b7c1.jsonl");
  const lines = readClaudeCodeLines();
  writeFileSync(path, `${lines.join("\n")}\n`);
  const engine = await openTestEngine();
  const { conversationId } = await importTranscript({ engine, path });
  expect(await searchClaudeCodeLines(engine)).toEqual(CLAUDE_CODE_FOUND);
  const stored = await readStoredLines(engine, conversationId ?? null);
  expect(stored.map(({ text }) => text)).toEqual(lines);
  expect((await engine.verify()).problems).toEqual([]);
  // Who has its id can read it.
  expect(JSON.stringify(await engine.describe({ id: "msg_5" }))).toContain("zeppelin");
});

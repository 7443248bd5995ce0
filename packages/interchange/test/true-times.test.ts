/** Lines without a date have no time of their own: lists ignore them, in archives from before that was kept too. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { openEngine } from "lossless-claw";
import type { Engine } from "@lossless/core";
import { makeTemporaryDirectory } from "@lossless/testkit";
import { renderTakeBack } from "@lossless/testkit/older-archive.ts";
import { expect, test } from "vitest";
import { importTranscript } from "../src/transcript/import.ts";

const ASKED = "2025-03-01T10:00:00.000Z";
const ANSWERED = "2025-03-01T10:05:00.000Z";
const row = (uuid: string, parentUuid: string | null, timestamp: string, role: string) => ({
  uuid,
  parentUuid,
  isSidechain: false,
  sessionId: "s1",
  timestamp,
  type: role,
  message: { role, content: uuid },
});
const LINES = [
  { type: "mode", mode: "normal", sessionId: "s1" },
  { type: "file-history-snapshot", messageId: "m", snapshot: { timestamp: ASKED } },
  row("a", null, ASKED, "user"),
  { type: "ai-title", aiTitle: "A title", sessionId: "s1" },
  row("b", "a", ANSWERED, "assistant"),
  { type: "last-prompt", lastPrompt: "a", sessionId: "s1" },
];

async function readTimes(engine: Engine, conversationId: number): Promise<object> {
  const conversation = await engine.readConversation({ conversationId });
  const { items } = await engine.listMessages({ conversationId, limit: 20 });
  const proof = await engine.verify({});
  return {
    heading: conversation?.heading,
    first: conversation?.firstAt,
    last: conversation?.lastAt,
    read: items.map(({ createdAt }) => new Date(createdAt).toISOString()),
    isDated: items.map(({ isDated }) => isDated),
    problems: proof.problems,
  };
}

const TRUE_TIMES = {
  heading: "A title",
  first: Date.parse(ASKED),
  last: Date.parse(ANSWERED),
  read: [ASKED, ASKED, ASKED, ANSWERED, ANSWERED, ANSWERED],
  isDated: [false, true, true, false, true, false],
  problems: [],
};

test("a list shows the times that lines carry, after an upgrade of an older archive too", async () => {
  const folder = makeTemporaryDirectory();
  const path = join(folder, "s1.jsonl");
  const database = join(folder, "lcm.db");
  writeFileSync(path, LINES.map((line) => `${JSON.stringify(line)}\n`).join(""));
  const engine = await openEngine({ database, thread: false });
  const { conversationId } = await importTranscript({ engine, path });
  expect(await readTimes(engine, conversationId ?? 0)).toEqual(TRUE_TIMES);
  await engine.close();

  const older = new DatabaseSync(database);
  older.exec(renderTakeBack(21));
  older.exec("UPDATE conversations SET last_at = (SELECT max(created_at) FROM messages)");
  const { last_at } = older.prepare("SELECT last_at FROM conversations").get() as { last_at: number };
  older.close();
  expect(last_at, "the import's own time").toBeGreaterThan(Date.parse(ANSWERED));

  const upgraded = await openEngine({ database, thread: false });
  expect(await readTimes(upgraded, conversationId ?? 0)).toEqual(TRUE_TIMES);
  await upgraded.close();
});

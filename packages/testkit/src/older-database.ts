/** A database as an older lossless-claw leaves it: an archive of ours with a folded chat, written in the documented schema. */

import { rmSync } from "node:fs";
import { openEngine } from "lossless-claw";
import { exportConversations } from "lossless-claw/interchange";

const MESSAGES = 40;

/** Writes the database to a path and returns the number of messages in it. */
export async function writeOlderDatabase(path: string): Promise<number> {
  const database = `${path}.source`;
  const filesDir = `${path}.source-files`;
  const engine = await openEngine({ database, filesDir, thread: false });
  const session = { key: "agent:main:before", id: "before", owner: "main" };
  const messages = Array.from({ length: MESSAGES }, (_, number) => ({
    eventId: `e${number}`,
    message: {
      role: number % 2 === 0 ? "user" : "assistant",
      content: `Crane ${number} at pier ${number % 7} lifted ${number * 13} crates before noon. `.repeat(20),
    },
  }));
  const { conversationId } = await engine.ingest({ session, messages });
  await engine.compact({ conversationId, owner: "main", budgetTokens: 4_000, force: true });
  await engine.close();
  await exportConversations({ database, filesDir, format: "lossless-claw", out: path });
  for (const name of [database, `${database}-wal`, `${database}-shm`, `${database}.copies`, filesDir])
    rmSync(name, { recursive: true, force: true });
  return MESSAGES;
}

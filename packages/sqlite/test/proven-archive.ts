/** An archive with a row of every kind that `verify` can prove, for tests that damage it. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { resolveSettings } from "@lossless/core";
import { openEngine } from "lossless-claw";

const session = { key: "agent:main:test", id: "session-1", owner: "main" };

export async function buildProvenArchive(folder: string): Promise<void> {
  const database = join(folder, "lcm.db");
  const keyFile = join(folder, "key");
  writeFileSync(keyFile, `${"0123456789abcdef".repeat(4)}\n`, { mode: 0o600 });
  const { settings } = resolveSettings({
    env: {},
    config: {
      databasePath: database,
      freshTailCount: 2,
      leafChunkTokens: 400,
      leafTargetTokens: 60,
      condensedTargetTokens: 90,
      leafMinFanout: 2,
      condensedMinFanout: 2,
      largeFileThresholdTokens: 1_000,
      redactPatterns: ["hunter\\d"],
      redactedValues: "seal",
      redactionKeyFile: keyFile,
    },
  });
  const engine = await openEngine({ database, settings, thread: false });
  const call = { type: "toolCall", id: "call_1", name: "exec", arguments: { command: "ls" } };
  const result = { role: "toolResult", toolCallId: "call_1", toolName: "exec" };
  await engine.ingest({
    session,
    turn: { advancementKey: "k1" },
    messages: [
      { eventId: "u1", message: { role: "user", content: "list the files of the greenhouse" } },
      { eventId: "a1", message: { role: "assistant", content: [{ type: "text", text: "Looking." }, call] } },
      { eventId: "t1", message: { ...result, content: [{ type: "text", text: "a.ts\nb.ts" }] } },
      { eventId: "p1", eventIdKind: "provisional", message: { role: "assistant", content: "Two files." } },
      { eventId: "h1", message: { role: "user", content: "a heartbeat" }, hidden: ["heartbeat"] },
      { eventId: "big", message: { role: "user", content: `see ${"lorem ipsum dolor ".repeat(800)}` } },
      { eventId: "s1", message: { role: "user", content: "the password is hunter2, keep it" } },
      { eventId: "gone", message: { role: "user", content: "to be forgotten" } },
    ],
  });
  await engine.ingest({
    session,
    messages: [{ eventId: "u1", message: { role: "user", content: "list them, please" } }],
  });
  await engine.relabel({ session, labels: [{ from: "p1", to: "entry-4" }] });
  await engine.setBranch({ session, offBranch: ["t1"] });
  await engine.forget({ messageIds: [8], reason: "a test" });
  const words = "valve sensor pump door lamp fan".split(" ");
  await engine.ingest({
    session,
    messages: Array.from({ length: 40 }, (_, i) => ({
      eventId: `m${i}`,
      message: {
        role: i % 2 === 0 ? "user" : "assistant",
        content: `step ${i}: ${`${words[i % 6]} ${i} moved. `.repeat(8)}`,
      },
    })),
  });
  await engine.compact({ conversationId: 1, budgetTokens: 1_000, force: true });
  const child = { ...session, key: "agent:main:fork", id: "session-2" };
  await engine.fork({ session: child, parentSessionId: session.id, eventIds: ["u1", "a1"] });
  await engine.ingest({
    session: child,
    messages: [{ eventId: "c1", message: { role: "user", content: "in the fork" } }],
  });
  await engine.recordBoundary({ session, eventId: "reset-1", reason: "new" });
  await engine.recordBoundary({ session, eventId: "reset-2", reason: "reset" });
  await engine.ingest({
    session,
    messages: [{ eventId: "later", message: { role: "user", content: "after it" } }],
  });
  await engine.close();
}

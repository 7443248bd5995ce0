/** Events that a database would give back changed, or that would make a conversation unreadable, are refused before anything is stored. */
import { writeFileSync } from "node:fs";
import { openEngine } from "lossless-claw";
import type { Engine } from "@lossless/core";
import { importTranscript } from "@lossless/interchange";
import { makeTemporaryFolder } from "@lossless/testkit";
import { describe, expect, test } from "vitest";

const session = { key: "agent:main:test", id: "session-1", owner: "main" };
const message = { role: "user", content: "hello" };

async function withEngine(work: (engine: Engine, folder: string) => Promise<void>): Promise<void> {
  using folder = makeTemporaryFolder();
  const engine = await openEngine({ database: folder.file("lcm.db"), thread: false });
  try {
    await work(engine, folder.file(""));
    expect((await engine.verify()).problems).toEqual([]);
  } finally {
    await engine.close();
  }
}

describe("an event is refused, and the conversation stays usable", () => {
  test.for([
    ["position", { position: 1.5 }],
    ["position", { position: 2 ** 53 }],
    ["position", { position: Number.NaN }],
    ["createdAt", { createdAt: Number.NaN }],
    ["createdAt", { createdAt: 1e300 }],
    ["createdAt", { createdAt: 8.64e15 + 1 }],
    ["eventId", { eventId: "" }],
    ["eventId", { eventId: "half \ud800" }],
    ["eventId", { eventId: "a\0b" }],
  ] as const)("by its %s: %j", async ([field, odd]) => {
    await withEngine(async (engine) => {
      await expect(engine.ingest({ session, messages: [{ message, ...odd }] })).rejects.toMatchObject({
        code: "invalid_input",
        message: expect.stringContaining(`its ${field} must`),
      });
      const { results } = await engine.ingest({ session, messages: [{ message }] });
      expect(results.map((result) => result.outcome)).toEqual(["stored"]);
    });
  });

  test.for(["key", "id", "owner"] as const)(
    "when half a surrogate pair is in the session's %s",
    async (field) => {
      await withEngine(async (engine) => {
        const odd = { ...session, [field]: "x\udfff" };
        await expect(engine.ingest({ session: odd, messages: [{ message }] })).rejects.toMatchObject({
          code: "invalid_input",
          message: expect.stringContaining(`its ${field} must`),
        });
      });
    },
  );
});

test("a time with a fraction of a millisecond is stored without it", async () => {
  await withEngine(async (engine) => {
    const messages = [{ message, createdAt: 1_700_000_000_000.7 }];
    const { conversationId } = await engine.ingest({ session, messages });
    const { items } = await engine.listMessages({ conversationId, limit: 1 });
    expect(items[0]?.createdAt).toBe(1_700_000_000_000);
  });
});

test("a transcript whose times no date can name is stored whole", async () => {
  await withEngine(async (engine, folder) => {
    const times = [1e300, 8.64e15 + 1, -1, "garbage", null, "9999-12-31T23:59:59Z", 1_700_000_000_000.5];
    const lines = times.map((timestamp, index) =>
      JSON.stringify({
        type: "user",
        uuid: `u${index}`,
        parentUuid: null,
        sessionId: "s",
        timestamp,
        message,
      }),
    );
    const path = `${folder}/odd.jsonl`;
    writeFileSync(path, `${lines.join("\n")}\n`);
    const report = await importTranscript({ engine, path, format: "claude-code" });
    expect(report.imported).toBe(times.length);
    const { items } = await engine.listMessages({ conversationId: report.conversationId ?? 0, limit: 50 });
    for (const { createdAt } of items) expect(() => new Date(createdAt).toISOString()).not.toThrow();
  });
});

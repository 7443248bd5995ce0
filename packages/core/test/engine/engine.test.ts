import { EngineError, resolveSettings } from "@lossless/core";
import { openEngine } from "lossless-claw";
import type { EngineEvent } from "@lossless/core";
import { makeTemporaryFolder } from "@lossless/testkit";
import { fc } from "@lossless/testkit/properties.ts";
import { rounds } from "@lossless/testkit/rounds.ts";
import { describe, expect, test } from "vitest";

const session = { key: "agent:main:test", id: "session-1", owner: "main" };
const user = (text: string) => ({ role: "user", content: text });

function settingsWith(config: Record<string, unknown>, database: string) {
  return resolveSettings({ env: {}, config: { databasePath: database, ...config } }).settings;
}

describe("the engine", () => {
  test("gives back any JSON value deeply equal, key order included", async () => {
    using folder = makeTemporaryFolder();
    const engine = await openEngine({ database: folder.file("lcm.db"), thread: false });
    let count = 0;
    const json = fc.anything({
      withNullPrototype: false,
      maxDepth: 6,
      key: fc.string({ unit: "binary" }),
      values: [
        fc.string({ unit: "binary" }),
        fc.constantFrom(0, -0, 1e21, -1e-7, 1.7976931348623157e308, 5e-324, Number.MAX_SAFE_INTEGER),
        fc.double({ noNaN: true, noDefaultInfinity: true }),
        fc.boolean(),
        fc.constant(null),
        fc.constantFrom("\ud800", "\udfff x", "\u0000", "\u2028", "</script>", '"\\'),
      ],
    });
    await fc.assert(
      fc.asyncProperty(json, async (value) => {
        const message = { role: "user", content: "x", extra: value };
        const { results } = await engine.ingest({ session, messages: [{ eventId: `e${count++}`, message }] });
        const stored = await engine.readMessage({ messageId: results[0]?.messageId ?? 0 });
        const back = JSON.parse(Buffer.from(stored?.bytes ?? []).toString());
        expect(describeDeep(back)).toBe(describeDeep(message));
      }),
      { numRuns: 300 },
    );
    expect((await engine.verify()).problems).toEqual([]);
    await engine.close();
  });

  test("keeps megabytes in one text, and twenty thousand levels of nesting", async () => {
    using folder = makeTemporaryFolder();
    const engine = await openEngine({ database: folder.file("lcm.db") });
    let nested: unknown = "core";
    for (let i = 0; i < 20_000; i++) nested = [nested];
    const long = "Ein langer Text mit Umlauten äöü und 中文. ".repeat(
      rounds({ test: 24_000, soak: 240_000 }),
    );
    const { results } = await engine.ingest({
      session,
      messages: [
        { eventId: "long", message: user(long) },
        { eventId: "deep", message: { role: "user", content: "deep", nested } },
      ],
    });
    const first = await engine.readMessage({ messageId: results[0]?.messageId ?? 0 });
    expect(JSON.parse(Buffer.from(first?.bytes ?? []).toString()).content).toBe(long);
    const second = await engine.readMessage({ messageId: results[1]?.messageId ?? 0 });
    let depth = 0;
    for (
      let at = JSON.parse(Buffer.from(second?.bytes ?? []).toString()).nested;
      Array.isArray(at);
      at = at[0]
    )
      depth += 1;
    expect(depth).toBe(20_000);
    expect((await engine.verify()).problems).toEqual([]);
    await engine.close();
  });

  test("does the same behind a thread as without one", async () => {
    using folder = makeTemporaryFolder();
    const answers: unknown[] = [];
    for (const thread of [false, true]) {
      const events: EngineEvent[] = [];
      const engine = await openEngine({
        database: folder.file(`${thread}.db`),
        thread,
        onEvent: (event) => events.push(event),
      });
      await engine.ingest({
        session,
        messages: [{ eventId: "a", message: user("the greenhouse door"), createdAt: 5 }],
      });
      await engine.ingest({
        session,
        messages: [{ eventId: "a", message: user("the greenhouse door"), createdAt: 5 }],
      });
      const found = await engine.search({ query: "where is the greenhouse?", limit: 5 });
      const { items } = await engine.listMessages({ conversationId: 1, limit: 5 });
      const progress: number[] = [];
      const report = await engine.verify({ onProgress: (done) => progress.push(done) });
      expect(progress.at(-1)).toBe(1);
      await expect(engine.listMessages({ conversationId: 1, limit: 0 })).rejects.toMatchObject({
        code: "usage",
      });
      answers.push({
        found,
        items,
        report,
        events,
        known: await engine.knownEvents({ sessionId: "session-1", eventIds: ["a", "b"] }),
      });
      await engine.close();
      await expect(engine.status()).rejects.toMatchObject({ code: "database_closed" });
    }
    expect(answers[1]).toEqual(answers[0]);
  });

  test("stores nothing where the settings say so", async () => {
    using folder = makeTemporaryFolder();
    const database = folder.file("lcm.db");
    const cases: [Record<string, unknown>, string, string | null][] = [
      [{ enabled: false }, "agent:main:x", "disabled"],
      [{ ignoreSessionPatterns: ["agent:*:cron:**"] }, "agent:main:cron:job:7", "ignored"],
      [{ statelessSessionPatterns: ["agent:*:subagent:*"] }, "agent:main:subagent:9", "stateless"],
      [
        { statelessSessionPatterns: ["agent:*:subagent:*"], skipStatelessSessions: false },
        "agent:main:subagent:9",
        null,
      ],
      [{ ignoreSessionPatterns: ["agent:*:cron:*"] }, "agent:main:telegram:7", null],
    ];
    for (const [config, key, skipped] of cases) {
      const engine = await openEngine({ database, thread: false, settings: settingsWith(config, database) });
      const before = (await engine.status()).messages;
      const answer = await engine.ingest({
        session: { ...session, id: key, key },
        messages: [{ eventId: "a", message: user("hi") }],
      });
      expect(answer.skipped).toBe(skipped);
      expect((await engine.status()).messages - before).toBe(skipped === null ? 1 : 0);
      await engine.close();
    }
  });

  test("refuses what is no message or no session, and stores nothing of the batch", async () => {
    using folder = makeTemporaryFolder();
    const engine = await openEngine({ database: folder.file("lcm.db") });
    const good = { eventId: "good", message: user("fine") };
    for (const bad of [{ eventId: "b", message: { role: "user", content: 10n } }, { eventId: "b" }]) {
      await expect(engine.ingest({ session, messages: [good, bad] })).rejects.toBeInstanceOf(EngineError);
    }
    await expect(
      engine.ingest({ session: { ...session, owner: "" }, messages: [good] }),
    ).rejects.toMatchObject({
      code: "invalid_input",
    });
    expect((await engine.status()).messages).toBe(0);
    await engine.close();
  });

  test("gives events without an id one of their own", async () => {
    using folder = makeTemporaryFolder();
    const engine = await openEngine({ database: folder.file("lcm.db"), thread: false });
    const messages = [{ message: user("ok") }, { message: user("ok") }];
    const { results } = await engine.ingest({ session, messages });
    expect(new Set(results.map((result) => result.eventId)).size).toBe(2);
    await engine.close();
  });

  test("hides heartbeat turns only when asked to, also when a turn arrives in pieces", async () => {
    using folder = makeTemporaryFolder();
    const pieces = [
      [{ eventId: "u", message: user("Heartbeat: read HEARTBEAT.md, is there anything to do?") }],
      [{ eventId: "a", message: { role: "assistant", content: [{ type: "text", text: "HEARTBEAT_OK" }] } }],
      [{ eventId: "n", message: user("what does HEARTBEAT_OK mean?") }],
    ];
    for (const prune of [false, true]) {
      const database = folder.file(`${prune}.db`);
      const engine = await openEngine({
        database,
        thread: false,
        settings: settingsWith({ pruneHeartbeatOk: prune }, database),
      });
      for (const messages of pieces) await engine.ingest({ session, messages });
      const { items } = await engine.listMessages({ conversationId: 1, limit: 10 });
      expect(items.map((row) => row.hidden)).toEqual(
        prune ? [["heartbeat"], ["heartbeat"], []] : [[], [], []],
      );
      expect((await engine.verify()).ok).toBe(true);
      await engine.close();
    }
  });

  test("learns how a model counts from what it reports", async () => {
    using folder = makeTemporaryFolder();
    const engine = await openEngine({ database: folder.file("lcm.db"), thread: false });
    const text = "The warehouse ships seeds on Tuesday and bulbs on Friday. ".repeat(100);
    const messages = Array.from({ length: 6 }, (_, i) => ({
      eventId: `a${i}`,
      message: {
        role: "assistant",
        provider: "p",
        model: "m",
        content: [{ type: "text", text }],
        usage: { output: 1_800 },
      },
    }));
    await engine.ingest({ session, messages });
    const { DatabaseSync } = await import("node:sqlite");
    const row = new DatabaseSync(folder.file("lcm.db"), { readOnly: true })
      .prepare("SELECT * FROM token_calibration")
      .get();
    expect(row).toMatchObject({ model: "p/m", samples: 6 });
    expect(row?.factor).toBeGreaterThan(1.1);
    await engine.close();
  });
});

/** A text that tells apart everything JSON can: key order, −0, lone surrogates. */
function describeDeep(value: unknown): string {
  if (Object.is(value, -0)) return "-0";
  if (Array.isArray(value)) return `[${value.map(describeDeep).join()}]`;
  if (typeof value === "object" && value !== null) {
    const members = Object.entries(value).filter(([, member]) => member !== undefined);
    return `{${members.map(([key, member]) => `${JSON.stringify(key)}:${describeDeep(member)}`).join()}}`;
  }
  return JSON.stringify(value) ?? "undefined";
}

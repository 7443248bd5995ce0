/** What a range line says: the messages that it counts, and no others. */
import { makeTemporaryFolder } from "@lossless/testkit";
import { openEngine } from "lossless-claw";
import { describe, expect, onTestFinished, test } from "vitest";
import type { Engine } from "../../src/index.ts";
import { resolveSettings } from "../../src/index.ts";
import { ArchiveView, findFaults } from "./context-checks.ts";
import { makeTurns, SESSION } from "./conversation.ts";

async function open(config: Record<string, unknown> = {}): Promise<{ engine: Engine; database: string }> {
  const folder = makeTemporaryFolder();
  onTestFinished(() => folder[Symbol.dispose]());
  const database = folder.file("lcm.db");
  const { settings } = resolveSettings({ env: {}, config: { databasePath: database, ...config } });
  const engine = await openEngine({ database, settings, thread: false });
  onTestFinished(() => engine.close());
  return { engine, database };
}

test("after a boundary a range line names nothing from before it", async () => {
  const { engine, database } = await open();
  await engine.ingest({ session: SESSION, messages: makeTurns(0, 15, { words: 60 }) });
  await engine.recordBoundary({ session: SESSION, eventId: "new-1", reason: "new" });
  await engine.ingest({ session: SESSION, messages: makeTurns(15, 115, { words: 60 }) });
  const view = new ArchiveView(database, 1);
  let ranges = 0;
  for (const budgetTokens of [1_000, 3_000, 8_000]) {
    const context = await engine.assemble({ conversationId: 1, budgetTokens, checkGrammars: true });
    expect(context && findFaults(context, view)).toEqual([]);
    const [range] = context?.items.filter(({ kind }) => kind === "range") ?? [];
    if (range === undefined) continue;
    ranges++;
    expect(range.ids[0]).toBe(`msg_${view.shown[0]}`);
  }
  expect(ranges).toBeGreaterThan(1);
});

describe("a fork that leaves inside of what is folded", () => {
  test.each([400, 6_000, 40_000])(
    "counts no message of its parent's further way, in %d tokens",
    async (room) => {
      const { engine } = await open({ bootstrapMaxTokens: room, freshTailCount: 8, leafChunkTokens: 3_000 });
      const messages = makeTurns(0, 60, { words: 60 });
      await engine.ingest({ session: SESSION, messages });
      await engine.compact({ conversationId: 1, budgetTokens: 5_000, force: true });
      const { items: stored } = await engine.listMessages({ conversationId: 1, limit: 1_000 });
      for (const at of [30, 55, 70]) {
        const session = { key: `agent:main:copy-${at}`, id: `copy-${at}`, owner: SESSION.owner };
        const eventIds = messages.slice(0, at).map(({ eventId }) => eventId ?? "");
        await engine.fork({ session, parentSessionId: SESSION.id, eventIds });
        await engine.ingest({
          session,
          messages: [{ eventId: "own", message: { role: "user", content: "here" } }],
        });
        const { items } = await engine.listConversations({ limit: 10 });
        const id = items.find(({ sessionKey }) => sessionKey === session.key)?.conversationId ?? 0;
        const context = await engine.assemble({ conversationId: id, budgetTokens: 100_000 });
        const ranges = context?.items.filter(({ kind }) => kind === "range") ?? [];
        expect(ranges.length).toBeLessThanOrEqual(1);
        const own = new Set(stored.slice(0, at).map(({ messageId }) => `msg_${messageId}`));
        for (const range of ranges) {
          expect(range.ids.length).toBeGreaterThan(0);
          expect(range.ids.filter((named) => !own.has(named))).toEqual([]);
        }
        const shown = context?.items.flatMap(({ ids, kind }) => (kind === "message" ? ids : [])) ?? [];
        if (room === 40_000) expect(shown.filter((named) => own.has(named))).toHaveLength(at);
      }
    },
  );
});

test("the stub of a message below an opened summary says how large the message is", async () => {
  const { engine } = await open({ freshTailCount: 8, leafChunkTokens: 4_000, leafMinFanout: 3 });
  const rows = Array.from({ length: 700 }, (_, row) => `row ${row} valve ${row % 7}`).join("\n");
  const messages = makeTurns(0, 30, { words: 6, calls: 1 }).map(({ eventId, message }, nth) => {
    const { role } = message as { role: string };
    const isBulky = role === "toolResult" && nth % 16 === 2;
    return {
      eventId,
      message: isBulky ? { ...(message as object), content: [{ type: "text", text: rows }] } : message,
    };
  });
  await engine.ingest({ session: SESSION, messages });
  await engine.compact({ conversationId: 1, budgetTokens: 6_000, force: true });
  const { items } = await engine.listMessages({ conversationId: 1, limit: 1_000 });
  const tokens = new Map(items.map((row) => [`msg_${row.messageId}`, row.tokens]));
  let opened = 0;
  for (let budgetTokens = 700; budgetTokens < 9_000; budgetTokens += 90) {
    const context = await engine.assemble({ conversationId: 1, budgetTokens });
    const text = JSON.stringify(context?.messages);
    for (const { kind, ids, reason } of context?.items ?? []) {
      if (kind !== "stub" || !reason.startsWith("opened")) continue;
      const stated = new RegExp(`bout (\\d+) tokens[^\\]]*${ids[0]}\\\\"`).exec(text)?.[1];
      if (stated === undefined) continue;
      opened++;
      expect(Number(stated)).toBeGreaterThan(0.8 * (tokens.get(ids[0] ?? "") ?? 0));
    }
  }
  expect(opened).toBeGreaterThan(0);
});

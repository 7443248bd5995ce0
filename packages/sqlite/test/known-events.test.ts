/** A large batch is compared with what is stored in one question; it must end as event after event would. */
import { openEngine } from "lossless-claw";
import type { Engine } from "@lossless/core";
import { makeTemporaryFolder } from "@lossless/testkit";
import { fc } from "@lossless/testkit/properties.ts";
import { expect, onTestFinished, test } from "vitest";

const SESSION = { key: "agent:main:main", id: "s1", owner: "main" };

async function openEmpty(): Promise<Engine> {
  const folder = makeTemporaryFolder();
  const engine = await openEngine({ database: folder.file("lcm.db"), thread: false });
  onTestFinished(async () => {
    await engine.close();
    folder[Symbol.dispose]();
  });
  return engine;
}

const toMessage = ([id, text]: readonly [string, string]): { eventId: string; bytes: Uint8Array } => ({
  eventId: id,
  bytes: Buffer.from(JSON.stringify({ role: "user", content: text })),
});

test("what arrives under both names of a message, in one batch, is stored once", async () => {
  const engine = await openEmpty();
  const provisional = { ...toMessage(["turn:0", "one"]), eventIdKind: "provisional" as const };
  await engine.ingest({ session: SESSION, messages: [provisional] });
  await engine.relabel({ session: SESSION, labels: [{ from: "turn:0", to: "e1" }] });
  const messages = [toMessage(["turn:0", "two"]), toMessage(["e1", "two"])];
  const { results } = await engine.ingest({ session: SESSION, messages });
  expect(results.map(({ outcome }) => outcome)).toEqual(["revision", "known"]);
});

test("an event that comes twice in a batch, from both sides of a reset, stays where it came first", async () => {
  const engine = await openEmpty();
  const large = "lorem ipsum dolor ".repeat(12_000);
  await engine.ingest({ session: SESSION, messages: [{ ...toMessage(["file", large]), position: 1_000 }] });
  await engine.recordBoundary({ session: SESSION, eventId: "cut", reason: "reset", position: 50_000 });
  const messages = [
    { ...toMessage(["a", "small"]), position: 2_000 },
    { ...toMessage(["a", large]), position: 70_000 },
  ];
  const { results } = await engine.ingest({ session: SESSION, messages });
  expect(results.map(({ outcome }) => outcome)).toEqual(["stored", "revision"]);
  expect((await engine.verify()).problems).toEqual([]);
});

test("a session that begins with a reset keeps what closed its first conversation", async () => {
  const engine = await openEmpty();
  await engine.recordBoundary({ session: SESSION, eventId: "cut", reason: "reset" });
  const { items } = await engine.listConversations({ limit: 10 });
  expect(items.find(({ conversationId }) => conversationId === 1)?.archiveCause).toBe("reset");
});

test("a session whose conversation another one has closed can end, and be reset, too", async () => {
  const engine = await openEmpty();
  const other = { ...SESSION, id: "s2" };
  const ingest = async (session: typeof SESSION, id: string): Promise<number> =>
    (await engine.ingest({ session, messages: [toMessage([id, "text"])] })).conversationId;
  expect([await ingest(SESSION, "a"), await ingest(other, "b")]).toEqual([1, 1]);
  await engine.recordBoundary({ session: other, eventId: "cut", reason: "reset" });
  const ended = await engine.recordBoundary({ session: SESSION, eventId: "end", reason: "idle" });
  expect(ended).toEqual({ kind: "recorded", conversationId: 1 });
  await engine.recordBoundary({ session: SESSION, eventId: "cut", reason: "reset" });
  expect([await ingest(SESSION, "c"), await ingest(other, "d")]).toEqual([3, 2]);
  expect(await ingest({ ...SESSION, id: "s3" }, "e")).toBe(3);
  expect((await engine.verify()).problems).toEqual([]);
});

/** Few ids and few texts, so that most events repeat one before them, with the same bytes or with others. */
const event = fc.tuple(
  fc.constantFrom("a", "A", "a'b", 'a"b', "ä", "\u{1f600}", "1", "1.0", "null", "[]", "a#2", " a"),
  fc.constantFrom("one", "two", "three"),
);

test("a batch ends as its events would end one by one, repetitions and revisions included", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(event, { minLength: 17, maxLength: 40 }), fc.nat(), async (events, seed) => {
      const [together, apart] = [await openEmpty(), await openEmpty()];
      const first = events.slice(0, seed % events.length);
      const outcomes = { together: [] as string[], apart: [] as string[] };
      for (const batch of [first, events, events]) {
        const { results } = await together.ingest({ session: SESSION, messages: batch.map(toMessage) });
        outcomes.together.push(...results.map(({ eventId, outcome }) => `${eventId} ${outcome}`));
        for (const one of batch) {
          const [result] = (await apart.ingest({ session: SESSION, messages: [toMessage(one)] })).results;
          outcomes.apart.push(`${result?.eventId} ${result?.outcome}`);
        }
      }
      expect(outcomes.together).toEqual(outcomes.apart);
      expect((await together.verify()).problems).toEqual([]);
    }),
    { numRuns: 12 },
  );
});

import { SAMPLE } from "@lossless/testkit/sample.ts";
import { describe, expect, test } from "vitest";
import { importPaths } from "@lossless/interchange";
import type { Engine } from "@lossless/core";
import { findSharedData, listTranscripts } from "@lossless/testkit";
import { searchText } from "../../src/message/normalize.ts";
import { longTalk, main, openArchive, say } from "./archive.ts";

const SMALL = {
  leafChunkTokens: 4_000,
  leafTargetTokens: 400,
  condensedTargetTokens: 500,
  freshTailCount: 16,
};
const OWNER = "main";

/** Everything that can be opened from some ids on, by describe alone. */
async function walk(
  engine: Engine,
  session: { key: string; owner: string },
  ids: readonly string[],
): Promise<Set<string>> {
  const reached = new Set<string>();
  const pending = [...ids];
  for (let id = pending.pop(); id !== undefined; id = pending.pop()) {
    if (reached.has(id)) continue;
    reached.add(id);
    if (!id.startsWith("sum_")) continue;
    const node = await engine.describe({ session, id });
    if (node.type === "summary") pending.push(...node.parentIds, ...node.sourceMessageIds);
  }
  return reached;
}

async function checkReach(file: string): Promise<void> {
  await using archive = await openArchive({ settings: SMALL });
  const { engine } = archive;
  await importPaths({ engine, paths: [file], owner: OWNER });
  for (const { conversationId, sessionKey } of (await engine.listConversations({ limit: 50 })).items) {
    const session = { key: sessionKey, owner: OWNER };
    await engine.compact({ conversationId, budgetTokens: 12_000, force: true });
    await engine.maintain({ conversationId, budgetTokens: 12_000 });
    const context = await engine.assemble({ conversationId, budgetTokens: 12_000 });
    const text = JSON.stringify(context?.messages ?? []);
    const shown = [...new Set(text.match(/sum_[0-9a-f]{16}/g) ?? [])];
    const summaries = (await engine.listSummaries({ conversationId, limit: 1_000 })).items;
    const tops = summaries
      .filter(({ state }) => state === "cover" || state === "reserve")
      .map(({ summaryId }) => summaryId);
    expect(shown.every((id) => tops.includes(id))).toBe(true);
    const reached = await walk(engine, session, tops);
    const stored = (await engine.listMessages({ conversationId, limit: 10_000 })).items;
    // What no summary stands for yet is reached as one run, which is what the context's range line names.
    const open = stored.filter(
      ({ messageId, revises }) => revises === null && !reached.has(`msg_${messageId}`),
    );
    const folded = stored.length - open.length;
    for (const { messageId } of stored.filter((_, at) => at % 7 === 0)) {
      const described = await engine.describe({ session, id: `msg_${messageId}`, tokenCap: 10_000_000 });
      const body = await engine.readMessage({ messageId });
      const whole = body ? searchText(body.view) : "";
      expect(described.type === "messages" ? described.messages[0]?.text : null).toBe(whole);
    }
    const ids = open.map(({ messageId }) => messageId);
    if (ids.length > 0) {
      const seen = new Set<string>();
      for (let after: string | undefined; ;) {
        const id = `msg_${ids[0]}..msg_${ids.at(-1)}`;
        const page = await engine.describe({ session, id, tokenCap: 50_000, after });
        if (page.type !== "messages") throw new Error("not messages");
        for (const message of page.messages) seen.add(message.id);
        if (page.next === null) break;
        after = page.next;
      }
      expect(ids.filter((id) => !seen.has(`msg_${id}`))).toEqual([]);
    }
    if (stored.length > 200) expect(folded).toBeGreaterThan(0);
  }
}

describe("opening by id", () => {
  const elsewhere = { key: "agent:main:kitchen", id: "kitchen-1", owner: OWNER };

  test("reaches what a search with the same scope finds, and nothing else", async () => {
    await using archive = await openArchive({ settings: { ...SMALL, largeFileThresholdTokens: 1_000 } });
    const { engine } = archive;
    await engine.ingest({ session: main, messages: [say("a", "user", "Only tulips here.")] });
    const file = `marzipan ${"x y ".repeat(3_000)}`;
    await engine.ingest({
      session: elsewhere,
      messages: [...longTalk("k", 90), say("f", "user", file)],
    });
    await engine.compact({ conversationId: 2, budgetTokens: 3_000, force: true });
    const summaries = (await engine.listSummaries({ conversationId: 2, limit: 50 })).items;
    const [hit] = (await engine.grep({ session: elsewhere, pattern: "marzipan", scope: "files" })).hits;
    const ids = [summaries[0]?.summaryId ?? "", hit?.id ?? "", "msg_5", "msg_5..msg_9"];
    for (const id of ids) {
      await expect(engine.describe({ session: main, id }), id).rejects.toMatchObject({ code: "not_found" });
      await expect(engine.describe({ session: main, id, conversationId: 1 }), id).rejects.toThrow(
        "it is not in conversation 1",
      );
      for (const scope of [{ allConversations: true }, { conversationId: 2 }])
        expect((await engine.describe({ session: main, id, ...scope })).conversationId).toBe(2);
      expect((await engine.describe({ session: elsewhere, id })).conversationId).toBe(2);
    }
    const below = { session: main, prompt: "compost?", summaryIds: [ids[0] ?? ""] };
    await expect(engine.ask(below)).rejects.toMatchObject({ code: "not_found" });
    expect((await engine.ask({ ...below, allConversations: true })).passages.length).toBeGreaterThan(0);
  });
});

test("a copied chat opens what was said before the copy, and nothing that the original was told later", async () => {
  await using archive = await openArchive({ settings: SMALL });
  const { engine } = archive;
  const copy = { key: "agent:main:copy", id: "copy", owner: OWNER };
  const talk = longTalk("n", 90);
  await engine.ingest({ session: main, messages: talk });
  const eventIds = talk.slice(0, 5).map(({ eventId = "" }) => eventId);
  await engine.fork({ session: copy, parentSessionId: main.id, eventIds });
  await engine.ingest({ session: copy, messages: [say("c", "user", "On in the copy.")] });
  const open = (id: string) => engine.describe({ session: copy, id });
  expect(await open("msg_5")).toMatchObject({ type: "messages" });
  for (const id of ["msg_6", "msg_12", "msg_4..msg_7"])
    await expect(open(id), id).rejects.toMatchObject({ code: "not_found" });
  await engine.compact({ conversationId: 1, budgetTokens: 1_000, force: true });
  const { items } = await engine.listSummaries({ conversationId: 1, limit: 50 });
  expect(items.length).toBeGreaterThan(0);
  for (const { summaryId } of items)
    await expect(open(summaryId), summaryId).rejects.toMatchObject({ code: "not_found" });
});

test("an owner named in a request does not change whose session asks", async () => {
  await using archive = await openArchive({});
  const { engine } = archive;
  const stranger = { key: "agent:other:attic", id: "attic-1", owner: "other" };
  await engine.ingest({ session: stranger, messages: [say("x", "user", "The safe opens with 9999.")] });
  await engine.ingest({ session: main, messages: [say("a", "user", "Where is the safe?")] });
  for (const scope of [{}, { allConversations: true }, { conversationId: 1 }]) {
    const found = engine.grep({ session: main, owner: "other", pattern: "9999", ...scope });
    const texts = await found.then(({ hits }) => hits.map(({ snippet }) => snippet)).catch(() => []);
    expect(texts).toEqual([]);
  }
});

describe("every message can be reached", () => {
  test("in the sample session", async () => checkReach(SAMPLE));

  const data = findSharedData();
  const files = data === null ? [] : listTranscripts(data, "claude-code").slice(0, 3);
  test.skipIf(files.length === 0)("in real transcripts", async () => {
    for (const file of files) await checkReach(file);
  });
});

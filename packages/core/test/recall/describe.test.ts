import { describe, expect, test } from "vitest";
import type { Engine } from "@lossless/core";
import { longTalk, main, openArchive, other, say } from "./archive.ts";

const SMALL = {
  leafChunkTokens: 1_000,
  leafTargetTokens: 200,
  condensedTargetTokens: 300,
  freshTailCount: 8,
};

async function fold(engine: Engine): Promise<string> {
  for (let round = 0; round < 4; round++) {
    await engine.compact({ sessionKey: main.key, owner: main.owner, budgetTokens: 3_000, force: true });
  }
  await engine.maintain({ sessionKey: main.key, owner: main.owner, budgetTokens: 3_000 });
  const { items } = await engine.listSummaries({ conversationId: 1, limit: 500 });
  const root = items.toSorted((a, b) => b.messages - a.messages)[0];
  return root?.summaryId ?? "";
}

/** All messages below a summary, and the tokens of all summaries. */
async function collect(
  engine: Engine,
  id: string,
): Promise<{ messages: Set<number>; summaryTokens: number }> {
  const node = await engine.readSummary({ summaryId: id });
  const messages = new Set(node?.messageIds);
  let summaryTokens = 0;
  for (const source of node?.sourceIds ?? []) {
    const inner = await collect(engine, source);
    for (const message of inner.messages) messages.add(message);
    summaryTokens += inner.summaryTokens + ((await engine.readSummary({ summaryId: source }))?.tokens ?? 0);
  }
  return { messages, summaryTokens };
}

describe("describe", () => {
  test("shows a summary with its sources both ways and what lies below", async () => {
    await using archive = await openArchive({ settings: SMALL });
    await archive.engine.ingest({ session: main, messages: longTalk("n", 120) });
    const rootId = await fold(archive.engine);
    const root = await archive.engine.describe({ session: main, id: `see [${rootId}] there` });
    if (root.type !== "summary") throw new Error("not a summary");
    expect(root.descendantCount).toBeGreaterThan(0);
    expect(root.subtree.length).toBeGreaterThan(0);
    // The budget of a summary is that of everything below it, down to the messages.
    const { items } = await archive.engine.listMessages({ conversationId: 1, limit: 200 });
    const below = await collect(archive.engine, rootId);
    expect(root.messageTokens).toBe(
      items
        .filter(({ messageId }) => below.messages.has(messageId))
        .reduce((sum, { tokens }) => sum + tokens, 0),
    );
    expect(root.descendantTokens).toBe(below.summaryTokens);
    for (const node of root.subtree) {
      const inner = await collect(archive.engine, node.id);
      expect(node.descendantTokens).toBe(inner.summaryTokens);
      expect(node.messages).toBe(inner.messages.size);
    }
    const source = await archive.engine.describe({ session: main, id: root.parentIds[0] ?? "" });
    if (source.type !== "summary") throw new Error("not a summary");
    expect(source.childIds).toContain(rootId);
  });

  test("opens messages and runs verbatim, in pages that join to the whole", async () => {
    await using archive = await openArchive();
    const talk = longTalk("n", 30);
    const long = `${"Ein sehr langer Text mit 中文 und 🌱. ".repeat(400)}Ende`;
    await archive.engine.ingest({
      session: main,
      messages: [...talk, say("long", "user", long, 40), say("last", "user", "bye", 41)],
    });
    const texts = new Map<string, string>();
    for (let after: string | undefined; ;) {
      const page = await archive.engine.describe({
        session: main,
        id: "msg_1..msg_32",
        tokenCap: 300,
        after,
      });
      if (page.type !== "messages") throw new Error("not messages");
      for (const message of page.messages)
        texts.set(message.eventId, (texts.get(message.eventId) ?? "") + message.text);
      if (page.next === null) break;
      after = page.next;
    }
    expect(texts.get("long")).toBe(long);
    for (const { eventId, message } of talk)
      expect(texts.get(eventId ?? "")).toBe((message as { content: string }).content);
    expect(texts.size).toBe(32);
  });

  test("opens a large file in ranges of lines and bytes, and in pages that join to the whole", async () => {
    await using archive = await openArchive({ settings: { largeFileThresholdTokens: 1_000 } });
    const text = Array.from({ length: 400 }, (_, i) => `línea ${i}: 值=${i * 3}`).join("\n");
    await archive.engine.ingest({ session: main, messages: [say("f", "user", text)] });
    const [hit] = (await archive.engine.grep({ session: main, pattern: "línea 0:", scope: "files" })).hits;
    const id = hit?.id ?? "";
    const lines = await archive.engine.describe({ session: main, id, startLine: 3, endLine: 4 });
    expect(lines).toMatchObject({
      type: "file",
      content: "línea 2: 值=6\nlínea 3: 值=9\n",
      firstLine: 3,
      next: null,
      messageIds: ["msg_1"],
    });
    let whole = "";
    for (let after: string | undefined; ;) {
      const page = await archive.engine.describe({
        session: main,
        id,
        tokenCap: 200,
        after,
      });
      if (page.type !== "file") throw new Error("not a file");
      whole += page.content;
      if (page.next === null) break;
      after = page.next;
    }
    expect(whole).toBe(text);
  });

  test("refuses what is no id, what names several things, and what belongs to somebody else in the same words as what is not there", async () => {
    await using archive = await openArchive();
    await archive.engine.ingest({ session: main, messages: longTalk("n", 3) });
    await archive.engine.ingest({ session: other, messages: longTalk("o", 3) });
    const open = (id: string) => archive.engine.describe({ session: main, id });
    await expect(open("hello")).rejects.toMatchObject({ code: "usage" });
    await expect(open("msg_1 and msg_2")).rejects.toMatchObject({ code: "usage" });
    const foreign = await open("msg_4").catch((error: Error) => error.message);
    const missing = await open("msg_444").catch((error: Error) => error.message);
    expect(String(foreign).replaceAll("msg_4", "X")).toBe(String(missing).replaceAll("msg_444", "X"));
    await expect(open("msg_2..msg_5")).rejects.toMatchObject({ code: "not_found" });
  });
});

describe("expand", () => {
  test("reaches every message below the root, by expand and describe alone", async () => {
    await using archive = await openArchive({ settings: SMALL });
    const talk = longTalk("n", 160);
    await archive.engine.ingest({ session: main, messages: talk });
    const rootId = await fold(archive.engine);
    const root = await archive.engine.readSummary({ summaryId: rootId });
    const reached = new Map<string, string>();
    const pending = [rootId];
    const seen = new Set<string>();
    for (let id = pending.shift(); id !== undefined; id = pending.shift()) {
      if (seen.has(id)) continue;
      seen.add(id);
      const answer = await archive.engine.expand({ session: main, summaryIds: [id], tokenCap: 400 });
      for (const { eventId, text, textLeft } of answer.messages)
        if (textLeft === 0) reached.set(eventId, text);
      pending.push(...answer.left.summaryIds, ...answer.summaries.flatMap(({ parentIds }) => parentIds));
      for (const messageId of answer.left.messageIds) {
        const opened = await archive.engine.describe({ session: main, id: messageId, tokenCap: 2_000 });
        if (opened.type === "messages")
          for (const { eventId, text } of opened.messages) reached.set(eventId, text);
      }
    }
    expect(root?.messages).toBeGreaterThan(60);
    expect(reached.size).toBe(root?.messages);
    for (const [eventId, text] of reached) {
      const said = talk.find((one) => one.eventId === eventId)?.message as { content: string } | undefined;
      expect(text).toBe(said?.content);
    }
  });

  test("stays within the cap and says what is left", async () => {
    await using archive = await openArchive({ settings: SMALL });
    await archive.engine.ingest({ session: main, messages: longTalk("n", 120) });
    const rootId = await fold(archive.engine);
    const answer = await archive.engine.expand({ session: main, summaryIds: [rootId], tokenCap: 500 });
    expect(answer.totalTokens).toBeLessThanOrEqual(500);
    expect(answer.truncated).toBe(true);
    expect(answer.left.summaryIds.length + answer.left.messageIds.length).toBeGreaterThan(0);
    expect(answer.left.step).toMatchObject({ kind: "open_ids" });
    // What is left of two conversations is two runs, and each can be opened.
    const second = { ...main, key: "agent:main:orchard", id: "orchard-1" };
    await archive.engine.ingest({ session: second, messages: longTalk("o", 60) });
    await archive.engine.compact({
      sessionKey: second.key,
      owner: second.owner,
      budgetTokens: 3_000,
      force: true,
    });
    const { items } = await archive.engine.listSummaries({ conversationId: 2, limit: 10 });
    const leaves = await Promise.all(
      [1, 2].map(async (conversationId) => {
        const listed = await archive.engine.listSummaries({ conversationId, limit: 100 });
        return listed.items.find(({ kind }) => kind === "leaf")?.summaryId ?? "";
      }),
    );
    expect(items.length).toBeGreaterThan(0);
    const everywhere = { session: main, allConversations: true };
    const both = await archive.engine.expand({ ...everywhere, summaryIds: leaves, tokenCap: 100 });
    const runs = both.left.step?.kind === "open_ids" ? both.left.step.ids : [];
    expect(runs).toHaveLength(2);
    for (const run of runs)
      expect((await archive.engine.describe({ ...everywhere, id: run })).type).toBe("messages");
    await expect(archive.engine.expand({ session: main })).rejects.toMatchObject({ code: "usage" });
    await expect(archive.engine.expand({ session: other, summaryIds: [rootId] })).rejects.toMatchObject({
      code: "not_found",
    });
  });
});

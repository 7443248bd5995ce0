import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { resolveSettings } from "@lossless/core";
import { openEngine } from "lossless-claw";
import type { Engine } from "@lossless/core";
import { exportConversations, importHistory } from "lossless-claw/interchange";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { AgentMessage, ContextEngine } from "../src/host/host.ts";
import { makeEngine } from "./engine-parts.ts";
import { FakeTranscript } from "./fake-transcript.ts";

let folder: string;
let archive: Engine;
let parent: FakeTranscript;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "lossless-fork-"));
  archive = await openEngine({ database: join(folder, "lcm.db"), thread: false });
  parent = new FakeTranscript();
});

afterEach(async () => {
  await archive.close();
  await rm(folder, { recursive: true, force: true });
});

async function readText(id: string): Promise<string> {
  const message = await archive.readMessage({ messageId: Number(id.replace("msg_", "")) });
  return textOf(JSON.parse(Buffer.from(message?.bytes ?? []).toString("utf8")) as AgentMessage);
}

async function expectProven(): Promise<void> {
  expect((await archive.verify()).problems).toEqual([]);
}

function engineOf(transcript: FakeTranscript): ContextEngine {
  const { settings } = resolveSettings({ config: {}, configSource: "test", stateDir: folder });
  return makeEngine({ settings, folder, open: async () => archive, transcript });
}

async function playTurn(transcript: FakeTranscript, text: string): Promise<string> {
  const { sessionId, sessionKey } = transcript;
  const engine = engineOf(transcript);
  if (transcript.events.length > 0) await engine.bootstrap({ sessionId, sessionKey });
  const first = transcript.say("user", text);
  const last = transcript.say("assistant", `answer to ${text}`);
  const { status } = await engine.commitTurn(transcript.turn(first, last, `${sessionId} ${first}`));
  expect(status).toBe("committed");
  return last;
}

function forkOf(transcript: FakeTranscript, upTo: string, name: string): FakeTranscript {
  const child = FakeTranscript.fork(transcript, upTo, transcript.sessionId);
  child.sessionId = name;
  child.sessionKey = `agent:main:${name}`;
  return child;
}

async function assemble(
  { reader, sessionId, sessionKey }: FakeTranscript,
  tokenBudget = 50_000,
): Promise<string[]> {
  const { settings } = resolveSettings({ config: {}, configSource: "test", stateDir: folder });
  const engine = makeEngine({ settings, folder, open: async () => archive, transcript: { reader } });
  await engine.bootstrap({ sessionId, sessionKey });
  const { messages, estimatedTokens } = await engine.assemble({
    sessionId,
    sessionKey,
    messages: [],
    tokenBudget,
  });
  expect(estimatedTokens).toBeLessThanOrEqual(tokenBudget);
  return messages.map(textOf);
}

function textOf({ content }: AgentMessage): string {
  return typeof content === "string"
    ? content
    : (content as { text: string }[]).map(({ text }) => text).join("");
}

describe("a session that is a copy of another", () => {
  test("stores what was copied once, and shows it before its own", async () => {
    await playTurn(parent, "one");
    const place = await playTurn(parent, "two");
    const child = forkOf(parent, place, "child");
    await playTurn(child, "three");
    expect((await archive.status()).messages).toBe(6);
    expect(await assemble(child)).toEqual([
      "one",
      "answer to one",
      "two",
      "answer to two",
      "three",
      "answer to three",
    ]);
    await expectProven();
  });

  test("is not touched by what the parent says later, and the parent not by the child", async () => {
    const place = await playTurn(parent, "one");
    const child = forkOf(parent, place, "child");
    await playTurn(child, "in the child");
    await playTurn(parent, "in the parent");
    await playTurn(child, "again in the child");
    expect(await assemble(parent)).toEqual([
      "one",
      "answer to one",
      "in the parent",
      "answer to in the parent",
    ]);
    expect((await assemble(child)).slice(0, 4)).toEqual([
      "one",
      "answer to one",
      "in the child",
      "answer to in the child",
    ]);
    expect((await archive.status()).messages).toBe(8);
    await expectProven();
  });

  test("keeps to bootstrapMaxTokens of a long parent, the rest as one line that opens", async () => {
    const words = "the barge was moored at the northern pier before noon ".repeat(20);
    let place = "";
    for (let turn = 0; turn < 60; turn++) place = await playTurn(parent, `turn ${turn}: ${words}`);
    const child = forkOf(parent, place, "child");
    await playTurn(child, "and now?");
    const [line, ...shown] = await assemble(child);
    expect(line).toMatch(/^\[\d+ messages .* not shown here\. .*lcm_describe\(id="msg_1\.\.msg_\d+"\)/s);
    expect(shown.length).toBeLessThan(40);
    expect(shown.at(-3)).toContain("turn 59");
    const [, id = ""] = /id="([^"]+)"/.exec(line!) ?? [];
    const session = { key: child.sessionKey, owner: "main", id: child.sessionId };
    expect(await archive.describe({ id, session })).toMatchObject({ type: "messages" });
    await playTurn(child, "and then?");
    expect((await assemble(child)).slice(0, shown.length)).toEqual([line, ...shown].slice(0, shown.length));
    await expectProven();
  });

  test("shows one line for the parent where the room is small", async () => {
    const words = "the barge was moored at the northern pier before noon ".repeat(20);
    let place = "";
    for (let turn = 0; turn < 10; turn++) place = await playTurn(parent, `turn ${turn}: ${words}`);
    const child = forkOf(parent, place, "child");
    await playTurn(child, "and now?");
    const shown = await assemble(child, 1_000);
    expect(shown.length).toBe(3);
    expect(shown[0]).toMatch(/^\[20 messages/);
  });

  test("may be copied in its turn", async () => {
    const first = await playTurn(parent, "one");
    const child = forkOf(parent, first, "child");
    const second = await playTurn(child, "two");
    const grandchild = forkOf(child, second, "grandchild");
    await playTurn(grandchild, "three");
    expect((await assemble(grandchild)).filter((text) => !text.startsWith("answer"))).toEqual([
      "one",
      "two",
      "three",
    ]);
    expect((await archive.status()).messages).toBe(6);
    await expectProven();
  });

  test("finds what was said before it left its parent, and nothing that the parent was told later", async () => {
    await playTurn(parent, "the kestrel nests early");
    const place = await playTurn(parent, "the kestrel nests in the tower");
    const child = forkOf(parent, place, "child");
    const childPlace = await playTurn(child, "the kestrel of the child");
    const grandchild = forkOf(child, childPlace, "grandchild");
    await playTurn(parent, "the kestrel left the tower");
    await playTurn(child, "the kestrel came back to the child");
    await playTurn(grandchild, "the kestrel of the grandchild");
    const shared = ["the kestrel nests early", "the kestrel nests in the tower"];
    const expected: [FakeTranscript, string[]][] = [
      [parent, [...shared, "the kestrel left the tower"]],
      [child, [...shared, "the kestrel of the child", "the kestrel came back to the child"]],
      [grandchild, [...shared, "the kestrel of the child", "the kestrel of the grandchild"]],
    ];
    for (const [{ sessionKey: key, sessionId: id }, texts] of expected) {
      const session = { key, id, owner: "main" };
      for (const search of [
        { pattern: "kestrel", mode: "full_text" as const },
        { pattern: "kes.rel", mode: "regex" as const },
      ]) {
        const { hits } = await archive.grep({ ...search, session, role: "user", limit: 50 });
        const found = await Promise.all(hits.map(async (hit) => readText(hit.id)));
        expect(found.toSorted()).toEqual(texts.toSorted());
      }
    }
  });

  test("finds summaries of what was said before it left its parent, and no later ones", async () => {
    await archive.close();
    const database = join(folder, "lcm.db");
    const config = { leafChunkTokens: 2_000, leafMinFanout: 4, condensedMinFanout: 50 };
    const { settings } = resolveSettings({ env: {}, config, stateDir: folder });
    archive = await openEngine({ database, settings, thread: false });
    const words = "the barge was moored at the northern pier before noon ".repeat(20);
    let place = "";
    for (let turn = 0; turn < 30; turn++) place = await playTurn(parent, `turn ${turn}: ${words}`);
    const child = forkOf(parent, place, "child");
    await playTurn(child, "and now?");
    for (let turn = 30; turn < 60; turn++) await playTurn(parent, `turn ${turn}: ${words}`);
    await archive.compact({ conversationId: 1, budgetTokens: 4_000, force: true });
    const search = async ({ sessionKey: key, sessionId: id }: FakeTranscript) => {
      const session = { key, id, owner: "main" };
      const { hits } = await archive.grep({
        pattern: "barge",
        mode: "full_text",
        scope: "summaries",
        session,
        limit: 50,
      });
      return hits.map((hit) => hit.id).toSorted();
    };
    const { items } = await archive.listSummaries({ conversationId: 1, limit: 100 });
    const { items: rows } = await archive.listMessages({ conversationId: 1, limit: 60 });
    const left = rows.at(-1)?.position ?? 0;
    const before = items.filter(({ state, endPosition }) => state === "cover" && endPosition <= left);
    expect(before.length).toBeGreaterThan(0);
    expect((await search(parent)).length).toBeGreaterThan(before.length);
    expect(await search(child)).toEqual(before.map(({ summaryId }) => summaryId).toSorted());
  });

  test("adds nothing when its transcript is read from the start again", async () => {
    const place = await playTurn(parent, "one");
    const child = forkOf(parent, place, "child");
    await playTurn(child, "two");
    child.rewrite();
    expect((await assemble(child)).length).toBe(4);
    expect((await archive.status()).messages).toBe(4);
    await expectProven();
  });

  test("does not change its parent's messages when its own copy of them was edited", async () => {
    const place = await playTurn(parent, "one");
    const child = forkOf(parent, place, "child");
    await playTurn(child, "two");
    child.edit(place, "not what the parent says");
    await assemble(child);
    expect((await archive.status()).messages).toBe(4);
    await expectProven();
  });

  test("stores everything itself when its parent is not in the archive", async () => {
    parent.say("user", "never stored");
    const place = parent.say("assistant", "nor this");
    const child = forkOf(parent, place, "child");
    await playTurn(child, "two");
    expect((await archive.status()).messages).toBe(4);
    await expectProven();
  });

  test("loses what is forgotten in its parent", async () => {
    await playTurn(parent, "a secret");
    const place = await playTurn(parent, "no secret");
    const child = forkOf(parent, place, "child");
    await playTurn(child, "and now?");
    await archive.forget({ messageIds: [1, 2], reason: "test" });
    expect(await assemble(child)).toEqual([
      "no secret",
      "answer to no secret",
      "and now?",
      "answer to and now?",
    ]);
    await expectProven();
  });

  test.each([
    ["what it shows", "UPDATE fork_items SET messages = 7 WHERE ordinal = 0"],
    ["a name", "DELETE FROM event_ids WHERE kind = 2 AND event_id = 'e1'"],
    ["the place it left", "UPDATE conversations SET fork_seq = 1 WHERE parent_id IS NOT NULL"],
    ["the parent's chain", "UPDATE messages SET chain = x'00' WHERE seq = 2 AND conversation_id = 1"],
  ])("cannot be proven when %s was changed behind its back", async (_what, sql) => {
    const place = await playTurn(parent, "one");
    const child = forkOf(parent, place, "child");
    await playTurn(child, "two");
    await expectProven();
    const database = new DatabaseSync(join(folder, "lcm.db"));
    database.exec(sql);
    database.close();
    const { problems } = await archive.verify();
    expect(problems.some((problem) => /fork|chain|event_ids/.test(problem.code))).toBe(true);
    expect(problems.some((problem) => /conversation 2/.test(`${problem.id} ${problem.message}`))).toBe(true);
  });
});

test("a fork that is brought over to another archive is proven there too", async () => {
  const place = await playTurn(parent, "one");
  const child = forkOf(parent, place, "child");
  await playTurn(child, "two");
  const out = join(folder, "all.lcmx.zst");
  await exportConversations({ database: join(folder, "lcm.db"), format: "archive", out });
  const database = join(folder, "other.db");
  await importHistory("archive", { path: out, database, largeFileThresholdTokens: 25_000 });
  const other = await openEngine({ database, thread: false });
  const report = await other.verify();
  await other.close();
  expect(report).toMatchObject({ ok: true, messages: 4, conversations: 2 });
});

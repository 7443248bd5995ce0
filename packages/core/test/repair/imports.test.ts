/** What an import brought in is known, and can be removed as a whole; whatever else is in the archive stays as it was. */
import { existsSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { resolveSettings } from "@lossless/core";
import { openEngine } from "lossless-claw";
import { importTranscript } from "@lossless/interchange";
import { exportConversations, importHistory } from "lossless-claw/interchange";
import type { Engine } from "@lossless/core";
import { listArchiveCopies } from "../../src/repair/backup.ts";
import { removeImports, restoreBackup } from "lossless-claw/repair";
import { decideRemoval, listImports, planRemoval } from "../../src/repair/imports.ts";
import type { ConversationTies, ImportedPart } from "../../src/store/repair.ts";
import { EMPTIED_TABLES } from "../../src/archive/remove.ts";
import { makeTemporaryFolder } from "@lossless/testkit";
import type { TemporaryFolder } from "@lossless/testkit";
import { renderTakeBack } from "@lossless/testkit/older-archive.ts";
import { expect, test } from "vitest";

const LIVE = { key: "agent:main:live", id: "live", owner: "main" };
const BIG = `see ${"lorem ipsum dolor ".repeat(12_000)}`;

const line = (id: string, text: string): string =>
  `${JSON.stringify({ type: "user", uuid: id, parentUuid: null, isSidechain: false, sessionId: "talk", timestamp: "2026-02-02T07:05:09.949Z", message: { role: "user", content: text } })}\n`;
const lines = (from: number, to: number): string =>
  Array.from({ length: to - from }, (_, n) =>
    line(`u${from + n}`, n + from === 3 ? BIG : `walrus number ${from + n} `.repeat(40)),
  ).join("");

interface Desk {
  readonly engine: Engine;
  readonly folder: TemporaryFolder;
  readonly databasePath: string;
  readonly filesDir: string;
}

async function withDesk(work: (desk: Desk) => Promise<void>): Promise<void> {
  using folder = makeTemporaryFolder();
  const databasePath = folder.file("lcm.db");
  const { settings } = resolveSettings({
    env: {},
    config: { databasePath, leafChunkTokens: 600, leafMinFanout: 3, freshTailCount: 4 },
  });
  const engine = await openEngine({ database: databasePath, settings, thread: false });
  try {
    await work({ engine, folder, databasePath, filesDir: folder.file("lcm-files") });
  } finally {
    await engine.close();
  }
}

const say = (engine: Engine, session: typeof LIVE, number: number) =>
  engine.ingest({
    session,
    messages: [{ eventId: `live${number}`, message: { role: "user", content: `heron ${number}` } }],
  });

async function importLines({ engine, folder }: Desk, content: string): Promise<string> {
  const path = folder.file("talk.jsonl");
  writeFileSync(path, content);
  await importTranscript({ engine, path });
  return (await listImports(engine))[0]?.importId ?? "";
}

async function readAll(engine: Engine, conversationId: number): Promise<unknown[]> {
  const { items } = await engine.listMessages({ conversationId, limit: 1_000 });
  return Promise.all(items.map(async ({ messageId }) => (await engine.readMessage({ messageId }))?.view));
}

test("an import is listed with what it brought in, and removed without a trace in the archive", async () => {
  await withDesk(async (desk) => {
    const { engine, folder, databasePath, filesDir } = desk;
    await say(engine, LIVE, 1);
    const before = await readAll(engine, 1);
    const importId = await importLines(desk, lines(0, 40));
    const imported = await readAll(engine, 2);
    await engine.compact({ conversationId: 2, budgetTokens: 1_200, targetTokens: 300, force: true });
    expect((await engine.listSummaries({ conversationId: 2, limit: 10 })).items).not.toEqual([]);
    expect(await listImports(engine)).toMatchObject([
      { importId, sources: [folder.file("talk.jsonl")], conversationIds: [2], messages: 40 },
    ]);
    const plan = await planRemoval(engine, [importId]);
    expect(plan).toMatchObject({ remove: [{ conversationId: 2, messages: 40 }], keep: [] });
    const { removed, copyPath } = await removeImports(desk, plan);
    expect(removed).toMatchObject({ conversations: 1, messages: 40, files: 1 });
    expect((await engine.verify()).problems).toEqual([]);
    expect(await listImports(engine)).toEqual([]);
    expect((await engine.grep({ pattern: "walrus", mode: "full_text" })).hits).toEqual([]);
    expect((await engine.grep({ pattern: "walrus", mode: "regex" })).hits).toEqual([]);
    expect(
      readdirSync(filesDir, { recursive: true }).filter((name) => String(name).includes("file_")),
    ).toEqual([]);
    expect(await readAll(engine, 1)).toEqual(before);
    expect(listArchiveCopies(databasePath).map(({ path }) => path)).toContain(copyPath);
    // The next rows get ids of their own, and the same file can be imported again.
    const again = await say(engine, { ...LIVE, key: "agent:main:next", id: "next" }, 2);
    expect(again).toMatchObject({ conversationId: 3, results: [{ messageId: 42 }] });
    await importTranscript({ engine, path: folder.file("talk.jsonl") });
    expect(await readAll(engine, 4)).toEqual(imported);
    expect((await engine.verify()).problems).toEqual([]);
  });
});

test("the copy that is made first can be restored", async () => {
  await withDesk(async (desk) => {
    const { engine, databasePath, filesDir } = desk;
    const importId = await importLines(desk, lines(0, 8));
    const imported = await readAll(engine, 1);
    const { copyPath } = await removeImports(desk, await planRemoval(engine, [importId]));
    await engine.close();
    await restoreBackup({ backupPath: copyPath, databasePath, filesDir });
    const restored = await openEngine({ database: databasePath, thread: false });
    expect(await readAll(restored, 1)).toEqual(imported);
    await restored.close();
  });
});

test("a conversation that something else added to stays, unless all of that goes too", async () => {
  await withDesk(async (desk) => {
    const { engine } = desk;
    const first = await importLines(desk, lines(0, 5));
    const second = await importLines(desk, lines(0, 9));
    const reason = `4 of its 9 messages were stored another way: 4 by ${second}`;
    const plan = await planRemoval(engine, [first]);
    expect(plan).toMatchObject({ remove: [], keep: [{ conversationId: 1, reason }] });
    await expect(removeImports(desk, plan)).rejects.toThrow(
      "none of its conversations can be removed as a whole",
    );
    const both = await planRemoval(engine, [first, second]);
    expect(both.remove).toHaveLength(1);
    // A host goes on in the session meanwhile: what was planned no longer holds, and nothing is removed.
    await say(engine, { ...LIVE, key: "claude-code:talk", id: "talk" }, 1);
    await expect(removeImports(desk, both)).rejects.toThrow("changed meanwhile");
    expect(await readAll(engine, 1)).toHaveLength(10);
    expect((await planRemoval(engine, [first, second])).keep[0]?.reason).toContain("1 by something other");
    expect((await engine.verify()).problems).toEqual([]);
  });
});

test("forgotten messages and forks keep a conversation", async () => {
  await withDesk(async (desk) => {
    const { engine } = desk;
    const importId = await importLines(desk, lines(4, 9));
    const child = { key: "agent:main:child", id: "child", owner: "main" };
    await engine.fork({ session: child, parentSessionId: "talk", eventIds: ["u4", "u5"] });
    const [kept] = (await planRemoval(engine, [importId])).keep;
    expect(kept?.reason).toBe("conversation 2 was forked from it");
    await engine.forget({ messageIds: [1], reason: "asked for" });
    const [forgotten] = (await planRemoval(engine, [importId])).keep;
    expect(forgotten?.reason).toContain("1 of its messages were forgotten");
  });
});

test("what an archive brought in is known, and nothing of one that was refused", async () => {
  await withDesk(async (desk) => {
    const { engine, folder, databasePath, filesDir } = desk;
    await say(engine, LIVE, 1);
    const out = folder.file("all.lcmx");
    await exportConversations({ database: databasePath, format: "archive", out });
    const other = { database: folder.file("other.db"), filesDir: folder.file("other-files") };
    const request = { ...other, path: out, largeFileThresholdTokens: 25_000 };
    await importHistory("archive", request);
    writeFileSync(out, "half an archive");
    await expect(importHistory("archive", request)).rejects.toThrow();
    const reader = await openEngine({ ...other, thread: false });
    expect(await listImports(reader)).toMatchObject([{ sources: [out], conversationIds: [1], messages: 1 }]);
    await reader.close();
    expect(existsSync(filesDir)).toBe(false);
    expect(await listImports(engine)).toEqual([]);
  });
});

test("of an older archive those conversations count as imported that only imports wrote to", async () => {
  await withDesk(async (desk) => {
    const { engine, databasePath, folder } = desk;
    await say(engine, LIVE, 1);
    await importLines(desk, lines(0, 5));
    await engine.close();
    const database = new DatabaseSync(databasePath);
    database.exec(renderTakeBack(17));
    database.close();
    const opened = await openEngine({ database: databasePath, thread: false });
    const [found, ...others] = await listImports(opened);
    expect(others).toEqual([]);
    expect(found).toMatchObject({ conversationIds: [2], messages: 5 });
    await removeImports({ ...desk, engine: opened }, await planRemoval(opened, [found?.importId ?? ""]));
    expect((await opened.verify()).problems).toEqual([]);
    await opened.close();
    expect(existsSync(join(folder.path, "lcm.db"))).toBe(true);
  });
});

test("of an older archive a conversation that had a turn since its import does not count as imported", async () => {
  await withDesk(async (desk) => {
    const { engine, databasePath } = desk;
    await importLines(desk, lines(0, 3));
    const [imported] = (await engine.listConversations({ limit: 1 })).items;
    const { owner = "", sessionKey: key = "", sessionId: id = "" } = imported ?? {};
    await engine.ingest({
      session: { owner, key, id },
      messages: [{ eventId: "live1", message: { role: "user", content: "heron" } }],
      turn: { advancementKey: "turn 1" },
    });
    await engine.close();
    const database = new DatabaseSync(databasePath);
    database.exec(renderTakeBack(17));
    database.close();
    const opened = await openEngine({ database: databasePath, thread: false });
    expect(await listImports(opened)).toEqual([]);
    await opened.close();
  });
});

test("a removal empties every table that refers to what it removes", async () => {
  await withDesk(async ({ databasePath }) => {
    const database = new DatabaseSync(databasePath, { readOnly: true });
    const referring = database
      .prepare(
        `SELECT DISTINCT t.name FROM sqlite_schema t JOIN pragma_foreign_key_list(t.name) f
         WHERE t.type = 'table' AND f."table" IN ('conversations', 'messages', 'sessions', 'summaries')`,
      )
      .all()
      .map(({ name }) => String(name));
    database.close();
    expect(referring).toContain("vectors_pending");
    expect(referring.filter((name) => !EMPTIED_TABLES.some((emptied) => emptied === name))).toEqual([]);
  });
});

test("a conversation stays when one that stays shares its session", () => {
  const ties = (conversationId: number, sharesSessionWith: number[]): ConversationTies => ({
    conversationId,
    owner: "main",
    sessionKey: "k",
    messages: 2,
    summaries: 0,
    headSeq: 2,
    forgotten: 0,
    forks: [],
    sharesSessionWith,
  });
  const part = (conversationId: number, messages: number): ImportedPart => ({
    importId: "imp_1",
    source: "a",
    at: 0,
    conversationId,
    messages,
  });
  const chain = [ties(1, [2]), ties(2, [1, 3]), ties(3, [2]), ties(4, [])];
  const all = [part(1, 2), part(2, 2), part(3, 2), part(4, 2)];
  const gone = (parts: ImportedPart[]): number[] =>
    decideRemoval(chain, parts, ["imp_1"]).remove.map(({ conversationId }) => conversationId);
  expect(gone(all)).toEqual([1, 2, 3, 4]);
  expect(gone([part(1, 2), part(2, 2), part(3, 1), part(4, 2)])).toEqual([4]);
});

test("what is removed while the index is rebuilt is not in the new one", async () => {
  await withDesk(async (desk) => {
    const { engine } = desk;
    await importLines(desk, lines(4, 304));
    await say(engine, LIVE, 1);
    const expected = await engine.readTies({ conversationIds: [1] });
    let removal: Promise<unknown> | null = null;
    await engine.reindex({
      onProgress: (done) => {
        if (done > 0) removal ??= engine.removeConversations({ expected });
      },
    });
    expect(await removal).toMatchObject({ messages: 300 });
    expect((await engine.verify()).problems).toEqual([]);
  });
});

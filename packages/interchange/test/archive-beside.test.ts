/** An archive is brought in beside other writers: they do not wait, see nothing of it before its end, and whatever they store stays. */
import { readdirSync, rmSync } from "node:fs";
import { deriveMessage } from "@lossless/core/formats";
import { SqliteStore } from "@lossless/sqlite";
import { makeTemporaryFolder } from "@lossless/testkit";
import { allMessages, batchOf, clock, findWord, fold, makeEvent } from "@lossless/testkit/contract/parts.ts";
import { say, session, textOf } from "@lossless/testkit/contract/parts.ts";
import { expect, onTestFinished, test, vi } from "vitest";
import { exportArchive } from "../src/archive/export-archive.ts";
import { importArchive } from "../src/archive/import-archive.ts";
import type { ArchiveImportResult } from "../src/archive/archive-intake.ts";

/** Enough lines that an import tells of its progress more than once. */
const MESSAGES = 600;

interface Desk {
  readonly target: SqliteStore;
  /** Another program with the same archive, which never waits. */
  readonly other: SqliteStore;
  /** Imports, and calls `meanwhile` in the middle of it. */
  readonly bring: (meanwhile: () => void, how?: { always: boolean }) => Promise<ArchiveImportResult>;
  /** Adds a conversation to the file. */
  readonly addConversation: () => Promise<void>;
  readonly listFiles: () => string[];
}

async function openDesk(): Promise<Desk> {
  const folder = makeTemporaryFolder();
  const open = (name: string, busyLimitMs: number): SqliteStore =>
    new SqliteStore({
      path: folder.file(`${name}.db`),
      filesDir: folder.file(`${name}-files`),
      create: true,
      derive: deriveMessage,
      busyLimitMs,
    });
  const source = open("source", 1_000);
  const events = Array.from({ length: MESSAGES }, (_, n) => makeEvent(`e${n}`, say(`heron ${n}`)));
  const table = `<file name="stock.csv" mime="text/csv">${"bolt,4\n".repeat(30_000)}</file>`;
  const { conversationId } = await source.append(
    batchOf([...events, makeEvent("paste", say(`look: ${table}`))], { turn: { advancementKey: "turn" } }),
  );
  await fold(source, conversationId, { count: 5, text: textOf(1, "tells of a stork") });
  const path = folder.file("moved.lcmx");
  await exportArchive(source, { out: path });
  const addConversation = async (): Promise<void> => {
    const added = { ...session, key: "agent:main:added", id: "added" };
    await source.append(batchOf(events, { session: added }));
    rmSync(path);
    await exportArchive(source, { out: path });
  };
  const [target, other] = [open("target", 1_000), open("target", 0)];
  onTestFinished(async () => {
    await source.close();
    await other.close();
    await target.close();
    folder[Symbol.dispose]();
  });
  const bring: Desk["bring"] = (meanwhile, { always } = { always: false }) => {
    let isDone = false;
    const onProgress = (): void => {
      if (!isDone || always) meanwhile();
      isDone = true;
    };
    return importArchive(target, { path, derive: deriveMessage, now: clock.now(), onProgress });
  };
  const listFiles = (): string[] =>
    readdirSync(folder.path, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile() && /target/.test(`${entry.parentPath}/${entry.name}`))
      .map((entry) => entry.name);
  return { target, other, bring, addConversation, listFiles };
}

const prove = async (store: SqliteStore): Promise<void> =>
  expect((await store.verify(deriveMessage, () => undefined)).problems).toEqual([]);

test("others write while an archive is brought in, and see none of it before its end", async () => {
  const { target, other, bring, listFiles } = await openDesk();
  const own = { ...session, key: "agent:main:own", id: "own" };
  const write = (id: string) => other.append(batchOf([makeEvent(id, say(`crane ${id}`))], { session: own }));
  await write("before");
  const meanwhile: Promise<unknown>[] = [];
  const report = await bring(() => meanwhile.push(write("meanwhile"), other.status()));
  const [written, seen] = await Promise.all(meanwhile);
  expect(written).toMatchObject({ results: [{ outcome: "stored" }] });
  expect(seen).toMatchObject({ conversations: 1, messages: 2 });
  expect(report).toMatchObject({ imported: MESSAGES + 1, summaries: 1, problems: [] });
  const [conversationId = 0] = report.conversationIds;
  expect(await allMessages(target, conversationId)).toHaveLength(MESSAGES + 1);
  await target.flushIndex();
  expect(await findWord(target, "heron", {})).not.toEqual([]);
  expect(await findWord(target, "crane", {})).toHaveLength(2);
  expect(listFiles().filter((name) => name.includes("intake"))).toEqual([]);
  await write("after");
  await prove(target);
});

test("numbers that an import did not need are given again", async () => {
  const { target, bring } = await openDesk();
  const { conversationIds } = await bring(() => undefined);
  const last = Math.max(...(await allMessages(target, conversationIds[0] ?? 0)).map((row) => row.messageId));
  const { results } = await target.append(batchOf([makeEvent("next", say("next"))]));
  expect(results[0]?.messageId).toBe(last + 1);
  expect(last).toBe(MESSAGES + 1);
});

test("what somebody else stored meanwhile under the same name stays, and nothing is left of the import", async () => {
  const { target, other, bring, listFiles } = await openDesk();
  const before = listFiles();
  const meanwhile: Promise<unknown>[] = [];
  const report = await bring(() => meanwhile.push(other.append(batchOf([makeEvent("own", say("crane"))]))));
  expect(await meanwhile[0]).toMatchObject({ results: [{ outcome: "stored" }] });
  expect(report.problems.map(({ code }) => code)).toEqual(["conflict"]);
  expect(report).toMatchObject({ imported: 0, conversationIds: [] });
  expect((await target.status()).messages).toBe(1);
  expect(listFiles()).toEqual(before);
  await prove(target);
});

test("others write while an archive is compared that is stored already, and it adds nothing", async () => {
  const { target, other, bring, listFiles } = await openDesk();
  const first = await bring(() => undefined);
  const before = listFiles();
  const taken = vi.spyOn(target, "bringIn");
  const written: Promise<unknown>[] = [];
  const again = await bring(() => written.push(other.append(batchOf([makeEvent("later", say("crane"))]))));
  expect(await written[0]).toMatchObject({ results: [{ outcome: "stored" }] });
  expect(again).toMatchObject({ imported: 0, skipped: MESSAGES + 1, summaries: 0, problems: [] });
  expect(again.conversationIds).toEqual(first.conversationIds);
  expect(taken).toHaveBeenCalledOnce();
  expect(listFiles()).toEqual(before);
  await prove(target);
});

test("of an archive that is stored in part, only what is new is brought in, while others write to the end", async () => {
  const { target, other, bring, addConversation } = await openDesk();
  await bring(() => undefined);
  await addConversation();
  const written: Promise<unknown>[] = [];
  const onEvery = (): void =>
    void written.push(other.append(batchOf([makeEvent(`w${written.length}`, say("crane"))])));
  const report = await bring(onEvery, { always: true });
  expect(written.length).toBeGreaterThan(3);
  for (const one of await Promise.all(written))
    expect(one).toMatchObject({ results: [{ outcome: "stored" }] });
  expect(report).toMatchObject({ imported: MESSAGES, skipped: MESSAGES + 1, problems: [] });
  expect(report.conversationIds).toHaveLength(2);
  await prove(target);
});

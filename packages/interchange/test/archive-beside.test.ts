/** An archive is brought in beside other writers: they do not wait, see nothing of it before its end, and whatever they store stays. */
import { readdirSync, readFileSync, rmSync } from "node:fs";
import { deriveMessage } from "@lossless/core/formats";
import { SqliteStore } from "@lossless/sqlite";
import { Connection } from "@lossless/sqlite/testing";
import { makeTemporaryFolder } from "@lossless/testkit";
import { allMessages, batchOf, clock, findWord, fold, makeEvent } from "@lossless/testkit/contract/parts.ts";
import { say, session, textOf } from "@lossless/testkit/contract/parts.ts";
import { expect, onTestFinished, test, vi } from "vitest";
import { exportArchive } from "../src/archive/export-archive.ts";
import { importArchive } from "../src/archive/import-archive.ts";
import type { ArchiveImportResult } from "../src/archive/archive-intake.ts";

/** Enough lines that an import tells of its progress, and more than once where there are twice as many. */
const MESSAGES = 300;

interface Desk {
  readonly target: SqliteStore;
  /** Another program with the same archive, which never waits. */
  readonly other: SqliteStore;
  /** Imports, and calls `meanwhile` in the middle of it. */
  readonly bring: (meanwhile: () => void, how?: { always: boolean }) => Promise<ArchiveImportResult>;
  /** Adds a conversation to the file. */
  readonly addConversation: () => Promise<void>;
  /** Goes on with the conversation of the file: more messages, one of them with a large file, a revision, and another summary. */
  readonly goOn: () => Promise<void>;
  /** The records of an archive file that a store would write now. */
  readonly exportOf: (store: SqliteStore) => Promise<string>;
  readonly source: SqliteStore;
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
  const exportAgain = async (): Promise<void> => {
    rmSync(path);
    await exportArchive(source, { out: path });
  };
  const addConversation = async (): Promise<void> => {
    const added = { ...session, key: "agent:main:added", id: "added" };
    await source.append(batchOf(events, { session: added }));
    await exportAgain();
  };
  const goOn = async (): Promise<void> => {
    const more = Array.from({ length: MESSAGES }, (_, n) => makeEvent(`f${n}`, say(`plover ${n}`)));
    const other = makeEvent("paste 2", say(`look: ${table.replace("bolt", "nuts")}`));
    await source.append(batchOf([...more, other, makeEvent("e3", say("heron 3, again"))]));
    await fold(source, conversationId, { count: 7, text: textOf(2, "tells of a wren") });
    await exportAgain();
  };
  let exports = 0;
  const exportOf = async (store: SqliteStore): Promise<string> => {
    const out = folder.file(`export-${(exports += 1)}.lcmx`);
    await exportArchive(store, { out });
    return readFileSync(out, "utf8");
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
  return { source, target, other, bring, addConversation, goOn, exportOf, listFiles };
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

/** Which databases were locked for the whole of an import. */
function watchHeld(): string[] {
  const held: string[] = [];
  const { writeThroughout } = Connection.prototype;
  const spy = vi.spyOn(Connection.prototype, "writeThroughout").mockImplementation(function (
    this: Connection,
    work,
  ) {
    held.push(this.path);
    return writeThroughout.call(this, work) as ReturnType<typeof work>;
  });
  onTestFinished(() => spy.mockRestore());
  return held;
}

async function addVector(store: SqliteStore, messageId: number): Promise<void> {
  const claim = { holder: "one", now: clock.now(), leaseMs: 1_000 };
  const spaceId = (await store.claimVectorSpace({ ...claim, model: "m" }))?.spaceId ?? 0;
  const vectors = [{ messageId, vector: Float32Array.of(1, 0) }];
  expect(await store.storeVectors({ ...claim, spaceId, vectors })).toMatchObject({ stored: 1 });
}

const isBeside = (path: string): boolean => /-intake-[0-9a-f]{12}$/.test(path);

test("a stored conversation goes on while others write to the end, and is then what it is in the file", async () => {
  const { source, target, other, bring, goOn, exportOf, listFiles } = await openDesk();
  const { conversationIds } = await bring(() => undefined);
  const [, , , revised] = await allMessages(target, conversationIds[0] ?? 0);
  await addVector(target, revised?.messageId ?? 0);
  await goOn();
  const held = watchHeld();
  const own = { ...session, key: "agent:main:own", id: "own" };
  const written: Promise<unknown>[] = [];
  const onEvery = (): void =>
    void written.push(
      other.append(batchOf([makeEvent(`w${written.length}`, say("crane"))], { session: own })),
    );
  const report = await bring(onEvery, { always: true });
  expect(report).toMatchObject({
    imported: MESSAGES + 2,
    skipped: MESSAGES + 1,
    summaries: 1,
    conversationIds,
    problems: [],
  });
  // The other program never waits: each of these would have failed if the archive had been locked.
  expect(written.length).toBeGreaterThan(3);
  for (const one of await Promise.all(written))
    expect(one).toMatchObject({ results: [{ outcome: "stored" }] });
  expect(held.map(isBeside)).toEqual([true]);
  expect(listFiles().filter((name) => name.includes("intake"))).toEqual([]);
  await target.flushIndex();
  expect(await findWord(target, "plover", {})).not.toEqual([]);
  expect((await target.countVectors()).spaces.map(({ vectors }) => vectors)).not.toContain(1);
  await prove(target);
  const ours = (await exportOf(target))
    .split("\n")
    .filter((line) => /"record":"(?:row|summary|cover)"/.test(line));
  const theirs = (await exportOf(source)).split("\n");
  expect(ours.filter((line) => !theirs.includes(line) && !line.includes('"sessionId":"own"'))).toEqual([
    '{"record":"cover","summaries":[]}',
  ]);
});

test("what somebody else adds to a conversation while it goes on stays, and the import finds it", async () => {
  const { target, other, bring, goOn, listFiles } = await openDesk();
  const { conversationIds } = await bring(() => undefined);
  await goOn();
  const before = listFiles();
  const held = watchHeld();
  const written: Promise<unknown>[] = [];
  let calls = 0;
  // Twice while the file is compared, then once while it is brought in.
  const onThird = (): void => {
    if ((calls += 1) === 3) written.push(other.append(batchOf([makeEvent("own", say("crane"))])));
  };
  const report = await bring(onThird, { always: true });
  expect(await written[0]).toMatchObject({ results: [{ outcome: "stored" }] });
  expect(held.map(isBeside)).toEqual([true, true]);
  expect(report).toMatchObject({ imported: 0, conversationIds });
  expect(report.problems.map(({ code }) => code)).toEqual(["conflict"]);
  expect(await allMessages(target, conversationIds[0] ?? 0)).toHaveLength(MESSAGES + 2);
  expect(listFiles()).toEqual(before);
  await prove(target);
});

test("an import that is interfered with again and again takes the lock, and ends", async () => {
  const { target, other, bring, goOn } = await openDesk();
  await bring(() => undefined);
  await goOn();
  const held = watchHeld();
  const moved: boolean[] = [];
  const { conversationId } = await target.append(batchOf([]));
  // Labels change the row of the conversation and none of its messages.
  const onEvery = (): void => {
    const name = `name ${moved.length}`;
    moved.push(true);
    other.label({ conversationId, update: { name }, now: clock.now() }).catch(() => moved.pop());
  };
  const report = await bring(onEvery, { always: true });
  expect(held.map(isBeside)).toEqual([true, true, false]);
  expect(report).toMatchObject({ imported: MESSAGES + 2, problems: [] });
  await prove(target);
});

test("a large file stays when another program gives up on an import that has stored the same one", async () => {
  const { target, other } = await openDesk();
  await target.append(batchOf([makeEvent("first", say("heron"))]));
  const table = `<file name="stock.csv" mime="text/csv">${"nuts,4\n".repeat(30_000)}</file>`;
  const batch = batchOf([makeEvent("paste", say(`look: ${table}`))]);
  let isGivenUp = false;
  const giveUp = async (): Promise<void> => {
    if (isGivenUp) return;
    isGivenUp = true;
    const attempt = other.bringIn(
      async (into) => {
        await into.append(batch);
        throw new Error("given up");
      },
      { isRepeatable: true },
    );
    await expect(attempt).rejects.toThrow("given up");
  };
  await target.bringIn(
    async (into) => {
      await into.append(batch);
      await giveUp();
    },
    { isRepeatable: true },
  );
  expect((await target.listBlobs()).length).toBe(1);
  await prove(target);
});

test("an archive that keeps no log is imported into as well", async () => {
  const spy = vi.spyOn(Connection.prototype, "enableWal").mockImplementation(() => undefined);
  onTestFinished(() => spy.mockRestore());
  const { target, bring, goOn } = await openDesk();
  await bring(() => undefined);
  await goOn();
  expect(await bring(() => undefined)).toMatchObject({ imported: MESSAGES + 2, problems: [] });
  await prove(target);
});

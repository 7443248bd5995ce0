import { fork } from "node:child_process";
import { once } from "node:events";
import { copyFileSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { fileURLToPath } from "node:url";

import { makeRandom, makeTemporaryFolder } from "@lossless/testkit";
import { rounds } from "@lossless/testkit/rounds.ts";
import { describe, expect, onTestFinished, test } from "vitest";

import type { Engine } from "../../src/index.ts";

import { SqliteStore } from "@lossless/sqlite";

import { openFolding } from "./fold-engine.ts";
import { ArchiveView, findFaults } from "./context-checks.ts";
import { BUDGET_TOKENS, CONVERSATION, foldSettings, makeMarkedTurns } from "./fold-program.ts";
import { SESSION } from "./conversation.ts";

const PROGRAM = fileURLToPath(new URL("fold-program.ts", import.meta.url));
const LEASE_MS = 120_000;
const TURNS = 26;
/** The turns are most of the way to the threshold of `BUDGET_TOKENS`, and beyond that of this budget. */
const DUE_TOKENS = 4_000;
const KILLS = rounds({ test: 2, soak: 8 });

/** An archive whose leaves are made and wait; nothing is published. */
async function makePrepared(): Promise<{ database: string; prepared: number }> {
  const folder = makeTemporaryFolder();
  onTestFinished(() => folder[Symbol.dispose]());
  const database = folder.file("lcm.db");
  const engine = await openFolding(database);
  await engine.ingest({ session: SESSION, messages: makeMarkedTurns(0, TURNS) });
  await engine.maintain({ conversationId: CONVERSATION, budgetTokens: BUDGET_TOKENS });
  const { summaries, foldRevision } = await readFolding(engine);
  expect(summaries).toMatchObject({ cover: 0 });
  expect(foldRevision).toBe(0);
  expect(summaries.prepared).toBeGreaterThan(4);
  await engine.close();
  return { database, prepared: summaries.prepared };
}

async function readFolding(engine: Engine) {
  const { folding } = await engine.status({ sessionKey: SESSION.key });
  if (!folding) throw new Error("there is no folding status");
  return folding;
}

async function expectSound(engine: Engine, database: string, turns = TURNS): Promise<void> {
  expect((await engine.verify()).problems).toEqual([]);
  const archive = new ArchiveView(database, CONVERSATION);
  expect(archive.shown).toHaveLength(2 * turns);
  const context = await engine.assemble({
    conversationId: CONVERSATION,
    budgetTokens: BUDGET_TOKENS,
    checkGrammars: true,
  });
  expect(context && findFaults(context, archive)).toEqual([]);
}

/** The stored leaves with the runs they stand for, read as a fold reads them. */
async function readStored(store: SqliteStore) {
  const { items } = await store.readCoverHead({
    conversationId: CONVERSATION,
    maxMessageTokens: Number.MAX_SAFE_INTEGER,
  });
  const tail = await store.readCoverTail({ conversationId: CONVERSATION, maxTokens: 0, maxMessages: 0 });
  const folds = [];
  for (const { summaryId, startPosition, endPosition } of tail?.reserve ?? []) {
    const keys = items.filter(
      (item) => item.startPosition >= startPosition && item.endPosition <= endPosition,
    );
    const run = await store.readRun(CONVERSATION, keys, false);
    folds.push({ summaryId, run: run.map((item) => ({ ...item, summaryId: null })) });
  }
  return folds;
}

function openStore(database: string): SqliteStore {
  const store = new SqliteStore({ path: database, filesDir: `${database}-files`, create: false });
  onTestFinished(() => store.close());
  return store;
}

const SELECT_HEAD = "SELECT fold_revision, shown_tokens FROM conversations WHERE conversation_id = 1";

function readRevision(database: string): number {
  using connection = new DatabaseSync(database, { readOnly: true });
  return connection.prepare(SELECT_HEAD).get()?.fold_revision as number;
}

describe("leaves that were prepared ahead", () => {
  test("are published together: one rewrite, one epoch, nothing paid", async () => {
    const { database, prepared } = await makePrepared();
    const calls: string[] = [];
    const engine = await openFolding(database, { onCall: (key) => calls.push(key) });
    // A target that the leaves reach, so that nothing is condensed after them.
    const answer = await engine.compact({
      conversationId: CONVERSATION,
      budgetTokens: BUDGET_TOKENS,
      targetTokens: 2_600,
    });
    const { summaries, foldRevision } = await readFolding(engine);
    expect(answer.passes).toBe(summaries.cover);
    expect(answer.passes).toBeGreaterThan(2);
    expect(summaries.cover + summaries.prepared).toBe(prepared);
    expect(foldRevision).toBe(1);
    expect(calls).toEqual([]);
    await expectSound(engine, database);
  });

  test("are all prepared, however long the history, as far as one sweep can publish", async () => {
    const folder = makeTemporaryFolder();
    onTestFinished(() => folder[Symbol.dispose]());
    const database = folder.file("lcm.db");
    const engine = await openFolding(database);
    await engine.ingest({ session: SESSION, messages: makeMarkedTurns(0, 130) });
    await engine.maintain({ conversationId: CONVERSATION, budgetTokens: 25_000 });
    const { summaries } = await readFolding(engine);
    expect(summaries).toMatchObject({
      cover: 0,
      prepared: foldSettings(database).maxSweepIterations,
    });
  });

  test("one whose run changed is left out, its run is planned again, and the others are published with it", async () => {
    const { database, prepared } = await makePrepared();
    const store = openStore(database);
    const folds = await readStored(store);
    expect(folds).toHaveLength(prepared);
    const engine = await openFolding(database);
    // The first message of the third leaf is said again in other words, after the runs were read.
    const { items } = await engine.listMessages({ conversationId: CONVERSATION, limit: 1_000 });
    const first = folds[2]?.run[0]?.versionId;
    const revised = items.find(({ messageId }) => messageId === first);
    await engine.ingest({
      session: SESSION,
      messages: [{ eventId: revised?.eventId ?? "", message: { role: "user", content: "in other words" } }],
    });
    const outcomes = await store.publishStored({ conversationId: CONVERSATION, folds, now: Date.now() });
    expect(outcomes.map(({ kind }) => kind)).toEqual(
      folds.map((_, index) => (index === 2 ? "stale" : "published")),
    );
    expect((await readFolding(engine)).foldRevision).toBe(1);
    await expectSound(engine, database);
    await engine.compact({ conversationId: CONVERSATION, budgetTokens: BUDGET_TOKENS, force: true });
    const shown = await engine.assemble({ conversationId: CONVERSATION, budgetTokens: BUDGET_TOKENS });
    expect(shown?.mode).toBe("whole");
    expect((await readFolding(engine)).summaries).toMatchObject({ stale: 0 });
    await expectSound(engine, database);
  });

  test("two writers at once: each leaf is published by one of them, and whoever publishes nothing begins no epoch", async () => {
    const { database, prepared } = await makePrepared();
    const [one, other] = [openStore(database), openStore(database)];
    const [mine, theirs] = [await readStored(one), await readStored(other)];
    const publish = (store: SqliteStore, folds: typeof mine) =>
      store.publishStored({ conversationId: CONVERSATION, folds, now: Date.now() });
    const first = await publish(one, mine.slice(1, 3));
    const second = await publish(other, theirs);
    const third = await publish(one, mine);
    expect(first.map(({ kind }) => kind)).toEqual(["published", "published"]);
    expect(second.map(({ kind }) => kind)).toEqual(
      theirs.map((_, index) => (index === 1 || index === 2 ? "stale" : "published")),
    );
    expect(third.map(({ kind }) => kind)).toEqual(mine.map(() => "stale"));
    expect(readRevision(database)).toBe(2);
    const engine = await openFolding(database);
    expect((await readFolding(engine)).summaries).toMatchObject({ cover: prepared, prepared: 0 });
    await expectSound(engine, database);
  });

  test("a failure in the middle publishes none, and the next fold publishes them all", async () => {
    const { database, prepared } = await makePrepared();
    const store = openStore(database);
    const folds = await readStored(store);
    const trouble = new DatabaseSync(database);
    onTestFinished(() => trouble.close());
    trouble.exec(`
      CREATE TRIGGER trouble BEFORE INSERT ON context_items WHEN NEW.summary_id = '${folds[3]?.summaryId}'
      BEGIN SELECT RAISE(ABORT, 'no room'); END`);
    const publish = () => store.publishStored({ conversationId: CONVERSATION, folds, now: Date.now() });
    await expect(publish()).rejects.toThrow("no room");
    expect(readRevision(database)).toBe(0);
    trouble.exec("DROP TRIGGER trouble");
    expect((await publish()).filter(({ kind }) => kind === "published")).toHaveLength(prepared);
    await expectSound(await openFolding(database), database);
  });

  test("a process killed while it publishes leaves all of them prepared or all of them published", async () => {
    const { database, prepared } = await makePrepared();
    const random = makeRandom(5);
    for (let kill = 0; kill < KILLS; kill++) {
      using folder = makeTemporaryFolder();
      const copy = folder.file("lcm.db");
      copyFileSync(database, copy);
      // The model is asked only for what is to be done after the leaves are published.
      const child = fork(
        PROGRAM,
        [copy, JSON.stringify({ skewMs: 2 * LEASE_MS, budgetTokens: DUE_TOKENS, tellsOpen: true })],
        {
          execArgv: [],
        },
      );
      await once(child, "message");
      const timer = setTimeout(() => child.kill("SIGKILL"), random.below(40));
      await once(child, "close");
      clearTimeout(timer);
      const engine = await openFolding(copy, { skewMs: 10 * LEASE_MS });
      const { summaries, foldRevision } = await readFolding(engine);
      if (foldRevision === 0) expect(summaries).toMatchObject({ cover: 0, prepared });
      else expect(summaries.prepared).toBe(0);
      await expectSound(engine, copy);
      await engine.close();
    }
  });

  test("a process whose lease was taken over publishes nothing a second time", async () => {
    const { database } = await makePrepared();
    const first = await openFolding(database);
    await first.ingest({ session: SESSION, messages: makeMarkedTurns(TURNS, TURNS + 40) });
    await first.close();
    const child = fork(PROGRAM, [database, JSON.stringify({ skewMs: 0, holds: true, isBackground: true })], {
      execArgv: [],
    });
    onTestFinished(() => void child.kill("SIGKILL"));
    // It is in the middle of preparing, and knows the leaves that are stored.
    await once(child, "message");
    const engine = await openFolding(database, { skewMs: 2 * LEASE_MS });
    const answer = await engine.compact({ conversationId: CONVERSATION, budgetTokens: BUDGET_TOKENS });
    expect(answer.compacted).toBe(true);
    child.on("message", ({ kind }: { kind: string }) => kind === "call" && child.send("answer"));
    child.send("answer");
    expect((await once(child, "close"))[0]).toBe(0);
    await expectSound(engine, database, TURNS + 40);
    expect((await readFolding(engine)).summaries.stale).toBe(0);
  });
});

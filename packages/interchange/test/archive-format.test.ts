/** The archive format: out, in, and out again. */

import { hash } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import { someOf } from "@lossless/testkit/rounds.ts";
import { describe, expect, onTestFinished, test } from "vitest";

import { resolveSettings } from "@lossless/core";
import type { Engine } from "@lossless/core";
import { deriveMessage } from "@lossless/core/formats";
import { openEngine } from "lossless-claw";
import { SqliteStore } from "@lossless/sqlite";
import { exportArchive } from "../src/archive/export-archive.ts";
import { importArchive, isArchive } from "../src/archive/import-archive.ts";
import { importTranscript } from "../src/transcript/import.ts";

import { generateSession } from "@lossless/testkit/session-archive.ts";
import { buildOnce, findSharedData, makeTemporaryDirectory } from "@lossless/testkit";
import { listRealTranscripts } from "./support.ts";

const SESSION = { key: "agent:main:demo", id: "s1", owner: "main" };

/** An archive with everything odd in it: revisions, labels, boundaries, hidden rows, large files, folds at several depths. */
async function buildArchive(folder: string): Promise<void> {
  const database = join(folder, "lcm.db");
  const config = {
    databasePath: database,
    leafChunkTokens: 600,
    leafMinFanout: 3,
    condensedMinFanout: 2,
    freshTailCount: 4,
  };
  const engine = await openEngine({
    database,
    thread: false,
    settings: resolveSettings({ env: {}, config }).settings,
  });
  const path = join(folder, "odd.jsonl");
  writeFileSync(path, generateSession(7, 220));
  const { conversationId } = await importTranscript({ engine, path });
  const big = "line of a log that repeats itself\n".repeat(6000);
  const say = (n: number, content: unknown) => ({
    eventId: `e${n}`,
    message: { role: n % 2 ? "user" : "assistant", content, timestamp: 1_700_000_000_000 + n },
  });
  await engine.ingest({
    session: SESSION,
    messages: Array.from({ length: 60 }, (_, n) =>
      say(n, n === 5 || n === 9 ? big : `message ${n} 数据 `.repeat(30)),
    ),
  });
  await engine.ingest({
    session: SESSION,
    messages: [{ eventId: "raw", bytes: Buffer.from([0xff, 0x00, 0x7b, 0x0a]) }, say(3, "said differently")],
  });
  await engine.ingest({
    session: SESSION,
    messages: [{ ...say(61, "provisional"), eventId: "turn:a:0", eventIdKind: "provisional" }],
    turn: { advancementKey: "a" },
    origin: { agent: "codex", project: "/srv/app", title: "Ein „Titel“" },
  });
  await engine.relabel({ session: SESSION, labels: [{ from: "turn:a:0", to: "e61" }] });
  await engine.setBranch({ session: SESSION, offBranch: ["e7", "e8"] });
  await engine.recordBoundary({ session: SESSION, eventId: "b1", reason: "new" });
  await engine.ingest({
    session: SESSION,
    messages: Array.from({ length: 20 }, (_, n) => say(70 + n, `after ${n} `.repeat(50))),
  });
  await engine.recordBoundary({ session: SESSION, eventId: "b2", reason: "reset" });
  await engine.ingest({ session: SESSION, messages: [say(100, "a new segment")] });
  for (const id of [conversationId ?? 0, 2]) {
    await engine.compact({ conversationId: id, budgetTokens: 4000, force: true });
    await engine.maintain({ conversationId: id, budgetTokens: 4000 });
  }
  await forgetOne(engine, 2, "e9");
  // A late change inside a folded span.
  await engine.ingest({ session: SESSION, messages: [say(4, "changed after it was folded")] });
  expect((await engine.verify()).problems).toEqual([]);
  await engine.close();
}

/** Built once; each test has a copy. */
const copyArchive = buildOnce(buildArchive);

async function forgetOne(engine: Engine, conversationId: number, eventId: string): Promise<void> {
  const { items } = await engine.listMessages({ conversationId, limit: 500 });
  const messageIds = items.filter((row) => row.eventId === eventId).map((row) => row.messageId);
  await engine.forget({ messageIds, reason: "asked for" });
}

function openStore(path: string, create = false): SqliteStore {
  const store = new SqliteStore({ path, filesDir: join(path, "..", "lcm-files"), create });
  onTestFinished(() => store.close());
  return store;
}

const moveIn = (store: SqliteStore, path: string) =>
  importArchive(store, { path, derive: deriveMessage, now: 1 });

async function verifyStore(store: SqliteStore): Promise<unknown> {
  return (await store.verify(deriveMessage, () => undefined)).problems;
}

async function listPublishing(store: SqliteStore) {
  const { items } = await store.listConversations({ after: null, limit: 10 });
  const graphs = await Promise.all(items.map(({ conversationId }) => store.readGraph({ conversationId })));
  return graphs
    .flatMap(({ nodes }) => nodes)
    .map(({ summaryId, state, publishedSeq }) => ({ summaryId, state, publishedSeq }))
    .sort((a, b) => (a.summaryId < b.summaryId ? -1 : 1));
}

/** An archive as it was written before archives told when summaries were published. */
function withoutPublishing(archive: string): string {
  const lines = archive.trimEnd().split("\n").slice(0, -1);
  const older = lines.map((line) => `${line.replace(/"publishedSeq":\d+,/u, "")}\n`).join("");
  const end = { record: "end", records: lines.length, sha256: hash("sha256", older) };
  return `${older}${JSON.stringify(end)}\n`;
}

describe("an archive", () => {
  test("comes out of another database byte for byte, graph, cover and files included", async () => {
    const [folder, other] = [makeTemporaryDirectory(), makeTemporaryDirectory()];
    const store = openStore(copyArchive(folder));
    const first = await exportArchive(store, { out: join(folder, "a.lcmx") });
    expect(first).toMatchObject({ conversations: 3 });
    expect(first.summaries).toBeGreaterThan(4);
    expect(first.files).toBeGreaterThan(1);
    expect(readFileSync(join(folder, "a.lcmx"), "utf8")).toContain('"agent":"codex","project":"/srv/app"');
    // A conversation that was there before makes every id of the copy another one.
    const engine = await openEngine({ database: join(other, "lcm.db"), thread: false });
    await engine.ingest({
      session: { key: "k", id: "x", owner: "other" },
      messages: [{ message: { role: "user", content: "here first" } }],
    });
    await engine.close();
    const copy = openStore(join(other, "lcm.db"));
    const report = await moveIn(copy, join(folder, "a.lcmx"));
    expect(report.problems).toEqual([]);
    expect(report.imported).toBe(first.messages);
    expect(await verifyStore(copy)).toEqual([]);
    await exportArchive(copy, { out: join(other, "b.lcmx"), owner: "main" });
    expect(readFileSync(join(other, "b.lcmx"), "utf8")).toBe(readFileSync(join(folder, "a.lcmx"), "utf8"));
    const again = await moveIn(copy, join(folder, "a.lcmx"));
    expect(again).toMatchObject({ imported: 0, skipped: first.messages, summaries: 0, problems: [] });
  });

  test("is compressed when its name says so", async () => {
    const folder = makeTemporaryDirectory();
    const store = openStore(copyArchive(folder));
    const plain = await exportArchive(store, { out: join(folder, "a.lcmx") });
    const small = await exportArchive(store, { out: join(folder, "a.lcmx.zst") });
    expect(small.bytes).toBeLessThan(plain.bytes / 3);
    expect(await isArchive(join(folder, "a.lcmx.zst"))).toBe(true);
    const copy = openStore(join(makeTemporaryDirectory(), "lcm.db"), true);
    expect(await moveIn(copy, join(folder, "a.lcmx.zst"))).toMatchObject({
      imported: plain.messages,
      problems: [],
    });
    expect(await verifyStore(copy)).toEqual([]);
  });

  test("goes on behind the last row when it was cut, and is whole at every cut", async () => {
    const folder = makeTemporaryDirectory();
    const store = openStore(copyArchive(folder));
    const out = join(folder, "a.lcmx");
    const { messages } = await exportArchive(store, { out });
    const lines = readFileSync(out, "utf8").split("\n");
    const copy = openStore(join(makeTemporaryDirectory(), "lcm.db"), true);
    let stored = 0;
    for (const cut of [40, 180, 290, 320, lines.length - 12]) {
      writeFileSync(join(folder, "cut.lcmx"), `${lines.slice(0, cut).join("\n")}\n`);
      await expect(moveIn(copy, join(folder, "cut.lcmx"))).rejects.toMatchObject({
        message: expect.stringContaining("cut off"),
      });
      expect(await verifyStore(copy)).toEqual([]);
      const { items } = await copy.listConversations({ after: null, limit: 10 });
      const now = items.reduce((sum, row) => sum + row.messages, 0);
      expect(now).toBeGreaterThanOrEqual(stored);
      stored = now;
    }
    const report = await moveIn(copy, out);
    expect(report.imported + stored).toBe(messages);
    expect(await verifyStore(copy)).toEqual([]);
    await exportArchive(copy, { out: join(folder, "b.lcmx") });
    expect(readFileSync(join(folder, "b.lcmx"), "utf8")).toBe(readFileSync(out, "utf8"));
  });

  test("adds to a conversation that was forked since, and knows the fork again", async () => {
    const [folder, other] = [makeTemporaryDirectory(), makeTemporaryDirectory()];
    const say = (eventId: string) => ({ eventId, message: { role: "user", content: `text of ${eventId}` } });
    const open = (place: string) => openEngine({ database: join(place, "lcm.db"), thread: false });
    const source = await open(folder);
    await source.ingest({ session: SESSION, messages: [say("a"), say("b")] });
    const [short, long, forked] = ["short", "long", "forked"].map((name) => join(folder, `${name}.lcmx`)) as [
      string,
      string,
      string,
    ];
    await exportArchive(openStore(join(folder, "lcm.db")), { out: short });
    await source.ingest({ session: SESSION, messages: [say("c")] });
    await exportArchive(openStore(join(folder, "lcm.db")), { out: long });
    await source.close();
    const store = openStore(join(other, "lcm.db"), true);
    await moveIn(store, short);
    const engine = await open(other);
    const session = { ...SESSION, key: "agent:main:fork", id: "s2" };
    await engine.fork({ session, parentSessionId: SESSION.id, eventIds: ["a", "b"] });
    await engine.ingest({ session, messages: [say("d")] });
    await engine.close();
    expect(await moveIn(store, long)).toMatchObject({ imported: 1, skipped: 2, problems: [] });
    await exportArchive(store, { out: forked });
    expect(await moveIn(store, forked)).toMatchObject({ imported: 0, problems: [] });
    expect(await verifyStore(store)).toEqual([]);
  });

  test("tells when each summary took its place, and one that does not know goes through unchanged", async () => {
    const folder = makeTemporaryDirectory();
    const store = openStore(copyArchive(folder));
    const out = join(folder, "a.lcmx");
    await exportArchive(store, { out });
    const copy = openStore(join(makeTemporaryDirectory(), "lcm.db"), true);
    await moveIn(copy, out);
    const published = await listPublishing(store);
    expect(published.length).toBeGreaterThan(4);
    for (const { state, publishedSeq } of published) {
      if (state === "cover") expect(publishedSeq).not.toBeNull();
    }
    expect(await listPublishing(copy)).toEqual(published);
    const older = join(folder, "older.lcmx");
    writeFileSync(older, withoutPublishing(readFileSync(out, "utf8")));
    const second = openStore(join(makeTemporaryDirectory(), "lcm.db"), true);
    expect((await moveIn(second, older)).problems).toEqual([]);
    expect(await verifyStore(second)).toEqual([]);
    await exportArchive(second, { out: join(folder, "b.lcmx") });
    expect(readFileSync(join(folder, "b.lcmx"), "utf8")).toBe(readFileSync(older, "utf8"));
  });

  test("that was changed, or comes from somewhere else, is refused or left out by name", async () => {
    const folder = makeTemporaryDirectory();
    const store = openStore(copyArchive(folder));
    const out = join(folder, "a.lcmx");
    await exportArchive(store, { out });
    const text = readFileSync(out, "utf8");
    writeFileSync(join(folder, "bad.lcmx"), text.replace("said differently", "said otherwise!!"));
    const copy = openStore(join(makeTemporaryDirectory(), "lcm.db"), true);
    await expect(moveIn(copy, join(folder, "bad.lcmx"))).rejects.toMatchObject({
      code: "invalid_input",
      message: expect.stringContaining("commitment"),
    });
    expect(await verifyStore(copy)).toEqual([]);
    // Only the hash of the whole file proves the project.
    writeFileSync(join(folder, "moved.lcmx"), text.replace('"/srv/app"', '"/srv/abc"'));
    await expect(moveIn(copy, join(folder, "moved.lcmx"))).rejects.toMatchObject({
      message: expect.stringContaining("checksum does not match"),
    });
    writeFileSync(join(folder, "new.lcmx"), text.replace('"version":1', '"version":9'));
    await expect(moveIn(copy, join(folder, "new.lcmx"))).rejects.toMatchObject({
      message: expect.stringContaining("version 9"),
    });
    // The same session, stored in another way: nothing is stored twice.
    const engine: Engine = await openEngine({ database: join(folder, "other.db"), thread: false });
    await engine.ingest({
      session: SESSION,
      messages: [{ eventId: "e1", message: { role: "user", content: "x" } }],
    });
    await engine.close();
    const other = openStore(join(folder, "other.db"));
    const report = await moveIn(other, out);
    expect(report.problems.map((problem) => problem.code)).toContain("conflict");
    expect(await verifyStore(other)).toEqual([]);
  });

  test("with a name that a database gives back changed is refused, and so is such an owner for all of it", async () => {
    const folder = makeTemporaryDirectory();
    const store = openStore(copyArchive(folder));
    const out = join(folder, "a.lcmx");
    await exportArchive(store, { out });
    const copy = openStore(join(makeTemporaryDirectory(), "lcm.db"), true);
    const bad = join(folder, "bad.lcmx");
    writeFileSync(
      bad,
      readFileSync(out, "utf8").replaceAll(`"owner":"${SESSION.owner}"`, '"owner":"ma\\u0000in"'),
    );
    const refused = { code: "invalid_input", message: expect.stringContaining("owner must not contain") };
    await expect(moveIn(copy, bad)).rejects.toMatchObject(refused);
    const owner = "ma\0in";
    await expect(
      importArchive(copy, { path: out, derive: deriveMessage, now: 1, owner }),
    ).rejects.toMatchObject(refused);
    expect((await copy.listConversations({ after: null, limit: 10 })).items).toEqual([]);
  });

  const real = findSharedData() === null ? [] : someOf(listRealTranscripts().slice(0, 4), 1);
  test.skipIf(real.length === 0)(
    "keeps real sessions to the byte (skipped without shared data)",
    async () => {
      const folder = makeTemporaryDirectory();
      const engine = await openEngine({ database: join(folder, "lcm.db"), thread: false });
      for (const path of real) {
        const { conversationId } = await importTranscript({ engine, path });
        if (conversationId !== null)
          await engine.compact({ conversationId, budgetTokens: 30_000, force: true });
      }
      await engine.close();
      const store = openStore(join(folder, "lcm.db"));
      await exportArchive(store, { out: join(folder, "a.lcmx") });
      const copy = openStore(join(makeTemporaryDirectory(), "lcm.db"), true);
      expect((await moveIn(copy, join(folder, "a.lcmx"))).problems).toEqual([]);
      expect(await verifyStore(copy)).toEqual([]);
      await exportArchive(copy, { out: join(folder, "b.lcmx") });
      expect(readFileSync(join(folder, "b.lcmx")).equals(readFileSync(join(folder, "a.lcmx")))).toBe(true);
    },
  );
});

test("an import that is cut off between a forgotten message and its record leaves a whole archive", async () => {
  const folder = makeTemporaryDirectory();
  const database = join(folder, "lcm.db");
  const engine = await openEngine({ database, thread: false });
  const say = (n: number) => ({ eventId: `e${n}`, message: { role: "user", content: `message ${n}` } });
  await engine.ingest({ session: SESSION, messages: Array.from({ length: 1000 }, (_, n) => say(n)) });
  await forgetOne(engine, 1, "e500");
  await engine.close();
  const whole = join(folder, "whole.lcmx");
  const source = new SqliteStore({ path: database, filesDir: join(folder, "lcm-files") });
  await exportArchive(source, { out: whole });
  await source.close();
  const lines = readFileSync(whole, "utf8").split("\n");
  for (const kept of someOf([300, 450, 700, 990, lines.length - 3], 3)) {
    const path = join(folder, `cut-${kept}.lcmx`);
    writeFileSync(path, `${lines.slice(0, kept).join("\n")}\n`);
    const target = new SqliteStore({
      path: join(folder, `${kept}.db`),
      filesDir: join(folder, `${kept}-files`),
      create: true,
    });
    onTestFinished(() => target.close());
    const options = { derive: deriveMessage, now: 1 };
    await expect(importArchive(target, { ...options, path })).rejects.toThrow(/cut off/u);
    expect((await target.verify(deriveMessage, () => undefined)).problems).toEqual([]);
    const report = await importArchive(target, { ...options, path: whole });
    expect(report.imported + report.skipped).toBe(1000);
    expect((await target.verify(deriveMessage, () => undefined)).problems).toEqual([]);
  }
});

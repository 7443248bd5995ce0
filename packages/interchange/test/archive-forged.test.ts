/** Archives that were changed by hand, with the hash at their end corrected: whatever they say, what is stored afterwards verifies. */

import { spawnSync } from "node:child_process";
import { hash } from "node:crypto";
import { existsSync, readdirSync, readFileSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import { makeRandom, type Random } from "@lossless/testkit";
import { editArchive } from "@lossless/testkit/edit-archive.ts";
import { rounds, someOf } from "@lossless/testkit/rounds.ts";
import { describe, expect, onTestFinished, test } from "vitest";

import { resolveSettings } from "@lossless/core";
import { deriveMessage } from "@lossless/core/formats";
import { openEngine } from "lossless-claw";
import { createBackup } from "lossless-claw/repair";
import { SqliteStore } from "@lossless/sqlite";
import { exportArchive } from "../src/archive/export-archive.ts";
import { importArchive } from "../src/archive/import-archive.ts";

import { makeTemporaryDirectory } from "@lossless/testkit";

type RecordLine = Record<string, unknown>;

const SESSION = { key: "agent:main:demo", id: "s1", owner: "main" };

/** An archive with folds, a large file, a revision, a label, hidden and forgotten rows and a boundary. */
async function writeArchive(): Promise<RecordLine[]> {
  const folder = makeTemporaryDirectory();
  const database = join(folder, "lcm.db");
  const config = {
    databasePath: database,
    leafChunkTokens: 600,
    leafMinFanout: 3,
    condensedMinFanout: 2,
    freshTailCount: 4,
  };
  const { settings } = resolveSettings({ env: {}, config });
  const engine = await openEngine({ database, thread: false, settings });
  const say = (n: number, content: string) => ({
    eventId: `e${n}`,
    message: { role: n % 2 ? "user" : "assistant", content, timestamp: 1_700_000_000_000 + n },
  });
  const big = "a line of a log that repeats itself\n".repeat(5000);
  await engine.ingest({
    session: SESSION,
    messages: Array.from({ length: 36 }, (_, n) => say(n, n === 30 ? big : `message ${n} `.repeat(60))),
    turn: { advancementKey: "t" },
  });
  await engine.ingest({
    session: SESSION,
    messages: [{ ...say(37, "provisional"), eventId: "turn:a:0", eventIdKind: "provisional" }],
  });
  await engine.relabel({ session: SESSION, labels: [{ from: "turn:a:0", to: "e37" }] });
  await engine.setBranch({ session: SESSION, offBranch: ["e7"] });
  await engine.compact({ conversationId: 1, budgetTokens: 1200, targetTokens: 300, force: true });
  await engine.ingest({ session: SESSION, messages: [say(33, "said differently")] });
  const { items } = await engine.listMessages({ conversationId: 1, limit: 100 });
  const messageIds = items.filter((row) => row.eventId === "e32").map((row) => row.messageId);
  await engine.forget({ messageIds, reason: "asked for" });
  await engine.recordBoundary({ session: SESSION, eventId: "b1", reason: "new" });
  expect((await engine.verify()).problems).toEqual([]);
  await engine.close();
  const store = new SqliteStore({ path: database, filesDir: join(folder, "lcm-files"), readOnly: true });
  const path = join(folder, "a.lcmx");
  await exportArchive(store, { out: path });
  await store.close();
  const lines = readFileSync(path, "utf8").trimEnd().split("\n").slice(0, -1);
  const records = lines.map((line) => JSON.parse(line) as RecordLine);
  expect(new Set(records.map(({ record }) => record))).toEqual(
    new Set([
      "lcmx",
      "session",
      "turn",
      "conversation",
      "file",
      "piece",
      "message",
      "ledger",
      "summary",
      "cover",
    ]),
  );
  return records;
}

let written: Promise<readonly RecordLine[]> | null = null;

/** Written once: nobody changes it, only copies of it. */
const readArchive = (): Promise<readonly RecordLine[]> => (written ??= writeArchive());

function seal(folder: string, records: readonly RecordLine[]): string {
  const content = records.map((record) => `${JSON.stringify(record)}\n`).join("");
  const end = { record: "end", records: records.length, sha256: hash("sha256", content) };
  const path = join(folder, "forged.lcmx");
  writeFileSync(path, `${content}${JSON.stringify(end)}\n`);
  return path;
}

function openStore(folder: string): SqliteStore {
  const store = new SqliteStore({
    path: join(folder, "lcm.db"),
    filesDir: join(folder, "lcm-files"),
    create: true,
    derive: deriveMessage,
  });
  onTestFinished(() => store.close());
  return store;
}

/** The error code of the import, or null; afterwards the archive verifies, and a refused one left nothing. */
async function importInto(store: SqliteStore, path: string): Promise<string | null> {
  const before = await store.status();
  const code = await importArchive(store, { path, derive: deriveMessage, now: 1 }).then(
    () => null,
    (error: { code?: string; message: string }) => error.code ?? `not an EngineError: ${error.message}`,
  );
  const proof = await store.verify(deriveMessage, () => undefined);
  expect(proof.problems).toEqual([]);
  if (code !== null) expect((await store.status()).messages).toBe(before.messages);
  return code;
}

const isSome = (count: number): boolean => count > 0;

function mutate(value: unknown, random: Random): unknown {
  if (typeof value === "number")
    return random.pick([value + 1, value - 1, 0, -1, value * 2, Number.MAX_SAFE_INTEGER, null]);
  if (typeof value === "string")
    return random.pick([`${value}x`, "", value.slice(1), "{}", "cover", "retired", null]);
  if (typeof value === "boolean") return !value;
  if (value === null) return random.pick([0, 1, "x"]);
  if (Array.isArray(value)) {
    const list: unknown[] = value;
    return random.pick([[], list.slice(1), [...list, ...list.slice(0, 1)], [...list].reverse(), [null], "x"]);
  }
  return random.pick([{}, null]);
}

/** Fields of which every change is found out: what they say is derived again, or decides where a record belongs. */
const PROVEN: ReadonlySet<string> = new Set(
  [
    ["session", "record"],
    ["turn", "record"],
    ["conversation", "record"],
    ["message", "record seq eventKind revises cuts forgottenAt text"],
    ["file", "record pieces sha256 byteSize"],
    ["piece", "record"],
    ["ledger", "record seq change body"],
    [
      "summary",
      "record summaryId kind depth startPosition startSeq endPosition endSeq messages descendantCount",
    ],
    ["summary", "sources previousId"],
    ["cover", "record"],
  ].flatMap(([record = "", fields = ""]) => fields.split(" ").map((field) => `${record}.${field}`)),
);
/** Other fields that may be null. */
const NULLABLE: ReadonlySet<string> = new Set(["file.lineCount"]);

/** Whether a change must be found out. Of summaries that are not in force only the text is kept. */
function isRefusable(name: string, record: RecordLine, before: unknown, after: unknown): boolean {
  if (JSON.stringify(before) === JSON.stringify(after)) return false;
  if (before !== null && after === null && !NULLABLE.has(name)) return true;
  return PROVEN.has(name) && (record["record"] !== "summary" || record["state"] === "cover");
}

describe("a forged archive", () => {
  test("is refused whole, or what it leaves verifies, whichever field was changed", async () => {
    const records = await readArchive();
    const random = makeRandom(11);
    const folder = makeTemporaryDirectory();
    const counts = { refused: 0, taken: 0 };
    const fields = records
      .filter(({ record }) => record !== "lcmx")
      .flatMap((record) => Object.keys(record).map((field) => ({ record, field })));
    // Every field of every kind of record, on one record of that kind.
    const kinds = new Map(
      [...fields]
        .sort(() => random.next() - 0.5)
        .map((entry) => [`${String(entry.record["record"])}.${entry.field}`, entry]),
    );
    for (const [name, { record, field }] of someOf([...kinds], 26)) {
      const after = mutate(record[field], random);
      const forged = records.map((line) => (line === record ? { ...line, [field]: after } : line));
      const code = await importInto(openStore(makeTemporaryDirectory()), seal(folder, forged));
      const told = [name, after, code];
      const mustRefuse = isRefusable(name, record, record[field], after);
      expect(told).toEqual([name, after, code === null && !mustRefuse ? null : "invalid_input"]);
      counts[code === null ? "taken" : "refused"] += 1;
    }
    expect(counts).toEqual({ refused: expect.toSatisfy(isSome), taken: expect.toSatisfy(isSome) });
  });

  test("is refused when a summary has no id, also one that nothing names", async () => {
    const records = await readArchive();
    const folder = makeTemporaryDirectory();
    for (const summary of records.filter(({ record }) => record === "summary")) {
      const forged = records.map((line) => (line === summary ? { ...line, summaryId: "" } : line));
      expect(await importInto(openStore(makeTemporaryDirectory()), seal(folder, forged))).toBe(
        "invalid_input",
      );
    }
  });

  test("is refused, or verifies, when records are missing, doubled or in another order", async () => {
    const records = await readArchive();
    const random = makeRandom(5);
    const folder = makeTemporaryDirectory();
    for (let round = 0; round < rounds({ test: 6, soak: 16 }); round += 1) {
      const at = 1 + random.below(records.length - 1);
      const forged = [...records];
      const [taken] = forged.splice(at, 1) as [RecordLine];
      if (round % 3 === 1) forged.splice(at, 0, taken, taken);
      if (round % 3 === 2) forged.splice(1 + random.below(forged.length - 1), 0, taken);
      await importInto(openStore(makeTemporaryDirectory()), seal(folder, forged));
    }
  });

  test("with a false summary leaves nothing, and the archive can be backed up", async () => {
    const records = await readArchive();
    const folder = makeTemporaryDirectory();
    const store = openStore(folder);
    const forged = records.map((line) => {
      if (line["record"] === "summary") return { ...line, messages: 1000, descendantCount: 3 };
      return line["record"] === "conversation" ? { ...line, summaries: 0 } : line;
    });
    expect(await importInto(store, seal(folder, forged))).toBe("invalid_input");
    expect((await store.listConversations({ after: null, limit: 10 })).items).toEqual([]);
    const files = join(folder, "lcm-files");
    const left = existsSync(files) ? readdirSync(files, { recursive: true, withFileTypes: true }) : [];
    expect(left.filter((entry) => entry.isFile())).toEqual([]);
    await importInto(store, seal(folder, records));
    await store.close();
    const engine = await openEngine({ database: join(folder, "lcm.db"), thread: false });
    onTestFinished(() => engine.close());
    const made = await createBackup({ engine, databasePath: join(folder, "lcm.db"), filesDir: files });
    expect(existsSync(made.path)).toBe(true);
  });
});

test("damage in a conversation that an archive adds nothing to is not blamed on the archive", async () => {
  const [folder, other] = [makeTemporaryDirectory(), makeTemporaryDirectory()];
  const say = async (database: string, name: string): Promise<void> => {
    const engine = await openEngine({ database, thread: false });
    await engine.ingest({
      session: { key: `agent:main:${name}`, id: name, owner: "main" },
      messages: [{ message: { role: "user", content: `a word of ${name}` } }],
    });
    await engine.close();
  };
  await say(join(folder, "lcm.db"), "first");
  const [source, store] = [openStore(folder), openStore(other)];
  const path = join(folder, "a.lcmx");
  await exportArchive(source, { out: path });
  expect(await importInto(store, path)).toBe(null);
  editArchive(join(other, "lcm.db"), "UPDATE messages SET tokens = tokens + 1");
  await say(join(folder, "lcm.db"), "second");
  await exportArchive(source, { out: path });
  const report = await importArchive(store, { path, derive: deriveMessage, now: 1 });
  expect(report).toMatchObject({ imported: 1, skipped: 1, problems: [] });
  const { problems } = await store.verify(deriveMessage, () => undefined);
  expect(new Set(problems.map(({ id }) => id))).toEqual(new Set(["msg_1"]));
});

/** Imports an archive and kills itself in the middle. */
const DYING_PROGRAM = `
  const [source, folder, path] = process.argv.slice(1);
  const { SqliteStore } = await import(new URL("sqlite/src/index.ts", source));
  const { deriveMessage } = await import(new URL("core/src/ingest/prepare.ts", source));
  const { importArchive } = await import(new URL("interchange/src/archive/import-archive.ts", source));
  const store = new SqliteStore({ path: folder + "/lcm.db", filesDir: folder + "/lcm-files", create: true, derive: deriveMessage });
  const onProgress = ({ lines }) => lines >= 512 && process.kill(process.pid, "SIGKILL");
  await importArchive(store, { path, derive: deriveMessage, now: 1, onProgress });`;

test("an import of an archive that is killed leaves nothing, and can be run again", async () => {
  const [folder, other] = [makeTemporaryDirectory(), makeTemporaryDirectory()];
  const engine = await openEngine({ database: join(folder, "lcm.db"), thread: false });
  const messages = Array.from({ length: 900 }, (_, n) => ({
    message: { role: "user", content: `line ${n}` },
  }));
  await engine.ingest({ session: SESSION, messages });
  await engine.close();
  const source = openStore(folder);
  const path = join(folder, "a.lcmx");
  await exportArchive(source, { out: path });
  const packages = new URL("../../", import.meta.url).href;
  const run = spawnSync(process.execPath, [
    "--input-type=module",
    "-e",
    DYING_PROGRAM,
    packages,
    other,
    path,
  ]);
  expect([run.signal, run.stderr.toString()]).toEqual(["SIGKILL", expect.not.stringContaining("Error")]);
  const listLeft = (): string[] => readdirSync(other).filter((name) => name.includes("-intake-"));
  const hourAgo = Date.now() / 1000 - 3_600;
  expect(listLeft()).not.toEqual([]);
  for (const name of listLeft()) utimesSync(join(other, name), hourAgo, hourAgo);
  const store = openStore(other);
  expect(listLeft()).toEqual([]);
  expect((await store.listConversations({ after: null, limit: 10 })).items).toEqual([]);
  expect(await importInto(store, path)).toBe(null);
  expect((await store.status()).messages).toBe(900);
  expect((await store.verify(deriveMessage, () => undefined)).problems).toEqual([]);
});

/** Forgetting leaves nothing of the text anywhere, and an archive whose proof holds. */
import {
  appendFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import fs from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { zstdDecompressSync } from "node:zlib";
import { resolveSettings } from "@lossless/core";
import { openEngine, openStore } from "lossless-claw";
import { exportConversations } from "lossless-claw/interchange";
import type { Engine } from "@lossless/core";
import type { ArchiveAccess } from "../../src/repair/archive-access.ts";
import { createRawCopy } from "../../src/repair/backup.ts";
import { createBackup, restoreBackup } from "lossless-claw/repair";
import { examine } from "../../src/repair/doctor.ts";
import { mend } from "lossless-claw/repair";
import { previewForget } from "../../src/repair/forget.ts";
import { applyForget } from "lossless-claw/repair";
import type { ForgetSelection } from "../../src/repair/forget.ts";
import { makeOpenEngine } from "../../src/ports.ts";
import { recordCopy } from "../../src/store/copies.ts";
import { adoptDocumentedDatabase } from "lossless-claw/interchange";
import { encodeBody, decodeBody } from "../../src/store/body.ts";
import { makeTemporaryFolder } from "@lossless/testkit";
import { writeOlderDatabase } from "@lossless/testkit/older-database.ts";
import { fc } from "@lossless/testkit/properties.ts";
import { isSoak } from "@lossless/testkit/rounds.ts";
import { watchStores } from "@lossless/testkit/watched-store.ts";
import { describe, expect, test } from "vitest";

const unused = async (): Promise<never> => expect.unreachable("an archive in a file is copied by itself");
const NO_ACCESS: ArchiveAccess = {
  openEngine: unused,
  claimAlone: unused,
  withFileLock: unused,
  writeSnapshot: unused,
};

const session = { key: "agent:main:test", id: "session-1", owner: "main" };

function messageOf(i: number, more: string): { eventId: string; message: object; createdAt: number } {
  const text = `step ${i}: sensor ${i} of the greenhouse reported ${20 + (i % 9)} degrees; valve_${i} was opened. ${more}`;
  return {
    eventId: `e${i}`,
    message: { role: i % 2 === 0 ? "user" : "assistant", content: text },
    createdAt: 1_700_000_000_000 + i * 60_000,
  };
}

async function open(folder: string): Promise<Engine> {
  const database = join(folder, "lcm.db");
  const settings = resolveSettings({
    env: {},
    config: {
      databasePath: database,
      freshTailCount: 4,
      leafChunkTokens: 400,
      leafTargetTokens: 150,
      condensedTargetTokens: 200,
      leafMinFanout: 2,
      condensedMinFanout: 2,
    },
  }).settings;
  return openEngine({ database, settings, thread: false });
}

/** Every file below a folder whose bytes hold one of the needles; bodies are looked into as well. */
function findBytes(folder: string, needles: readonly Buffer[]): string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .filter((path) => {
      const bytes = readFileSync(path);
      const lower = Buffer.from(bytes.toString("latin1").toLowerCase(), "latin1");
      return needles.some((needle) => bytes.includes(needle) || lower.includes(needle));
    });
}

/** Rows of the database that hold the text, compressed bodies included, and terms of the index. */
function findRows(path: string, secret: string): string[] {
  const database = new DatabaseSync(path, { readOnly: true });
  const found: string[] = [];
  const tables = database
    .prepare("SELECT name FROM sqlite_schema WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL%'")
    .all() as { name: string }[];
  for (const { name } of tables) {
    for (const row of database.prepare(`SELECT * FROM ${name}`).all() as Record<string, unknown>[]) {
      for (const [column, value] of Object.entries(row)) {
        const text = value instanceof Uint8Array ? Buffer.from(value).toString("latin1") : String(value);
        if (text.toLowerCase().includes(secret)) found.push(`${name}.${column}`);
      }
      if (name === "word_blocks") {
        const words = zstdDecompressSync(row["words"] as Uint8Array).toString();
        if (words.includes(secret)) found.push("word_blocks.words");
      }
      if (name === "messages") {
        const body = decodeBody({ body: row["body"] as Uint8Array, encoding: row["encoding"] as number });
        if (Buffer.from(body).toString("utf8").toLowerCase().includes(secret)) found.push("messages.body");
      }
    }
  }
  const indexes = database
    .prepare("SELECT name FROM sqlite_schema WHERE name LIKE '%\\_fts\\__' ESCAPE '\\'")
    .all() as { name: string }[];
  database.close();
  const terms = new DatabaseSync(path);
  for (const { name } of indexes) {
    terms.exec(`CREATE VIRTUAL TABLE temp.terms USING fts5vocab (main, ${name}, 'row')`);
    const hit = terms.prepare("SELECT term FROM temp.terms WHERE instr(term, ?) > 0").get(secret);
    if (hit) found.push(name);
    terms.exec("DROP TABLE temp.terms");
  }
  terms.close();
  return found;
}

describe("forgetting", () => {
  test("leaves nothing of the text in any row, term, body, page, file or later backup", async () => {
    const secrets = fc.stringMatching(/^[a-z]{12,18}$/).map((word) => `zq${word}`);
    const places = fc.uniqueArray(fc.nat({ max: 119 }), { minLength: 1, maxLength: 12 });
    await fc.assert(
      fc.asyncProperty(
        secrets,
        places,
        fc.boolean(),
        fc.boolean(),
        async (secret, chosen, isBig, isRevised) => {
          using folder = makeTemporaryFolder();
          const engine = await open(folder.path);
          const databasePath = folder.file("lcm.db");
          const filesDir = folder.file("lcm-files");
          const secretMessages = new Map(
            chosen.map((i) => [
              i,
              messageOf(
                i,
                `The password is ${secret}. ${isBig && i === chosen[0] ? `${secret} lorem ipsum dolor `.repeat(6_000) : ""}`,
              ),
            ]),
          );
          await engine.ingest({
            session,
            messages: Array.from(
              { length: 120 },
              (_, i) => secretMessages.get(i) ?? messageOf(i, "All is well."),
            ),
          });
          if (isRevised) {
            const first = chosen[0] ?? 0;
            await engine.ingest({
              session,
              messages: [{ ...messageOf(first, `Now it is ${secret}2.`), eventId: `e${first}` }],
            });
          }
          await engine.compact({ conversationId: 1, budgetTokens: 3_000, force: true });
          await engine.maintain({ conversationId: 1, budgetTokens: 1_500 });
          expect(findRows(databasePath, secret).length).toBeGreaterThan(0);
          const before = await createBackup({ engine, databasePath, filesDir });

          const options = { engine, databasePath, selection: { pattern: secret } };
          const preview = await previewForget(options);
          expect(preview.messageIds.length).toBe(chosen.length + (isRevised ? 1 : 0));
          expect((await engine.verify()).problems).toEqual([]);
          const { receipt, receiptPath } = await applyForget({ ...options, reason: "a test" });
          expect(receipt.isWiped).toBe(true);
          expect(receipt.olderCopies).toEqual([{ path: before.path, holds: "yes" }]);
          expect((await engine.verify()).problems).toEqual([]);

          const after = await createBackup({ engine, databasePath, filesDir });
          expect(findRows(databasePath, secret)).toEqual([]);
          const bodies = [...secretMessages.values()].map(({ message }) =>
            Buffer.from(encodeBody(Buffer.from(JSON.stringify(message))).body).subarray(16, 56),
          );
          // The index stores of a term what differs from the one before it, hence the end of the word.
          const needle = Buffer.from(secret.slice(5));
          expect(findBytes(before.path, [needle])).not.toEqual([]);
          const holding = findBytes(folder.path, [needle, ...bodies.filter((body) => body.length >= 24)]);
          expect(holding.filter((path) => !path.startsWith(before.path))).toEqual([]);
          expect(findBytes(after.path, [needle])).toEqual([]);
          expect(statSync(receiptPath).mode & 0o777).toBe(0o600);

          const again = await engine.ingest({ session, messages: [...secretMessages.values()] });
          expect(new Set(again.results.map((result) => result.outcome))).toEqual(new Set(["forgotten"]));
          const context = await engine.assemble({ conversationId: 1, budgetTokens: 3_000 });
          expect(JSON.stringify(context)).not.toContain(secret);
          await engine.compact({ conversationId: 1, budgetTokens: 1_000, force: true });
          expect((await engine.verify()).problems).toEqual([]);
          await engine.close();
        },
      ),
      { numRuns: isSoak ? 8 : 3 },
    );
  });

  test.each<[string, ForgetSelection, number]>([
    ["a conversation", { conversationIds: [1] }, 60],
    ["messages", { messageIds: [3, 4] }, 2],
    ["a time", { since: 1_700_000_000_000 + 10 * 60_000, before: 1_700_000_000_000 + 20 * 60_000 }, 10],
    ["an expression", { pattern: /valve_1\d\b/ }, 10],
  ])("chooses by %s, keeps the proof, and says nothing of a second time", async (_name, selection, count) => {
    using folder = makeTemporaryFolder();
    const engine = await open(folder.path);
    const options = { engine, databasePath: folder.file("lcm.db"), selection };
    await engine.ingest({
      session,
      messages: Array.from({ length: 60 }, (_, i) => messageOf(i, "Nothing else.")),
    });
    await engine.compact({ conversationId: 1, budgetTokens: 2_000, force: true });
    const { receipt } = await applyForget({ ...options, reason: "a test" });
    expect(receipt.messages).toHaveLength(count);
    expect((await engine.verify()).problems).toEqual([]);
    expect((await engine.status()).hidden.forgotten).toBeGreaterThanOrEqual(0);
    expect((await previewForget(options)).messageIds).toEqual([]);
    for (const { oldId, newId } of receipt.summariesRemade) {
      expect((await engine.readSummary({ summaryId: oldId }))?.content).toContain(newId);
    }
    expect(await engine.assemble({ conversationId: 1, budgetTokens: 1_000 })).not.toBeNull();
    await engine.close();
  });

  test("that was interrupted before the pages were wiped is found and finished by the doctor", async () => {
    using folder = makeTemporaryFolder();
    const engine = await open(folder.path);
    const databasePath = folder.file("lcm.db");
    await engine.ingest({
      session,
      messages: Array.from({ length: 40 }, (_, i) => messageOf(i, "zqremember")),
    });
    const database = new DatabaseSync(databasePath);
    database.exec("INSERT INTO meta (key, value) VALUES ('forgetting_open', 1)");
    database.close();
    const { settings } = resolveSettings({ env: {}, config: { databasePath } });
    const options = { engine, settings, databasePath, filesDir: folder.file("lcm-files") };
    const { findings, ok } = await examine(options);
    expect(ok).toBe(false);
    await mend(options, findings);
    expect(await engine.isForgettingOpen()).toBe(false);
    expect(statSync(`${databasePath}-wal`).size).toBe(0);
    expect((await engine.verify()).problems).toEqual([]);
    await engine.close();
  });

  test("names every copy that may hold the text still, those that were never finished too", async () => {
    using folder = makeTemporaryFolder();
    const engine = await open(folder.path);
    const databasePath = folder.file("lcm.db");
    const filesDir = folder.file("lcm-files");
    await engine.ingest({ session, messages: Array.from({ length: 40 }, (_, i) => messageOf(i, "")) });
    const { path: backup } = await createBackup({ engine, databasePath, filesDir });
    const whole = readFileSync(join(backup, "lcm.db"));
    const leave = (name: string, bytes: Buffer): string => {
      const path = `${databasePath}.backup-${name}.partial`;
      mkdirSync(path);
      writeFileSync(join(path, "lcm.db"), bytes);
      return path;
    };
    const killed = leave("2001", whole);
    const cut = leave("2002", whole.subarray(0, 3 * 4_096));
    const empty = leave("2003", Buffer.alloc(0));
    writeFileSync(`${databasePath}.restoring`, whole);
    const { receipt } = await applyForget({
      engine,
      databasePath,
      selection: { messageIds: [7] },
      reason: "a test",
    });
    expect(new Map(receipt.olderCopies.map(({ path, holds }) => [path, holds]))).toEqual(
      new Map([
        [backup, "yes"],
        [killed, "yes"],
        [cut, "unknown"],
        [empty, "unknown"],
        [`${databasePath}.restoring`, "yes"],
      ]),
    );
    await engine.close();
  });

  test("finds text in spool files that are damaged or were moved aside", async () => {
    using folder = makeTemporaryFolder();
    const engine = await open(folder.path);
    const spool = folder.file("lcm-spool");
    mkdirSync(spool);
    writeFileSync(join(spool, "a.json"), '{"format":1,"turn":{"messages":["the secret');
    writeFileSync(join(spool, "b.json.damaged"), '{"format":1,"turn":{"messages":["another secret');
    writeFileSync(join(spool, "c.json.damaged"), "null");
    const { spoolFiles } = await previewForget({
      engine,
      databasePath: folder.file("lcm.db"),
      selection: { pattern: "secret" },
    });
    expect(spoolFiles).toEqual([join(spool, "a.json"), join(spool, "b.json.damaged")]);
    await engine.close();
  });

  test("removes what a killed import left beside the database, and names it; not what one is writing", async () => {
    using folder = makeTemporaryFolder();
    const databasePath = folder.file("lcm.db");
    const engine = await open(folder.path);
    await engine.ingest({
      session,
      messages: [{ message: { role: "user", content: "the secret" } }],
    });
    const [left, busy, fresh] = ["a", "b", "c"].map(
      (digit) => `${databasePath}-intake-${digit.repeat(12)}`,
    ) as [string, string, string];
    const writer = new DatabaseSync(busy);
    writer.exec("CREATE TABLE kept (text)");
    for (const path of [left, fresh]) cpSync(busy, path);
    writer.exec("BEGIN IMMEDIATE");
    const minuteAgo = Date.now() / 1000 - 60;
    for (const path of [left, busy]) utimesSync(path, minuteAgo, minuteAgo);
    const request = { engine, databasePath, selection: { pattern: "secret" }, reason: "asked" };
    const { receipt } = await applyForget(request);
    expect(receipt.messages).toHaveLength(1);
    expect(receipt.intakeFiles).toEqual([left]);
    expect([left, busy, fresh].map((path) => existsSync(path))).toEqual([false, true, true]);
    writer.close();
    await engine.close();
  });

  test("names copies that were recorded elsewhere, exports, and what an adoption kept; not what was deleted", async () => {
    using folder = makeTemporaryFolder();
    using other = makeTemporaryFolder();
    const databasePath = folder.file("lcm.db");
    const filesDir = folder.file("lcm-files");
    await writeOlderDatabase(databasePath);
    const adopt = { path: databasePath, filesDir, largeFileThresholdTokens: 25_000, now: 1 };
    expect(await adoptDocumentedDatabase(adopt)).toMatchObject({ kind: "adopted" });
    const before = await open(folder.path);
    const back = async (name: string): Promise<string> =>
      (await createBackup({ engine: before, databasePath, filesDir, target: other.file(`new/${name}`) }))
        .path;
    const kept = await back("kept");
    const restored = await back("restored");
    rmSync(await back("deleted"), { recursive: true });
    await before.close();
    // A program that was killed leaves its part of a copy, and its record.
    cpSync(kept, other.file("killed.partial"), { recursive: true });
    recordCopy(databasePath, "backup", other.file("killed.partial"));
    appendFileSync(`${databasePath}.copies`, '{"path":"/cut off');
    // On a disk that is not mounted now.
    const unplugged = { path: other.file("unplugged"), kind: "backup", at: 1, device: "another" };
    appendFileSync(`${databasePath}.copies`, `\n${JSON.stringify(unplugged)}\n`);
    await exportConversations({ database: databasePath, format: "archive", out: other.file("all.lcmx") });
    // What is restored knows nothing of copies made since; the record does.
    const { keptAt } = await restoreBackup({ backupPath: restored, databasePath, filesDir });
    const engine = await open(folder.path);
    const { receipt } = await applyForget({
      engine,
      databasePath,
      selection: { messageIds: [1] },
      reason: "a test",
    });
    expect(new Map(receipt.olderCopies.map(({ path, holds }) => [path, holds]))).toEqual(
      new Map([
        [kept, "yes"],
        [restored, "yes"],
        [other.file("killed.partial"), "yes"],
        [unplugged.path, "unknown"],
        [other.file("all.lcmx"), "unknown"],
        [`${databasePath}.before-adoption`, "unknown"],
        [keptAt, "yes"],
      ]),
    );
    expect(statSync(`${databasePath}.copies`).mode & 0o077).toBe(0);
    // Without the record, those beside the database are known by their names.
    const raw = await createRawCopy({ engine, databasePath, filesDir }, NO_ACCESS);
    rmSync(`${databasePath}.copies`);
    const selection = { messageIds: [2] };
    const named = await applyForget({ engine, databasePath, selection, reason: "a test" });
    await engine.close();
    expect(new Map(named.receipt.olderCopies.map(({ path, holds }) => [path, holds]))).toEqual(
      new Map([
        [`${databasePath}.before-adoption`, "unknown"],
        [keptAt, "yes"],
        [raw, "yes"],
      ]),
    );
  });

  test("says that it is done where the disk has no room for the receipt, and leaves no part of one", async () => {
    using folder = makeTemporaryFolder();
    const engine = await open(folder.path);
    const { results } = await engine.ingest({ session, messages: [messageOf(1, ""), messageOf(2, "")] });
    const { fsyncSync } = fs;
    // The receipt is the only small file that is flushed here.
    fs.fsyncSync = (handle) => {
      if (fs.fstatSync(handle).isFile()) throw Object.assign(new Error("no space"), { code: "ENOSPC" });
      fsyncSync(handle);
    };
    syncBuiltinESMExports();
    const messageIds = results.slice(1).map(({ messageId }) => messageId);
    const request = { engine, databasePath: folder.file("lcm.db"), selection: { messageIds } };
    try {
      await expect(applyForget({ ...request, reason: "a test" })).rejects.toMatchObject({
        code: "database_full",
        message: expect.stringContaining("no receipt"),
        hint: expect.stringContaining("1 message is erased"),
      });
    } finally {
      fs.fsyncSync = fsyncSync;
      syncBuiltinESMExports();
    }
    expect(readdirSync(folder.path).filter((name) => name.includes(".forget-"))).toEqual([]);
    expect((await engine.listMessages({ conversationId: 1, limit: 5 })).items[1]?.forgottenAt).not.toBeNull();
    await engine.close();
  });

  test("continues when another program dissolves a summary while new texts are made", async () => {
    using folder = makeTemporaryFolder();
    const other = await open(folder.path);
    const messages = Array.from({ length: 60 }, (_, i) => messageOf(i, i === 2 ? "hollyhock" : ""));
    const { results } = await other.ingest({ session, messages });
    await other.compact({ conversationId: 1, budgetTokens: 2_000, force: true });
    const messageIds = [results[2]?.messageId ?? 0];
    // The finest first.
    const above = (await other.planForget({ messageIds })).summaries.filter(({ isPublished }) => isPublished);
    expect(above.length).toBeGreaterThan(0);
    const openWatched = watchStores(openStore, async (verb, run) => {
      if (verb === "readSummary")
        for (const { summaryId } of above.splice(0).reverse())
          await other.dissolveSummary({ summaryId, dryRun: false });
      return run();
    });
    const engine = await makeOpenEngine({ openStore: openWatched, workerUrl: new URL(import.meta.url) })({
      database: folder.file("lcm.db"),
      thread: false,
    });
    const { plan } = await engine.forget({ messageIds, reason: "asked" });
    expect(plan.summaries.some(({ isPublished }) => isPublished)).toBe(false);
    expect(findRows(folder.file("lcm.db"), "hollyhock")).toEqual([]);
    expect((await engine.verify()).problems).toEqual([]);
    await engine.close();
    await other.close();
  });

  test("is refused when nothing was chosen", async () => {
    using folder = makeTemporaryFolder();
    const engine = await open(folder.path);
    await engine.ingest({ session, messages: [messageOf(1, "")] });
    const options = { engine, databasePath: folder.file("lcm.db") };
    const everything = [new RegExp("", "iu"), /x*/u, /secret|/iu, /(?:secret)?/gu];
    for (const selection of [{}, { pattern: "  " }, ...everything.map((pattern) => ({ pattern }))]) {
      await expect(previewForget({ ...options, selection })).rejects.toMatchObject({ code: "usage" });
    }
    for (const pattern of [/^$/u, /./u, /\d*x/gu]) {
      await expect(previewForget({ ...options, selection: { pattern } })).resolves.toBeDefined();
    }
    await engine.close();
  });

  test("cannot be faked: a tombstone without a record, or a record without one, is a problem", async () => {
    using folder = makeTemporaryFolder();
    const path = folder.file("lcm.db");
    const engine = await open(folder.path);
    await engine.ingest({ session, messages: [messageOf(1, ""), messageOf(2, ""), messageOf(3, "")] });
    await engine.forget({ messageIds: [2], reason: "a test" });
    expect((await engine.verify()).problems).toEqual([]);
    const verifyAfter = async (sql: string): Promise<string[]> => {
      const database = new DatabaseSync(path);
      database.exec(`SAVEPOINT a; ${sql}; RELEASE a`);
      database.close();
      return (await engine.verify()).problems.map((problem) => `${problem.code} ${problem.id}`);
    };
    expect(
      await verifyAfter(
        "UPDATE messages SET forgotten_at = 5, body = x'', salt = x'', encoding = 0 WHERE message_id = 1",
      ),
    ).toContain("forgotten msg_1");
    expect(await verifyAfter("UPDATE messages SET forgotten_at = NULL WHERE message_id = 2")).toContain(
      "forgotten msg_2",
    );
    await engine.close();
  });

  test("takes nothing from another archive in the same folder that holds the same large text", async () => {
    using folder = makeTemporaryFolder();
    const large = `a long report ${"with many words of all kinds ".repeat(6_000)}`;
    const engines = await Promise.all(
      ["one.db", "two.db"].map((name) => openEngine({ database: folder.file(name), thread: false })),
    );
    for (const engine of engines) await engine.ingest({ session, messages: [messageOf(0, large)] });
    const [one, two] = engines as [Engine, Engine];
    await one.forget({ messageIds: [1], reason: "a test" });
    for (const engine of engines) expect((await engine.verify()).problems).toEqual([]);
    expect(Buffer.from((await two.readMessage({ messageId: 1 }))?.bytes ?? []).toString()).toContain(large);
    for (const engine of engines) await engine.close();
  });
});

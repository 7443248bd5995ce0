import { openEngine } from "lossless-claw";
import { listBackups } from "../../src/repair/backup.ts";
import { createBackup, restoreBackup } from "lossless-claw/repair";
import { applyForget } from "lossless-claw/repair";
import { makeTemporaryFolder } from "@lossless/testkit";
import { watchDisk } from "@lossless/testkit/watch-disk.ts";
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, expect, test } from "vitest";

const session = { key: "agent:main:test", id: "session-1", owner: "main" };
const message = (i: number) => ({
  eventId: `e${i}`,
  message: { role: "user", content: `message number ${i}` },
});
const big = {
  eventId: "big",
  message: { role: "user", content: `see ${"lorem ipsum dolor ".repeat(12_000)}` },
};

describe.runIf(process.platform === "linux")("what is on the disk", () => {
  test("is flushed before older backups are removed, and before a restore puts a backup in place", async () => {
    using folder = makeTemporaryFolder();
    const databasePath = folder.file("lcm.db");
    const filesDir = folder.file("lcm-files");
    const engine = await openEngine({ database: databasePath, thread: false });
    await engine.ingest({ session, messages: [big, message(1)] });
    const older = await createBackup({ engine, databasePath, filesDir, now: Date.UTC(2026, 0, 1) });
    const target = `${databasePath}.backup-20260102-000000`;
    const made = await watchDisk(() =>
      createBackup({ engine, databasePath, filesDir, now: Date.UTC(2026, 0, 2), keep: 1 }),
    );
    await engine.close();
    const [file] = readdirSync(join(filesDir, "1"));
    const renamed = made.indexOf(`rename ${target}`);
    for (const path of ["", "/lcm.db", "/lcm-files", "/lcm-files/1", `/lcm-files/1/${file}`])
      expect(made.slice(0, renamed), path).toContain(`flush ${target}.partial${path}`);
    const removed = made.indexOf(`remove ${older.path}`);
    expect(removed).toBeGreaterThan(renamed);
    expect(made.slice(renamed, removed)).toContain(`flush ${folder.path}`);

    const now = Date.UTC(2026, 0, 3);
    const kept = ".before-restore-20260103-000000";
    const done = await watchDisk(() => restoreBackup({ backupPath: target, databasePath, filesDir, now }));
    const exchanged = done.indexOf(`rename ${databasePath}`);
    const before = done.slice(0, exchanged);
    for (const path of [`${databasePath}.restoring`, `${filesDir}/1/${file}`, `${filesDir}/1`, filesDir])
      expect(before, path).toContain(`flush ${path}`);
    for (const path of [`${databasePath}${kept}`, `${filesDir}${kept}/1/${file}`, dirname(databasePath)])
      expect(before, path).toContain(`flush ${path}`);
    expect(done.slice(exchanged)).toContain(`flush ${folder.path}`);
  });
});

describe("two at once", () => {
  test("backups of the same second both end, each under its own name", async () => {
    using folder = makeTemporaryFolder();
    const databasePath = folder.file("lcm.db");
    const filesDir = folder.file("lcm-files");
    const engine = await openEngine({ database: databasePath, thread: false });
    await engine.ingest({ session, messages: [big, message(1)] });
    const options = { engine, databasePath, filesDir, now: Date.UTC(2026, 0, 1) };
    const made = await Promise.all([createBackup(options), createBackup(options)]);
    expect(made.map(({ path }) => path)).toEqual(
      ["", "-2"].map((number) => `${databasePath}.backup-20260101-000000${number}`),
    );
    expect(made).toMatchObject([
      { messages: 2, files: 1 },
      { messages: 2, files: 1 },
    ]);
    const target = folder.file("chosen");
    const both = await Promise.allSettled([1, 2].map(() => createBackup({ ...options, target })));
    expect(both.map(({ status }) => status)).toEqual(["fulfilled", "rejected"]);
    expect(both[1]).toMatchObject({
      reason: { code: "usage", message: expect.stringContaining("in the way") as string },
    });
    await engine.close();
  });

  test("restores do not get in each other's way: the second is refused", async () => {
    using folder = makeTemporaryFolder();
    const databasePath = folder.file("lcm.db");
    const filesDir = folder.file("lcm-files");
    const engine = await openEngine({ database: databasePath, thread: false });
    await engine.ingest({ session, messages: [message(1)] });
    const { path: small } = await createBackup({ engine, databasePath, filesDir, now: Date.UTC(2026, 0, 1) });
    await engine.ingest({ session, messages: [big] });
    const { path: backupPath } = await createBackup({
      engine,
      databasePath,
      filesDir,
      now: Date.UTC(2026, 0, 2),
    });
    await engine.close();
    const restores = [backupPath, small].map((path) =>
      restoreBackup({ backupPath: path, databasePath, filesDir }),
    );
    const [first, second] = await Promise.allSettled(restores);
    expect(first).toMatchObject({ status: "fulfilled", value: { messages: 2, files: 1 } });
    expect(second).toMatchObject({ status: "rejected", reason: { code: "database_busy" } });
    const restored = await openEngine({ database: databasePath, thread: false });
    expect(await restored.verify()).toMatchObject({ ok: true, messages: 2, files: 1 });
    await restored.close();
  });
});

describe("a backup", () => {
  test("is made while messages arrive, is proven, and comes back whole", async () => {
    using folder = makeTemporaryFolder();
    const databasePath = folder.file("lcm.db");
    const filesDir = folder.file("lcm-files");
    const engine = await openEngine({ database: databasePath });
    await engine.ingest({ session, messages: [big, ...Array.from({ length: 300 }, (_, i) => message(i))] });
    let arriving = 300;
    const report = await createBackup({
      engine,
      databasePath,
      filesDir,
      onProgress: () => void engine.ingest({ session, messages: [message(arriving++)] }),
    });
    expect(report.messages).toBeGreaterThanOrEqual(301);
    expect(report.files).toBe(1);
    await engine.ingest({
      session,
      messages: [{ eventId: "later", message: { role: "user", content: "after the backup" } }],
    });
    await engine.close();
    expect(readdirSync(folder.path).filter((name) => name.endsWith(".partial"))).toEqual([]);
    expect(listBackups(databasePath).map((entry) => entry.path)).toEqual([report.path]);

    const restored = await restoreBackup({ backupPath: report.path, databasePath, filesDir });
    expect(restored.messages).toBe(report.messages);
    const again = await openEngine({ database: databasePath, thread: false });
    expect((await again.verify()).problems).toEqual([]);
    expect(await again.knownEvents({ sessionId: "session-1", eventIds: ["later", "e0"] })).toEqual(["e0"]);
    await again.close();
    const kept = await openEngine({
      database: restored.keptAt ?? "",
      filesDir: `${filesDir}${restored.keptAt?.slice(databasePath.length)}`,
      thread: false,
    });
    expect(await kept.knownEvents({ sessionId: "session-1", eventIds: ["later"] })).toEqual(["later"]);
    expect((await kept.verify()).problems).toEqual([]);
    await kept.close();
  });

  test("that was damaged is refused, and the archive stays as it is", async () => {
    using folder = makeTemporaryFolder();
    const databasePath = folder.file("lcm.db");
    const filesDir = folder.file("lcm-files");
    const engine = await openEngine({ database: databasePath, thread: false });
    await engine.ingest({ session, messages: [big, message(1)] });
    const report = await createBackup({ engine, databasePath, filesDir });
    await engine.close();
    const files = join(report.path, "lcm-files", "1");
    writeFileSync(join(files, readdirSync(files)[0] ?? ""), "not what it was");
    const before = readFileSync(databasePath);
    await expect(restoreBackup({ backupPath: report.path, databasePath, filesDir })).rejects.toMatchObject({
      code: "verification_failed",
    });
    expect(readFileSync(databasePath).equals(before)).toBe(true);
  });

  test("that holds what was forgotten since is refused, and the messages are named", async () => {
    using folder = makeTemporaryFolder();
    const databasePath = folder.file("lcm.db");
    const filesDir = folder.file("lcm-files");
    const engine = await openEngine({ database: databasePath, thread: false });
    await engine.ingest({ session, messages: [message(1), message(2), message(3)] });
    await engine.forget({ messageIds: [3], reason: "before the backup" });
    const { path: backupPath } = await createBackup({ engine, databasePath, filesDir });
    const selection = { messageIds: [2] };
    await applyForget({ engine, databasePath, selection, reason: "asked for" });
    await engine.close();
    const request = { backupPath, databasePath, filesDir };
    const refusal = "it brings back messages that were forgotten since: msg_2";
    const list = (): string[] =>
      readdirSync(folder.path).filter((name) => !/(?:-wal|-shm|\.restore\.lock)$/.test(name));
    const before = list();
    await expect(restoreBackup(request)).rejects.toThrow(new RegExp(`${refusal}$`));
    expect(list()).toEqual(before);
    // Where the archive is gone, its receipts tell.
    for (const log of ["", "-wal", "-shm"]) rmSync(`${databasePath}${log}`, { force: true });
    await expect(restoreBackup(request)).rejects.toThrow(refusal);
    expect(await restoreBackup({ ...request, withForgotten: true })).toMatchObject({ messages: 3 });
    expect(readdirSync(folder.path).filter((name) => name.includes("restoring"))).toEqual([]);
  });

  test("is not restored over a database that somebody has open", async () => {
    using folder = makeTemporaryFolder();
    const databasePath = folder.file("lcm.db");
    const filesDir = folder.file("lcm-files");
    const engine = await openEngine({ database: databasePath });
    await engine.ingest({ session, messages: [message(1)] });
    const report = await createBackup({ engine, databasePath, filesDir });
    await expect(restoreBackup({ backupPath: report.path, databasePath, filesDir })).rejects.toMatchObject({
      code: "database_busy",
    });
    expect((await engine.verify()).ok).toBe(true);
    await engine.close();
  });

  test("keeps only as many as asked for, and never writes over another", async () => {
    using folder = makeTemporaryFolder();
    const databasePath = folder.file("lcm.db");
    const filesDir = folder.file("lcm-files");
    const engine = await openEngine({ database: databasePath, thread: false });
    await engine.ingest({ session, messages: [message(1)] });
    for (let day = 1; day <= 4; day++) {
      await createBackup({ engine, databasePath, filesDir, now: Date.UTC(2026, 0, day), keep: 2 });
    }
    const left = listBackups(databasePath).map((entry) => entry.path);
    expect(left.map((path) => path.slice(-15))).toEqual(["20260104-000000", "20260103-000000"]);
    await expect(
      createBackup({ engine, databasePath, filesDir, target: left[0] ?? "" }),
    ).rejects.toMatchObject({ code: "usage" });
    expect(existsSync(left[0] ?? "")).toBe(true);
    await engine.close();
  });
});

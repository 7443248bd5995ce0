/** Databases that cannot be used: one clear error with the documented code, and the file left as it was. */
import { openEngine } from "lossless-claw";
import { makeTemporaryFolder } from "@lossless/testkit";
import { chmodSync, copyFileSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync } from "node:fs";
import { statSync, symlinkSync, writeFileSync } from "node:fs";
import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { describe, expect, test } from "vitest";

const session = { key: "agent:main:test", id: "session-1", owner: "main" };
const open = (database: string, create = true) => openEngine({ database, thread: false, create });

describe("opening a database", () => {
  test("refuses a file that is no database, and leaves it alone", async () => {
    using folder = makeTemporaryFolder();
    const path = folder.file("notes.db");
    writeFileSync(path, "these are my notes, not a database\n".repeat(200));
    const before = readFileSync(path);
    await expect(open(path)).rejects.toMatchObject({ code: "database_foreign" });
    expect(readFileSync(path).equals(before)).toBe(true);
  });

  test.runIf(process.platform === "linux")("refuses a device and a pipe, and writes nothing", async () => {
    using folder = makeTemporaryFolder();
    const pipe = folder.file("pipe.db");
    execFileSync("mkfifo", [pipe]);
    for (const path of ["/dev/null", pipe])
      await expect(open(path), path).rejects.toMatchObject({
        code: "database_unreadable",
        message: expect.stringContaining("not a regular file"),
      });
    expect(readdirSync(folder.path)).toEqual(["pipe.db"]);
    expect(readdirSync("/dev").filter((name) => name.startsWith("null"))).toEqual(["null"]);
  });

  test.runIf(process.platform !== "win32")("finds large files through a link to the database", async () => {
    using folder = makeTemporaryFolder();
    mkdirSync(folder.file("elsewhere"));
    const [real, link] = [folder.file("elsewhere/notes.db"), folder.file("link.db")];
    const store = async (path: string, eventId: string): Promise<void> => {
      const engine = await open(path);
      const message = { role: "user", content: `${eventId} ${"long words ".repeat(30_000)}` };
      await engine.ingest({ session, messages: [{ eventId, message }] });
      expect((await engine.verify()).problems).toEqual([]);
      await engine.close();
    };
    await store(real, "one");
    symlinkSync(real, link);
    await store(link, "two");
    await store(real, "three");
    expect(readdirSync(folder.path).toSorted()).toEqual(["elsewhere", "link.db"]);
  });

  test("refuses another program's database, and says so when it is an older lossless-claw", async () => {
    using folder = makeTemporaryFolder();
    for (const [name, sql, said] of [
      ["other.db", "CREATE TABLE recipes (id INTEGER)", "another program"],
      ["old.db", "CREATE TABLE conversations (id); CREATE TABLE context_items (id)", "another lossless-claw"],
    ] as const) {
      const path = folder.file(name);
      const database = new DatabaseSync(path);
      database.exec(sql);
      database.close();
      const before = readFileSync(path);
      await expect(open(path)).rejects.toMatchObject({
        code: "database_foreign",
        message: expect.stringContaining(said),
      });
      expect(readFileSync(path).equals(before)).toBe(true);
    }
  });

  test("refuses a file of a newer version, and leaves it alone", async () => {
    using folder = makeTemporaryFolder();
    const path = folder.file("lcm.db");
    await (await open(path)).close();
    const database = new DatabaseSync(path);
    database.exec("PRAGMA user_version = 99");
    database.close();
    await expect(open(path)).rejects.toMatchObject({
      code: "database_newer",
      message: expect.stringContaining("99"),
    });
  });

  test("refuses to go on once another program has upgraded the file", async () => {
    using folder = makeTemporaryFolder();
    const path = folder.file("lcm.db");
    const engine = await open(path);
    const store = (eventId: string) =>
      engine.ingest({
        session,
        messages: [{ eventId, message: { role: "user", content: `pump ${eventId}` } }],
      });
    await store("before");
    await engine.flushIndex();
    const newer = new DatabaseSync(path);
    newer.exec("CREATE TABLE later (id INTEGER); PRAGMA user_version = 99");
    const refused = { code: "database_newer", message: expect.stringContaining("99") };
    // Its statements would still work here: it is refused before it leaves out rows that the new schema needs.
    await expect(store("after")).rejects.toMatchObject(refused);
    await expect(engine.verify()).rejects.toMatchObject(refused);
    newer.exec("ALTER TABLE conversations RENAME COLUMN session_key TO lane");
    await expect(engine.listConversations({ limit: 1 })).rejects.toMatchObject(refused);
    await expect(store("after")).rejects.toMatchObject(refused);
    expect(newer.prepare("SELECT count(*) AS n FROM messages").get()).toEqual({ n: 1 });
    newer.close();
    await engine.close();
  });

  test("refuses a directory, a missing file that must not be made, and a file in the way of a folder", async () => {
    using folder = makeTemporaryFolder();
    mkdirSync(folder.file("dir"));
    await expect(open(folder.file("dir"))).rejects.toMatchObject({ code: "database_unreadable" });
    await expect(open(folder.file("none.db"), false)).rejects.toMatchObject({ code: "database_missing" });
    writeFileSync(folder.file("file"), "x");
    await expect(open(folder.file("file/lcm.db"))).rejects.toMatchObject({ code: "database_unreadable" });
  });

  test("makes files only their owner can read", async () => {
    using folder = makeTemporaryFolder();
    for (const thread of [false, true]) {
      const database = folder.file(`private-${thread}/lcm.db`);
      const engine = await openEngine({ database, thread });
      await engine.ingest({
        session,
        messages: [{ eventId: "a", message: { role: "user", content: `x ${"long words ".repeat(30_000)}` } }],
      });
      for (const name of ["lcm.db", "lcm.db-wal", "lcm.db-shm"]) {
        expect(statSync(folder.file(`private-${thread}/${name}`)).mode & 0o077, name).toBe(0);
      }
      expect(statSync(folder.file(`private-${thread}/lcm-files/1`)).mode & 0o077).toBe(0);
      await engine.close();
    }
  });

  test("never follows a link out of the files folder", async () => {
    using folder = makeTemporaryFolder();
    mkdirSync(folder.file("outside"));
    mkdirSync(folder.file("lcm-files"));
    symlinkSync(folder.file("outside"), folder.file("lcm-files/1"));
    const engine = await open(folder.file("lcm.db"));
    const big = { role: "user", content: `x ${"long words ".repeat(30_000)}` };
    await expect(
      engine.ingest({ session, messages: [{ eventId: "a", message: big }] }),
    ).rejects.toMatchObject({
      code: "database_unreadable",
    });
    expect((await engine.status()).messages).toBe(0);
    await engine.close();
  });

  test("says that the disk is full, keeps what was stored, and goes on when there is space", async (context) => {
    using folder = makeTemporaryFolder();
    const disk = folder.file("disk");
    mkdirSync(disk);
    try {
      execFileSync("mount", ["-t", "tmpfs", "-o", "size=3m", "tmpfs", disk], { stdio: "ignore" });
    } catch {
      context.skip("no small disk can be mounted here");
    }
    try {
      const engine = await open(`${disk}/lcm.db`);
      const message = (i: number) => ({
        role: "user",
        content: Array.from({ length: 400 }, (_, j) => `${i}-${j * 7919}`).join(" "),
      });
      let stored = 0;
      const fill = async (): Promise<void> => {
        for (let i = stored; i < 5_000; i++) {
          await engine.ingest({ session, messages: [{ eventId: `e${i}`, message: message(i) }] });
          stored += 1;
        }
      };
      await expect(fill()).rejects.toMatchObject({ code: "database_full" });
      expect(stored).toBeGreaterThan(10);
      execFileSync("mount", ["-o", "remount,size=12m", disk]);
      await engine.ingest({ session, messages: [{ eventId: `e${stored}`, message: message(stored) }] });
      expect((await engine.verify()).problems).toEqual([]);
      expect((await engine.status()).messages).toBe(stored + 1);
      await engine.close();
    } finally {
      execFileSync("umount", ["-l", disk]);
    }
  });

  test("reads and proves an archive on a read-only mount, or names the log that it cannot read there", async (context) => {
    using folder = makeTemporaryFolder();
    const disk = folder.file("disk");
    mkdirSync(disk);
    try {
      execFileSync("mount", ["-t", "tmpfs", "-o", "size=8m", "tmpfs", disk], { stdio: "ignore" });
    } catch {
      context.skip("no disk can be mounted here");
    }
    try {
      const engine = await open(`${disk}/lcm.db`);
      const message = { role: "user", content: "the greenhouse is on fire" };
      await engine.ingest({ session, messages: [{ eventId: "a", message }] });
      // What is left of a program that was killed: with and without what shares the log.
      for (const [name, files] of [
        ["killed", ["lcm.db", "lcm.db-wal", "lcm.db-shm"]],
        ["copied", ["lcm.db", "lcm.db-wal"]],
      ] as const) {
        mkdirSync(`${disk}/${name}`);
        for (const file of files) copyFileSync(`${disk}/${file}`, `${disk}/${name}/${file}`);
      }
      await engine.close();
      execFileSync("mount", ["-o", "remount,ro", disk]);
      for (const [path, thread] of [
        [`${disk}/lcm.db`, true],
        [`${disk}/killed/lcm.db`, false],
      ] as const) {
        const reading = await openEngine({ database: path, readOnly: true, thread });
        expect(await reading.verify()).toMatchObject({ problems: [], messages: 1 });
        const read = await reading.readMessage({ messageId: 1 });
        expect(JSON.parse(Buffer.from(read?.bytes ?? []).toString("utf8"))).toEqual(message);
        await reading.close();
      }
      const copied = openEngine({ database: `${disk}/copied/lcm.db`, readOnly: true, thread: false });
      await expect(copied).rejects.toMatchObject({
        code: "database_unreadable",
        message: expect.stringContaining("lcm.db-wal contains rows"),
      });
    } finally {
      execFileSync("umount", ["-l", disk]);
    }
  });

  test("reads an archive in a folder that its user may not write", async (context) => {
    if (process.getuid?.() === 0) context.skip("root may write everywhere");
    using folder = makeTemporaryFolder();
    const path = folder.file("lcm.db");
    await (await open(path)).close();
    chmodSync(folder.path, 0o500);
    try {
      const reading = await openEngine({ database: path, readOnly: true, thread: false });
      expect((await reading.verify()).problems).toEqual([]);
      await reading.close();
    } finally {
      chmodSync(folder.path, 0o700);
    }
  });

  test("does not take a file of zero bytes for an empty archive, nor drops the log beside it", async () => {
    using folder = makeTemporaryFolder();
    const path = folder.file("lcm.db");
    writeFileSync(path, "");
    for (const readOnly of [false, true]) {
      await expect(
        openEngine({ database: path, thread: false, create: false, readOnly }),
      ).rejects.toMatchObject({ code: "database_corrupt", message: expect.stringContaining("0 bytes") });
    }
    expect(statSync(path).size).toBe(0);
    writeFileSync(`${path}-wal`, "rows");
    await expect(open(path)).rejects.toMatchObject({ code: "database_corrupt" });
    expect(readFileSync(`${path}-wal`, "utf8")).toBe("rows");
    rmSync(`${path}-wal`);
    await (await open(path)).close();
  });

  test("names missing permissions", async (context) => {
    if (process.getuid?.() === 0) context.skip("root may read everything");
    using folder = makeTemporaryFolder();
    await (await open(folder.file("lcm.db"))).close();
    chmodSync(folder.file("lcm.db"), 0o000);
    await expect(open(folder.file("lcm.db"))).rejects.toMatchObject({ code: "database_unreadable" });
  });
});

describe("storing", () => {
  const message = (eventId: string) => ({
    eventId,
    message: { role: "user", content: `message ${eventId}` },
  });

  test.each([
    ["the database was deleted", (path: string) => rmSync(path)],
    ["the database was replaced", (path: string) => renameSync(`${path}.other`, path)],
    ["its log was deleted", (path: string) => rmSync(`${path}-wal`)],
  ])("fails, and says why, when %s meanwhile", async (_what, harm) => {
    using folder = makeTemporaryFolder();
    const path = folder.file("lcm.db");
    await (await open(`${path}.other`)).close();
    const engine = await open(path);
    await engine.ingest({ session, messages: [message("a")] });
    harm(path);
    await expect(engine.ingest({ session, messages: [message("b")] })).rejects.toMatchObject({
      code: "database_replaced",
      message: expect.stringContaining(path),
    });
    await engine.close();
    const again = await open(path);
    await again.ingest({ session, messages: [message("b")] });
    expect(await again.knownEvents({ sessionId: session.id, eventIds: ["b"] })).toEqual(["b"]);
    await again.close();
  });

  test("writes a large file again that was damaged without changing its size", async () => {
    using folder = makeTemporaryFolder();
    const engine = await open(folder.file("lcm.db"));
    const content = `see ${"lorem ipsum dolor sit amet ".repeat(8_000)} end`;
    const [first] = (
      await engine.ingest({ session, messages: [{ eventId: "a", message: { role: "user", content } }] })
    ).results;
    const files = folder.file("lcm-files/1");
    const path = join(files, readdirSync(files)[0] ?? "");
    const intact = readFileSync(path, "utf8");
    writeFileSync(path, intact.replace("dolor", "DOLOR"));
    const [again] = (
      await engine.ingest({ session, messages: [{ eventId: "b", message: { role: "user", content } }] })
    ).results;
    expect(again?.outcome).toBe("stored");
    expect(readFileSync(path, "utf8")).toBe(intact);
    for (const stored of [first, again]) {
      const read = await engine.readMessage({ messageId: stored?.messageId ?? 0 });
      expect(JSON.parse(Buffer.from(read?.bytes ?? []).toString("utf8"))).toEqual({ role: "user", content });
    }
    expect((await engine.verify()).problems).toEqual([]);
    await engine.close();
  });
});

describe("a damaged index", () => {
  test.each([
    ["dropped", "DROP TABLE messages_fts_1"],
    ["gutted", "DELETE FROM messages_fts_1_data"],
    ["scribbled over", "UPDATE messages_fts_1_data SET block = zeroblob(64)"],
  ])("that was %s never stops storing, is reported, and is mended by a rebuild", async (_how, sql) => {
    using folder = makeTemporaryFolder();
    const path = folder.file("lcm.db");
    const before = await open(path);
    await before.ingest({
      session,
      messages: [{ eventId: "a", message: { role: "user", content: "a carrier pigeon" } }],
    });
    await before.close();
    const database = new DatabaseSync(path, { defensive: false });
    database.exec(sql);
    database.close();

    const events: string[] = [];
    const engine = await openEngine({
      database: path,
      thread: false,
      onEvent: (event) => events.push(event.kind),
    });
    const { results } = await engine.ingest({
      session,
      messages: [{ eventId: "b", message: { role: "user", content: "another pigeon" } }],
    });
    expect(results[0]?.outcome).toBe("stored");
    const report = await engine.verify();
    expect(report.problems.every((problem) => problem.code === "index")).toBe(true);
    expect(report.ok).toBe(false);
    const { messages } = await engine.reindex();
    expect(messages).toBe(2);
    expect((await engine.search({ query: "pigeon", limit: 5 })).total).toBe(2);
    expect((await engine.verify()).problems).toEqual([]);
    expect((await engine.status()).index).toEqual({ kind: "ready", messages: 2, pending: 0 });
    await engine.close();
  });

  test("is rebuilt while messages keep arriving, and misses none of them", async () => {
    using folder = makeTemporaryFolder();
    const engine = await openEngine({ database: folder.file("lcm.db") });
    const ingest = (from: number, to: number) =>
      engine.ingest({
        session,
        messages: Array.from({ length: to - from }, (_, i) => ({
          eventId: `e${from + i}`,
          message: { role: "user", content: `pigeon number ${from + i}` },
        })),
      });
    await ingest(0, 1_500);
    let arriving = 1_500;
    const rebuilding = engine.reindex({ onProgress: () => void ingest(arriving++, arriving) });
    await rebuilding;
    await ingest(arriving++, arriving);
    expect((await engine.search({ query: "pigeon", limit: 1 })).total).toBe((await engine.status()).messages);
    expect((await engine.verify()).problems).toEqual([]);
    await engine.close();
  });
});

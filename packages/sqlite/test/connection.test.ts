/** Writes that are held together: what cannot be kept is undone whole, and the connection stays usable. */
import { makeTemporaryFolder } from "@lossless/testkit";
import { expect, test } from "vitest";
import { Connection } from "../src/connection.ts";
import { translate } from "../src/errors.ts";

function openTable(path: string): Connection {
  const connection = new Connection({ path, create: true, readOnly: false, busyLimitMs: 1_000 });
  connection.enableWal();
  connection.write(() => connection.exec("CREATE TABLE notes (text BLOB)"));
  return connection;
}

const countNotes = (connection: Connection): unknown =>
  connection.write(() => connection.get<{ n: number }>("SELECT count(*) AS n FROM notes")?.n);

test("held writes that fill the disk are undone, with what lies outside the database", async () => {
  using folder = makeTemporaryFolder();
  const connection = openTable(folder.file("lcm.db"));
  connection.exec("PRAGMA max_page_count = 20");
  let undone = 0;
  const held = connection.writeThroughout(async () => {
    connection.afterRollback(() => (undone += 1));
    for (;;) connection.run("INSERT INTO notes VALUES (zeroblob(5000))");
  });
  await expect(held).rejects.toThrow("full");
  expect([undone, countNotes(connection)]).toEqual([1, 0]);
  connection.close();
});

test("held writes that cannot be committed are undone while nobody else can write", async () => {
  using folder = makeTemporaryFolder();
  const path = folder.file("lcm.db");
  const connection = openTable(path);
  let couldOthersWrite: string | null = null;
  const failure = new Error("cannot seal");
  let isFailing = true;
  connection.onCommit({
    before: () => {
      if (isFailing) throw failure;
    },
    ended: () => (isFailing = false),
  });
  const held = connection.writeThroughout(async () => {
    connection.afterRollback(() => {
      const other = new Connection({ path, create: false, readOnly: false, busyLimitMs: 1 });
      couldOthersWrite = other.tryWrite(() => undefined).kind;
      other.close();
    });
    connection.run("INSERT INTO notes VALUES (1)");
  });
  await expect(held).rejects.toThrow(failure);
  expect([couldOthersWrite, countNotes(connection)]).toEqual(["busy", 0]);
  connection.close();
});

test("a commit waits for the disk", () => {
  using folder = makeTemporaryFolder();
  const connection = openTable(folder.file("lcm.db"));
  const FULL = 2;
  expect(connection.get<{ synchronous: number }>("PRAGMA synchronous")?.synchronous).toBe(FULL);
  connection.close();
});

test.runIf(process.platform === "linux")("an I/O error on a disk without space says that it is full", () => {
  using folder = makeTemporaryFolder();
  const error = Object.assign(new Error("disk I/O error"), { code: "ERR_SQLITE_ERROR", errcode: 4874 });
  // The file system of processes has no space at all.
  expect(translate(error, "open", "/proc/lcm.db")).toMatchObject({ code: "database_full" });
  expect(translate(error, "open", folder.file("lcm.db"))).toMatchObject({ code: "database_unreadable" });
  expect(translate(error, "open", "/nowhere/lcm.db")).toMatchObject({ code: "database_unreadable" });
});

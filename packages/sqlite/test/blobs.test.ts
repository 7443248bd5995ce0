/** Large payloads are behind a port: the store puts, reads and removes them by name, wherever they are kept. */
import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { createLocalEngine, deriveMessage } from "@lossless/core/testing";
import { resolveSettings } from "@lossless/core";
import { BlobFolder } from "@lossless/core/adapter";
import type { Blobs } from "@lossless/core/ports";
import { makeTemporaryFolder } from "@lossless/testkit";
import { MemoryBlobs } from "@lossless/testkit/memory-blobs.ts";
import { watchDisk } from "@lossless/testkit/watch-disk.ts";
import { expect, test } from "vitest";
import { SqliteStore } from "../src/sqlite-store.ts";

const SESSION = { key: "agent:main:s1", id: "s1", owner: "main" };
const NAME = "1/file_0123456789abcdef.txt";
const KINDS: readonly (readonly [string, (folder: string) => Blobs])[] = [
  ["a folder", (folder) => new BlobFolder(folder)],
  ["memory", () => new MemoryBlobs()],
];

test.each(KINDS)("blobs in %s are put once, read, listed and removed", (_name, open) => {
  using folder = makeTemporaryFolder();
  const blobs = open(folder.file("blobs"));
  const content = Buffer.from("a large payload");
  expect([blobs.read(NAME), blobs.list(), blobs.remove(NAME)]).toEqual([null, [], false]);
  blobs.put(NAME, content);
  blobs.put(NAME, content);
  expect(Buffer.from(blobs.read(NAME) ?? [])).toEqual(content);
  expect(blobs.list()).toEqual([NAME]);
  expect([blobs.remove(NAME), blobs.read(NAME), blobs.list()]).toEqual([true, null, []]);
});

test("an archive that keeps its payloads elsewhere has no folder, proves, and forgets them", async () => {
  using folder = makeTemporaryFolder();
  const blobs = new MemoryBlobs();
  const [path, filesDir] = [folder.file("lcm.db"), folder.file("lcm-files")];
  const engine = createLocalEngine({
    store: new SqliteStore({ path, filesDir, blobs, create: true, derive: deriveMessage }),
    settings: resolveSettings({ env: {}, config: { databasePath: path } }).settings,
  });
  const message = { role: "user", content: "a line of a log\n".repeat(30_000) };
  const { results } = await engine.ingest({ session: SESSION, messages: [{ message }] });
  const messageId = results[0]?.messageId ?? 0;
  expect(blobs.list()).toEqual(await engine.listBlobs());
  expect(blobs.list()).toHaveLength(1);
  const stored = await engine.readMessage({ messageId });
  expect(JSON.parse(Buffer.from(stored?.bytes ?? []).toString())).toEqual(message);
  expect(await engine.verify()).toMatchObject({ ok: true, files: 1 });
  await engine.forget({ messageIds: [messageId], reason: "a test" });
  expect(blobs.list()).toEqual([]);
  expect((await engine.verify()).problems).toEqual([]);
  await engine.close();
  expect(existsSync(filesDir)).toBe(false);
});

test("a forgotten payload is removed while nobody can store the same, and at the next try if that fails", async () => {
  using folder = makeTemporaryFolder();
  const [path, filesDir] = [folder.file("lcm.db"), folder.file("lcm-files")];
  const blobs = new BlobFolder(filesDir);
  let isBroken = true;
  const locks: boolean[] = [];
  const remove = (name: string): boolean => {
    locks.push(!canWrite(path));
    if (isBroken) throw new Error("the folder is read-only");
    return blobs.remove(name);
  };
  const engine = createLocalEngine({
    store: new SqliteStore({
      path,
      filesDir,
      blobs: {
        put: (name, content) => blobs.put(name, content),
        read: (name) => blobs.read(name),
        list: () => blobs.list(),
        remove,
      },
      create: true,
      derive: deriveMessage,
    }),
    settings: resolveSettings({ env: {}, config: { databasePath: path } }).settings,
  });
  const message = { role: "user", content: "a line of a log\n".repeat(30_000) };
  const { results } = await engine.ingest({ session: SESSION, messages: [{ message }] });
  const forgetting = engine.forget({ messageIds: [results[0]?.messageId ?? 0], reason: "a test" });
  await expect(forgetting).rejects.toThrow("read-only");
  expect(blobs.list()).toHaveLength(1);
  expect(await engine.isForgettingOpen()).toBe(true);
  isBroken = false;
  expect(await engine.finishForgetting()).toBe(true);
  expect(blobs.list()).toEqual([]);
  expect(locks).toEqual([true, true]);
  expect((await engine.verify()).problems).toEqual([]);
  await engine.close();
});

function canWrite(path: string): boolean {
  const other = new DatabaseSync(path, { timeout: 0 });
  try {
    other.exec("BEGIN IMMEDIATE; ROLLBACK");
    return true;
  } catch {
    return false;
  } finally {
    other.close();
  }
}

test.runIf(process.platform === "linux")(
  "a large file and its name are on the disk before the message that needs them is committed",
  async () => {
    using folder = makeTemporaryFolder();
    const [path, filesDir] = [folder.file("lcm.db"), folder.file("lcm-files")];
    const engine = createLocalEngine({
      store: new SqliteStore({ path, filesDir, create: true, derive: deriveMessage }),
      settings: resolveSettings({ env: {}, config: { databasePath: path } }).settings,
    });
    const message = { role: "user", content: "a line of a log\n".repeat(30_000) };
    const seen = await watchDisk(() => engine.ingest({ session: SESSION, messages: [{ message }] }));
    const [blob = ""] = await engine.listBlobs();
    await engine.close();
    const file = join(filesDir, blob);
    const written = seen.findIndex((step) => step.startsWith(`flush ${file}.`));
    const named = seen.indexOf(`rename ${file}`);
    expect(written).toBeGreaterThanOrEqual(0);
    expect(named).toBeGreaterThan(written);
    expect(seen.indexOf(`flush ${dirname(file)}`)).toBeGreaterThan(named);
    // The folders are new too.
    for (const parent of [filesDir, folder.path]) expect(seen.slice(0, named)).toContain(`flush ${parent}`);
  },
);

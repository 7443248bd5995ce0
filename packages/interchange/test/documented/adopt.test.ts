/** Taking over the database of another lossless-claw, in place. */

import { createHash } from "node:crypto";
import {
  existsSync,
  linkSync,
  readdirSync,
  readFileSync,
  renameSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";

import { expect, onTestFinished, test } from "vitest";

import { openEngine } from "lossless-claw";
import { adoptDocumentedDatabase } from "lossless-claw/interchange";

import { makeTemporaryDirectory } from "@lossless/testkit";

import { buildDocumented } from "./build.ts";

const hashFile = (path: string): string => createHash("sha256").update(readFileSync(path)).digest("hex");

function prepare(): { path: string; adopt: () => ReturnType<typeof adoptDocumentedDatabase> } {
  const folder = makeTemporaryDirectory();
  const path = join(folder, "lcm.db");
  renameSync(buildDocumented(folder, "0.15"), path);
  const options = {
    path,
    filesDir: join(folder, "lcm-files"),
    largeFileThresholdTokens: 25_000,
    now: 1_800_000_000_000,
  };
  return { path, adopt: () => adoptDocumentedDatabase(options) };
}

test("imports beside, keeps the old file to the byte under another name, and opens as ours", async () => {
  const { path, adopt } = prepare();
  const before = hashFile(path);
  const adoption = await adopt();
  expect(adoption).toMatchObject({ kind: "adopted", backup: `${path}.before-adoption` });
  expect(hashFile(`${path}.before-adoption`)).toBe(before);
  const engine = await openEngine({ database: path, thread: false });
  onTestFinished(() => engine.close());
  expect(await engine.verify()).toMatchObject({ ok: true, conversations: 3, summaries: 7 });
  expect(await adopt()).toEqual({ kind: "not_needed" });
  expect(
    readdirSync(join(path, "..")).filter(
      (name) => name.startsWith(".lcm-adopt") || name.endsWith(".adopted"),
    ),
  ).toEqual([]);
});

test("reads the log of a database that was not closed, and refuses while it is open", async () => {
  const { path, adopt } = prepare();
  const writer = new DatabaseSync(path);
  writer.exec(
    "PRAGMA wal_autocheckpoint = 0; INSERT INTO messages (conversation_id, seq, role, content, token_count) VALUES (7, 2, 'user', 'only in the log', 3)",
  );
  const logged = { database: hashFile(path), log: hashFile(`${path}-wal`) };
  await expect(adopt()).rejects.toMatchObject({ code: "database_busy" });
  expect({ database: hashFile(path), log: hashFile(`${path}-wal`) }).toEqual(logged);
  // As a killed program leaves it: both files, nobody at work.
  const folder = makeTemporaryDirectory();
  const killed = join(folder, "lcm.db");
  for (const companion of ["", "-wal"]) {
    const { copyFileSync } = await import("node:fs");
    copyFileSync(`${path}${companion}`, `${killed}${companion}`);
  }
  writer.close();
  const adoption = await adoptDocumentedDatabase({
    path: killed,
    filesDir: join(folder, "lcm-files"),
    largeFileThresholdTokens: 25_000,
    now: 1,
  });
  expect(adoption.kind).toBe("adopted");
  expect({
    database: hashFile(`${killed}.before-adoption`),
    log: hashFile(`${killed}.before-adoption-wal`),
  }).toEqual(logged);
  const engine = await openEngine({ database: killed, thread: false });
  onTestFinished(() => engine.close());
  const found = await engine.search({ query: "only in the log", limit: 3 });
  expect(found.hits.length).toBeGreaterThan(0);
});

test("finishes a renaming that was cut in the middle", async () => {
  const { path, adopt } = prepare();
  await adopt();
  renameSync(path, `${path}.adopted`);
  expect(await adopt()).toEqual({ kind: "finished", path });
  expect(existsSync(path)).toBe(true);
});

/** Undoes the last steps of an adoption: the states in which a kill may leave it. */
async function cutShort(path: string, adopt: () => Promise<unknown>, isLogMoved: boolean): Promise<void> {
  writeFileSync(`${path}-shm`, "");
  await adopt();
  renameSync(path, `${path}.adopted`);
  linkSync(`${path}.before-adoption`, path);
  if (!isLogMoved) renameSync(`${path}.before-adoption-shm`, `${path}-shm`);
}

test.each([true, false])("finishes a swap that was cut in the middle (log moved: %s)", async (isLogMoved) => {
  const { path, adopt } = prepare();
  const before = hashFile(path);
  await cutShort(path, adopt, isLogMoved);
  expect(hashFile(path)).toBe(before);
  expect(await adopt()).toEqual({ kind: "finished", path });
  expect(hashFile(`${path}.before-adoption`)).toBe(before);
  expect([existsSync(`${path}-shm`), existsSync(`${path}.before-adoption-shm`)]).toEqual([false, true]);
  const engine = await openEngine({ database: path, thread: false });
  onTestFinished(() => engine.close());
  expect((await engine.verify()).problems).toEqual([]);
});

test("begins anew when the old database was written to after a swap was cut", async () => {
  const { path, adopt } = prepare();
  await cutShort(path, adopt, false);
  const later = new Date(Date.now() + 60_000);
  utimesSync(path, later, later);
  expect(await adopt()).toMatchObject({ kind: "adopted", backup: `${path}.before-adoption` });
  expect(readdirSync(join(path, "..")).filter((name) => name.endsWith(".adopted"))).toEqual([]);
});

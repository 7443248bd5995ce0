/** An old database where the archive should be: taken over by the first command that writes, whole whatever happens meanwhile. */
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { setTimeout } from "node:timers/promises";
import { rounds } from "@lossless/testkit/rounds.ts";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createRunner, makeFolder, parseEnvelope, parseError, readSampleLines } from "./support.ts";

const folder = makeFolder();
afterAll(folder.remove);
const run = createRunner(folder.path);
const old = join(folder.path, "exported.db");
const transcript = join(folder.path, "session.jsonl");
const hash = (path: string): string => createHash("sha256").update(readFileSync(path)).digest("hex");
let messages = 0;

beforeAll(async () => {
  writeFileSync(transcript, readSampleLines(60));
  const database = join(folder.path, "first.db");
  expect((await run(["import", transcript, "--db", database])).status).toBe(0);
  const written = await run(["export", "--format", "lossless-claw", "--out", old, "--db", database]);
  expect(written.stderr).toBe("");
  const source = new DatabaseSync(old, { readOnly: true });
  messages = (source.prepare("SELECT count(*) AS n FROM messages").get() as { n: number }).n;
  source.close();
  expect(messages).toBeGreaterThan(20);
});

/** The old database under the name of an archive, in a folder of its own. */
function place(name: string): string {
  const home = join(folder.path, name);
  mkdirSync(home);
  copyFileSync(old, join(home, "lcm.db"));
  return join(home, "lcm.db");
}

test("a reading command names the way, a writing one adopts", async () => {
  const database = place("plain");
  const refused = parseError(await run(["status", "--db", database, "--json"]));
  expect(refused).toMatchObject({
    code: "database_foreign",
    hint: expect.stringContaining("lcm adopt") as string,
  });
  expect(hash(database)).toBe(hash(old));
  const imported = await run(["import", transcript, "--db", database]);
  expect(imported.stderr).toContain("was written by an older lossless-claw");
  expect(imported.status).toBe(0);
  expect(hash(`${database}.before-adoption`)).toBe(hash(old));
  expect(parseEnvelope(await run(["verify", "--db", database, "--json"])).data).toMatchObject({ ok: true });
  expect(parseEnvelope(await run(["adopt", "--db", database, "--json"])).data).toMatchObject({
    kind: "not_needed",
  });
});

test("refuses while another program has it open, and leaves it alone", async () => {
  const database = place("busy");
  const other = new DatabaseSync(database);
  other.exec("PRAGMA journal_mode = WAL; BEGIN IMMEDIATE");
  expect(parseError(await run(["adopt", "--db", database, "--json"]))).toMatchObject({
    code: "database_busy",
  });
  other.exec("ROLLBACK");
  expect(parseError(await run(["adopt", "--db", database, "--json"]))).toMatchObject({
    code: "database_busy",
  });
  other.close();
  expect(parseEnvelope(await run(["adopt", "--db", database, "--json"])).data).toMatchObject({
    kind: "adopted",
  });
});

/** As a program leaves it that was killed while its newest rows stood in the log. */
function placeWithLog(name: string): string {
  const database = place(name);
  const program = `
    const { DatabaseSync } = require("node:sqlite");
    const database = new DatabaseSync(process.argv[1]);
    database.exec("PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0");
    database.exec("UPDATE messages SET content = content || ' (in the log)' WHERE seq = 1");
    process.kill(process.pid, "SIGKILL");`;
  spawnSync(process.execPath, ["-e", program, database]);
  expect(existsSync(`${database}-wal`)).toBe(true);
  return database;
}

test("killed at any moment, the old database is whole and the next call ends in a whole archive", async () => {
  const started = performance.now();
  await run(["adopt", "--db", placeWithLog("timed"), "--json"], { ownProcess: true });
  const wholeMs = performance.now() - started;
  const pieces = rounds({ test: 2, soak: 10 });
  for (let piece = 1; piece <= pieces; piece += 1) {
    const database = placeWithLog(`killed-${piece}`);
    const [file, log] = [hash(database), hash(`${database}-wal`)];
    await run(["adopt", "--db", database], {
      onStart: (child) => {
        void setTimeout((wholeMs * piece) / pieces).then(() => child.kill("SIGKILL"));
      },
    });
    const home = join(database, "..");
    const names = readdirSync(home);
    const kept = names.includes("lcm.db.before-adoption-wal") ? `${database}.before-adoption` : database;
    expect([piece, hash(kept), hash(`${kept}-wal`)]).toEqual([piece, file, log]);
    const again = parseEnvelope(await run(["adopt", "--db", database, "--json"]));
    expect(["adopted", "finished", "not_needed"]).toContain(again.data["kind"]);
    expect([hash(`${database}.before-adoption`), hash(`${database}.before-adoption-wal`)]).toEqual([
      file,
      log,
    ]);
    expect(parseEnvelope(await run(["verify", "--db", database, "--json"])).data).toMatchObject({ ok: true });
    expect(readdirSync(home).filter((name) => name.includes("adopt-") || name.endsWith(".adopted"))).toEqual(
      [],
    );
    const found = await run(["search", "in the log", "--db", database, "--json"]);
    expect(parseEnvelope(found).data.items.length).toBeGreaterThan(0);
  }
});

test("a folder that an adoption left, killed after its last step, goes with the next call that writes", async () => {
  const database = placeWithLog("leftover");
  await run(["adopt", "--db", database]);
  const folder = join(database, "..", ".lcm-adopt-lcm.db-killed");
  mkdirSync(folder);
  writeFileSync(join(folder, "old.db"), "a copy of the old database");
  expect((await run(["status", "--db", database])).status).toBe(0);
  expect(existsSync(folder)).toBe(true);
  expect(parseEnvelope(await run(["adopt", "--db", database, "--json"])).data).toMatchObject({
    kind: "not_needed",
  });
  expect(existsSync(folder)).toBe(false);
});

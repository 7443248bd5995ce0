/**
 * A database that cannot be used: locked by another process, read-only, removed, damaged; a damaged spool. The chat continues, status reports
 * the outage, and once the database is back every turn is in it. Uses a database of its own, so that the others stay unchanged.
 */

import assert from "node:assert/strict";
import {
  chmodSync,
  closeSync,
  copyFileSync,
  openSync,
  readdirSync,
  renameSync,
  rmSync,
  truncateSync,
  writeSync,
} from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import type { Stage } from "../stage.ts";

export const TROUBLE_CHAT = "agent:main:trouble";
const EARLIER_CHAT = "agent:main:earlier";
export const TROUBLE_DATABASE = "trouble/lcm.db";

export async function playStorageTrouble(stage: Stage): Promise<void> {
  const path = join(stage.state.stateDir, TROUBLE_DATABASE);
  await stage.step("the plugin gets a database of its own while the gateway runs", async () => {
    await stage.playTurn("SAY into the first database", EARLIER_CHAT);
    await stage.configure({ databasePath: path }, /trouble/);
    await stage.playTurn("SAY before the trouble", TROUBLE_CHAT);
  });
  await stage.step(
    "the history of earlier sessions is read into it, and no model is called for that",
    async () => {
      const first = stage.model.requests.length;
      await stage.waitForAnswer(TROUBLE_CHAT, "/lcm status", /in ([2-9]|\d\d) conversations/);
      await stage.waitForAnswer(TROUBLE_CHAT, "/lcm status", /All parts work/);
      assert.deepEqual(stage.model.requests.slice(first), []);
    },
  );
  await stage.step(
    "a database that another process holds: the chat goes on, turns wait, status tells",
    async () => {
      const other = new DatabaseSync(path);
      other.exec("BEGIN IMMEDIATE");
      await stage.playTurn("SAY while it is locked, 1", TROUBLE_CHAT);
      await stage.playTurn("SAY while it is locked, 2", TROUBLE_CHAT);
      const sent = JSON.stringify(stage.model.requests.at(-1)!.messages);
      assert.ok(sent.includes("before the trouble") && sent.includes("locked, 1"), "the context is whole");
      assert.match(await stage.sendChat("/lcm status", TROUBLE_CHAT), /2 turns wait/);
      other.exec("ROLLBACK");
      other.close();
      await stage.sendChat("SAY free again", TROUBLE_CHAT);
      const told = JSON.stringify(stage.model.requests.at(-1)!.messages);
      assert.ok(told.includes("cannot write its archive"), "the agent is told once");
      assert.doesNotMatch(await stage.sendChat("/lcm status", TROUBLE_CHAT), /wait/);
    },
  );
  await stage.step(
    "a damaged file in the spool: after a restart it is moved aside, status names it, storing goes on",
    async () => {
      const spool = join(path, "..", "lcm-spool");
      const other = new DatabaseSync(path);
      other.exec("BEGIN IMMEDIATE");
      await stage.playTurn("SAY into a spool that is damaged, 1", TROUBLE_CHAT);
      await stage.playTurn("SAY into a spool that is damaged, 2", TROUBLE_CHAT);
      const [name] = readdirSync(spool).filter((file) => file.endsWith(".json"));
      await stage.gateway.kill();
      truncateSync(join(spool, name!), 100);
      other.exec("ROLLBACK");
      other.close();
      await stage.restart();
      await stage.playTurn("SAY after the damage", TROUBLE_CHAT);
      const status = await stage.sendChat("/lcm status", TROUBLE_CHAT);
      assert.ok(status.includes(`lcm-spool/${name}.damaged`), status);
      assert.doesNotMatch(status, /wait/);
      assert.deepEqual(readdirSync(spool), [`${name}.damaged`]);
      rmSync(join(spool, `${name}.damaged`));
    },
  );
  await stage.step(
    "a database that cannot be written to: the chat goes on, turns wait, status tells",
    async () => {
      putReadOnlyCopy(path);
      await stage.playTurn("SAY while it is read-only, 1", TROUBLE_CHAT);
      await stage.playTurn("SAY while it is read-only, 2", TROUBLE_CHAT);
      const sent = JSON.stringify(stage.model.requests.at(-1)!.messages);
      assert.ok(sent.includes("free again") && sent.includes("read-only, 1"), "the context is whole");
      const status = await stage.sendChat("/lcm status", TROUBLE_CHAT);
      assert.match(status, /2 turns wait/);
      assert.match(status, /read-?only|cannot be written/i);
      makeWritable(path);
      await stage.playTurn("SAY writable again", TROUBLE_CHAT);
      assert.doesNotMatch(await stage.sendChat("/lcm status", TROUBLE_CHAT), /wait/);
    },
  );
  await stage.step("a database that was removed is made again from the transcript", async () => {
    for (const name of readdirSync(join(path, "..")))
      if (name.startsWith("lcm.db")) rmSync(join(path, "..", name));
    await stage.playTurn("SAY after it was removed", TROUBLE_CHAT);
    const status = await stage.sendChat("/lcm status", TROUBLE_CHAT);
    const [, count] = /This chat: (\d+) messages/.exec(status) ?? [];
    assert.ok(Number(count) >= 10, status);
  });
  await stage.step(
    "a damaged database: the chat goes on, and nothing is lost when a copy is put back",
    async () => {
      const copy = `${path}.copy`;
      new DatabaseSync(path).exec(`VACUUM INTO '${copy}'`);
      damage(path);
      await stage.playTurn("SAY while it is damaged", TROUBLE_CHAT);
      assert.match(
        await stage.sendChat("/lcm status", TROUBLE_CHAT),
        /wait|damaged|not a database|malformed|cannot read/i,
      );
      for (const name of readdirSync(join(path, "..")))
        if (/^lcm\.db(-wal|-shm)?$/.test(name)) rmSync(join(path, "..", name));
      copyFileSync(copy, path);
      rmSync(copy);
      await stage.playTurn("SAY repaired", TROUBLE_CHAT);
      assert.doesNotMatch(await stage.sendChat("/lcm status", TROUBLE_CHAT), /wait/);
      assert.match(await stage.sendChat("/lcm verify", TROUBLE_CHAT), /Proven/);
      await stage.playTurn("SAY goodbye", TROUBLE_CHAT);
    },
  );
  await stage.configure({}, /state\/lcm\.db/);
}

/** Offset in a database's header: the version of the format that may write the file. SQLite opens a later version read-only. */
const WRITE_VERSION_AT = 18;
const READ_ONLY_VERSION = 3;
const WAL_VERSION = 2;

/** Replaces the database with a read-only copy. File permissions would not stop an administrator; the version in the header does. */
function putReadOnlyCopy(path: string): void {
  const copy = `${path}.read-only`;
  const database = new DatabaseSync(path);
  database.exec("PRAGMA wal_checkpoint(TRUNCATE)");
  database.close();
  copyFileSync(path, copy);
  writeByte(copy, WRITE_VERSION_AT, READ_ONLY_VERSION);
  chmodSync(copy, 0o400);
  replaceDatabase(path, copy);
}

function makeWritable(path: string): void {
  const copy = `${path}.writable`;
  copyFileSync(path, copy);
  chmodSync(copy, 0o600);
  writeByte(copy, WRITE_VERSION_AT, WAL_VERSION);
  replaceDatabase(path, copy);
}

function replaceDatabase(path: string, by: string): void {
  for (const suffix of ["-wal", "-shm"]) rmSync(`${path}${suffix}`, { force: true });
  renameSync(by, path);
}

function writeByte(path: string, at: number, value: number): void {
  const file = openSync(path, "r+");
  writeSync(file, Uint8Array.of(value), 0, 1, at);
  closeSync(file);
}

/** Overwrites every page but keeps the file. */
function damage(path: string): void {
  for (const name of [path, `${path}-wal`]) {
    const file = openSync(name, "r+");
    writeSync(file, Buffer.alloc(64 * 1024, 0x5a), 0, 64 * 1024, 0);
    closeSync(file);
  }
}

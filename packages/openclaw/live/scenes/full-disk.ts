/**
 * A disk that is full: neither the database nor the spool beside it can store a turn, so the host keeps it and delivers it again when there is
 * room. Uses a small disk in memory, which only an administrator can create; otherwise it prints that and skips the scene.
 */

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { appendFileSync, mkdirSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import type { Stage } from "../stage.ts";

export const FULL_CHAT = "agent:main:full-disk";
export const FULL_DATABASE = "full/lcm.db";

export async function playFullDisk(stage: Stage): Promise<void> {
  const disk = join(stage.state.stateDir, "full");
  mkdirSync(disk, { recursive: true });
  const isMounted =
    spawnSync("mount", ["-t", "tmpfs", "-o", "size=32m,mode=0700", "tmpfs", disk]).status === 0;
  if (!isMounted)
    console.log("      full-disk: no small disk can be mounted here; played without filling it");
  else stage.whenClosed(() => void spawnSync("umount", [disk]));
  const database = join(stage.state.stateDir, FULL_DATABASE);
  await stage.step("a full disk: the chat goes on, and the host keeps what cannot be stored", async () => {
    await stage.configure({ databasePath: database }, /full/);
    await stage.playTurn("SAY before the disk is full", FULL_CHAT);
    await stage.waitForAnswer(FULL_CHAT, "/lcm status", /All parts work/);
    const filler = join(disk, "filler");
    if (isMounted) fill(filler);
    await stage.playTurn("SAY while the disk is full", FULL_CHAT);
    const sent = JSON.stringify(stage.model.requests.at(-1)!.messages);
    assert.ok(sent.includes("before the disk is full"), "the context is whole");
    if (isMounted)
      assert.match(await stage.sendChat("/lcm status", FULL_CHAT), /full|no space|cannot write|disk/i);
    rmSync(filler, { force: true });
  });
  await stage.step(
    "when there is room again every turn is stored, and nothing is left of failed writes",
    async () => {
      await stage.playTurn("SAY there is room again", FULL_CHAT);
      await stage.waitForAnswer(FULL_CHAT, "/lcm status", /All parts work/);
      assert.match(await stage.sendChat("/lcm verify", FULL_CHAT), /Proven/);
      const spool = join(disk, "lcm-spool");
      assert.deepEqual(readdirSync(disk).includes("lcm-spool") ? readdirSync(spool) : [], []);
      await stage.playTurn("SAY goodbye", FULL_CHAT);
    },
  );
  await stage.configure({}, /state\/lcm\.db/);
}

/** Writes until the disk is full. */
function fill(path: string): void {
  for (const size of [1 << 20, 4096, 1])
    for (;;) {
      try {
        appendFileSync(path, Buffer.alloc(size));
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== "ENOSPC") throw error;
        break;
      }
    }
}

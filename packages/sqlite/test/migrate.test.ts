/** Archives of older versions: what opens them upgrades them in one transaction, or leaves them as they are. */
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { openEngine } from "lossless-claw";
import type { EngineEvent } from "@lossless/core";
import { makeTemporaryFolder } from "@lossless/testkit";
import { writeInterruptedArchive, writeLongInterruptedArchive } from "@lossless/testkit/older-archive.ts";
import { describe, expect, test } from "vitest";

function query(path: string, sql: string): unknown[] {
  const database = new DatabaseSync(path);
  try {
    return database.prepare(sql).all();
  } finally {
    database.close();
  }
}

/** More than one step of the upgrade writes. */
const MANY = 20_000;

const STATE = `
  SELECT (SELECT user_version FROM pragma_user_version) AS version, (SELECT count(*) FROM event_ids) AS ids,
         (SELECT group_concat(session_ref || ' ' || until) FROM event_ids_behind) AS behind`;

describe("an archive of an older version", () => {
  test("gets the event ids that an interrupted import had not written, and is proven", async () => {
    using folder = makeTemporaryFolder();
    const database = folder.file("lcm.db");
    writeInterruptedArchive(database);
    expect(query(database, STATE)).toEqual([{ version: 16, ids: 6, behind: "1 6,2 31" }]);
    const seen: EngineEvent[] = [];
    const engine = await openEngine({ database, thread: false, onEvent: (event) => seen.push(event) });
    expect(seen).toEqual([]);
    expect((await engine.verify()).problems).toEqual([]);
    expect(query(database, "SELECT count(*) AS n FROM event_ids")).toEqual([{ n: 42 }]);
    // The vector space was never filled: that is a walk through all messages.
    expect(query(database, "SELECT count(*) AS n FROM vectors_pending")).toEqual([{ n: 0 }]);
    expect((await engine.status()).index).toEqual({ kind: "ready", messages: 43, pending: 0 });
    const session = { key: "agent:main:1", id: "s1", owner: "main" };
    const again = {
      eventId: "e190",
      message: { role: "user", content: "line 10: the pump of greenhouse 1 runs" },
    };
    const { results } = await engine.ingest({ session, messages: [again] });
    expect(results.map(({ outcome }) => outcome)).toEqual(["known"]);
    expect((await engine.search({ query: "greenhouse", limit: 5 })).hits.length).toBeGreaterThan(0);
    await engine.close();
  });

  test("is as it was after a kill in the middle of the upgrade, and is upgraded by whoever opens it next", async () => {
    using folder = makeTemporaryFolder();
    const database = folder.file("lcm.db");
    writeLongInterruptedArchive(database, MANY);
    const before = query(database, STATE);
    const program = `
      import { openEngine } from ${JSON.stringify(import.meta.resolve("lossless-claw"))};
      await openEngine({ database: ${JSON.stringify(database)}, thread: false, onEvent: (event) => {
        if (event.kind === "progress" && event.done > event.total / 2) process.kill(process.pid, "SIGKILL");
      } });`;
    const child = spawn(process.execPath, ["--input-type=module", "--eval", program], { stdio: "ignore" });
    const [, signal] = (await once(child, "exit")) as [number | null, NodeJS.Signals | null];
    expect(signal).toBe("SIGKILL");
    expect(query(database, STATE)).toEqual(before);
    const seen: EngineEvent[] = [];
    const engine = await openEngine({ database, thread: false, onEvent: (event) => seen.push(event) });
    await engine.close();
    expect(seen.filter(({ kind }) => kind === "progress").length).toBeGreaterThan(0);
    expect(query(database, "SELECT count(*) AS n FROM event_ids")).toEqual([{ n: 42 + MANY }]);
  });

  test("is left as it is while there is no room for the upgrade, and says how much it takes", async (context) => {
    using folder = makeTemporaryFolder();
    const disk = folder.file("disk");
    mkdirSync(disk);
    const large = folder.file("large.db");
    writeLongInterruptedArchive(large, MANY);
    const megabytes = Math.ceil(statSync(large).size / 2 ** 20);
    try {
      execFileSync("mount", ["-t", "tmpfs", "-o", `size=${megabytes + 2}m`, "tmpfs", disk], {
        stdio: "ignore",
      });
    } catch {
      context.skip("no small disk can be mounted here");
    }
    try {
      const database = `${disk}/lcm.db`;
      writeFileSync(database, readFileSync(large));
      const before = query(database, STATE);
      await expect(openEngine({ database, thread: false })).rejects.toMatchObject({
        code: "database_full",
        message: expect.stringMatching(/that may take \d+\.\d MB, and \d\.\d MB are free$/) as string,
      });
      expect(query(database, STATE)).toEqual(before);
      execFileSync("mount", ["-o", `remount,size=${6 * megabytes}m`, disk]);
      await (await openEngine({ database, thread: false })).close();
      expect(query(database, "SELECT count(*) AS n FROM event_ids")).toEqual([{ n: 42 + MANY }]);
    } finally {
      execFileSync("umount", ["-l", disk]);
    }
  });
});

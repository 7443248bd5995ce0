/** `lcm worker` on a server: several of them, and one that is killed while a model writes for it. */
import { mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describePostgres } from "@lossless/testkit/postgres-server.ts";
import { isSoak } from "@lossless/testkit/rounds.ts";
import { afterAll, expect, test } from "vitest";
import { expectPaidOnceWhenKilled, STEPS } from "./paid-once.ts";
import { makeFolder } from "./support.ts";
import { expectPaidOnce, fillOwing, look, startCountingModel, startWorker } from "./worker-stage.ts";

const folder = makeFolder();
afterAll(() => folder.remove());
/** Far longer than a loaded machine keeps a living worker from giving a sign. */
const LEASE_SECONDS = "10";

describePostgres("lcm worker on PostgreSQL", (server) => {
  test("three share the folds; what a killed one had is taken over, and nothing is paid twice", async () => {
    const database = await server.createDatabase();
    await fillOwing(database);
    const model = await startCountingModel();
    const args = ["--db", database, "--lease", LEASE_SECONDS, "--poll", "0.2"];
    const start = (): ReturnType<typeof startWorker> => startWorker(folder.path, args, model.env);
    try {
      model.hold(2);
      const victim = start();
      await expect.poll(() => model.calls.length).toBe(2);
      const others = [start(), start()];
      // The others fold all but the conversation that is being worked on.
      await expect.poll(() => look(database, (engine) => engine.listDebts())).toHaveLength(1);
      victim.child.kill("SIGKILL");
      expect((await victim.ended).code).toBeNull();
      await expect.poll(() => look(database, (engine) => engine.listDebts())).toEqual([]);
      for (const { child } of others) child.kill("SIGTERM");
      const ends = await Promise.all(others.map(({ ended }) => ended));
      expect(ends.map(({ code }) => code)).toEqual([0, 0]);
      expect(ends.map(({ output }) => output).join("")).toMatch(/conversation \d: folded from/);
      await expectPaidOnce(database, model);
    } finally {
      await model.close();
    }
  });

  test("killed at any step after a model's answer, never asks for an answer again that was stored", async () => {
    if (!isSoak) return expectPaidOnceWhenKilled(await server.createDatabase(), { kills: 6 });
    for (let firstSteps = 1; firstSteps <= STEPS; firstSteps++)
      await expectPaidOnceWhenKilled(await server.createDatabase(), { kills: Infinity, firstSteps });
  });

  test("waits for a server that is not there yet, unless its work is to be done now", async () => {
    const database = await server.createDatabase();
    await fillOwing(database);
    // The same database by a folder that has no socket in it yet.
    const later = mkdtempSync(join(tmpdir(), "lcm-later-"));
    const address = database.replace(/host=[^&]*/, `host=${later}`);
    const model = await startCountingModel();
    try {
      const now = startWorker(folder.path, ["--db", address, "--once"], model.env);
      expect(await now.ended).toMatchObject({ code: 5 });
      const worker = startWorker(folder.path, ["--db", address, "--poll", "0.2"], model.env);
      await expect.poll(() => worker.output()).toContain("waiting for it");
      symlinkSync(join(server.folder, ".s.PGSQL.5432"), join(later, ".s.PGSQL.5432"));
      await expect.poll(() => look(database, (engine) => engine.listDebts())).toEqual([]);
      worker.child.kill("SIGTERM");
      expect(await worker.ended).toMatchObject({ code: 0 });
    } finally {
      await model.close();
      rmSync(later, { recursive: true });
    }
  });
});

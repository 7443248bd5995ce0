/** `lcm worker` on an archive in a file. */
import { join } from "node:path";
import { isSoak } from "@lossless/testkit/rounds.ts";
import { afterAll, afterEach, beforeEach, expect, test } from "vitest";
import { expectPaidOnceWhenKilled, STEPS } from "./paid-once.ts";
import { createRunner, makeFolder, parseEnvelope, parseError } from "./support.ts";
import { expectPaidOnce, fillOwing, look, startCountingModel, startWorker } from "./worker-stage.ts";
import type { CountingModel } from "./worker-stage.ts";

const folder = makeFolder();
const lcm = createRunner(folder.path);
let model: CountingModel;
beforeEach(async () => {
  model = await startCountingModel();
});
afterEach(() => model.close());
afterAll(() => folder.remove());

test("gives back what it has claimed at Ctrl-C, and another one goes on at once", async () => {
  const database = join(folder.path, "cancelled.db");
  await fillOwing(database);
  model.hold(2);
  const { child, ended } = startWorker(folder.path, ["--db", database], model.env);
  await expect.poll(() => model.calls.length).toBe(2);
  child.kill("SIGINT");
  expect(await ended).toMatchObject({ code: 0, output: expect.stringContaining("ok  0 folds") });
  const debts = await look(database, (engine) => engine.listDebts());
  expect(debts).toHaveLength(4);
  for (const { leaseHolder, nextAttemptAt } of debts) {
    expect(leaseHolder).toBeNull();
    expect(nextAttemptAt).toBeLessThanOrEqual(Date.now());
  }
  const done = await lcm(["worker", "--once", "--json", "--db", database], { env: model.env });
  expect(done.stderr).toBe("");
  expect(parseEnvelope(done).data).toMatchObject({ folds: 4, failures: 0 });
  await expectPaidOnce(database, model);
  const again = await lcm(["worker", "--once", "--db", database], { env: model.env });
  expect(again.stdout.toString()).toContain("ok  0 folds");
});

test("killed at any step after a model's answer, never asks for an answer again that was stored", async () => {
  if (!isSoak) return expectPaidOnceWhenKilled(join(folder.path, "killed.db"), { kills: 4 });
  for (let firstSteps = 1; firstSteps <= STEPS; firstSteps++)
    await expectPaidOnceWhenKilled(join(folder.path, `killed-${firstSteps}.db`), {
      kills: Infinity,
      firstSteps,
    });
});

test("with a budget, folds and maintains conversations that no host has; refuses an owner", async () => {
  const database = join(folder.path, "budget.db");
  await fillOwing(database);
  const done = await lcm(["worker", "--once", "--no-model", "--budget", "3k", "--json", "--db", database]);
  expect(parseEnvelope(done).data).toMatchObject({ folds: 4, maintained: 4, failures: 0 });
  const idle = await lcm(["worker", "--idle", "0.1", "--poll", "0.1", "--no-model", "--db", database]);
  expect(idle).toMatchObject({ status: 0 });
  const refused = await lcm(["worker", "--owner", "main", "--json", "--db", database]);
  expect(parseError(refused)).toMatchObject({ code: "usage" });
});

import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { resolveSettings } from "@lossless/core";
import { needsAdoption } from "@lossless/interchange/need";
import type { Adoption } from "@lossless/interchange";
import { writeOlderDatabase } from "@lossless/testkit/older-database.ts";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { leaseEngine, type EngineLease } from "../src/host/shared-engine.ts";

const workerUrl = new URL("../../lossless-claw/src/worker.ts", import.meta.url);

let folder: string;
let path: string;
let messages: number;
let adoptions: Adoption[];
let lease: EngineLease;

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), "lossless-takeover-"));
  path = join(folder, "lcm.db");
  messages = await writeOlderDatabase(path);
  adoptions = [];
  const { settings } = resolveSettings({ config: {}, configSource: "test", stateDir: folder });
  lease = leaseEngine({
    settings,
    workerUrl,
    onEvent: () => undefined,
    onAdoption: (adoption) => adoptions.push(adoption),
  });
});

afterEach(async () => {
  await lease.release();
  rmSync(folder, { recursive: true, force: true });
});

describe("the database of an older version where the archive should be", () => {
  test("is taken over without anybody waiting, and the old file stays beside it", async () => {
    expect(needsAdoption(path)).toBe(true);
    await expect(lease.open()).rejects.toMatchObject({
      code: "database_busy",
      message: expect.stringContaining("being taken over") as string,
    });
    await lease.whenUpgraded();
    const engine = await lease.open();
    expect((await engine.status()).messages).toBeGreaterThanOrEqual(messages);
    expect((await engine.verify()).problems).toEqual([]);
    expect(existsSync(`${path}.before-adoption`)).toBe(true);
    expect(adoptions).toMatchObject([{ kind: "adopted", backup: `${path}.before-adoption` }]);
    expect(needsAdoption(path)).toBe(false);
  });

  test("is left alone while another program has it open, and that is said", async () => {
    const other = new DatabaseSync(path);
    other.exec("BEGIN IMMEDIATE");
    await expect(lease.open()).rejects.toThrow(/being taken over/);
    await lease.whenUpgraded();
    await expect(lease.open()).rejects.toThrow(/another program has it open/);
    other.exec("ROLLBACK");
    other.close();
    expect(existsSync(`${path}.before-adoption`)).toBe(false);
    expect(needsAdoption(path)).toBe(true);
  });
});

test("an archive of ours needs no takeover, also while its first pages are in the log alone", async () => {
  rmSync(path);
  await lease.open();
  expect(needsAdoption(path)).toBe(false);
  expect(needsAdoption(join(folder, "nothing.db"))).toBe(false);
});

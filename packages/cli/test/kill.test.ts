/**
 * Commands that mend, killed without warning at moments that follow from a seed: the archive is whole after each kill, nothing of what was
 * stored has changed, and the same command, run once more, does what is left.
 */
import type { ChildProcess } from "node:child_process";
import { cpSync, mkdirSync, readdirSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { editArchive } from "@lossless/testkit/edit-archive.ts";
import { setTimeout } from "node:timers/promises";
import { filesDirBeside } from "@lossless/core/testing";
import { makeRandom } from "@lossless/testkit";
import { isSoak, rounds } from "@lossless/testkit/rounds.ts";
import { afterAll, beforeAll, expect, test } from "vitest";
import { commandsFor, createRunner, makeFolder, parseEnvelope, SAMPLE } from "./support.ts";

const KILLS = rounds({ test: 0, soak: 5 });
const random = makeRandom(20_261);
const folder = makeFolder();
const run = createRunner(folder.path);
const template = join(folder.path, "template");

beforeAll(async () => {
  if (!isSoak) return;
  mkdirSync(template);
  const { lcm } = commandsFor(run, join(template, "archive.db"));
  expect((await lcm("import", SAMPLE)).status).toBe(0);
  expect((await lcm("compact", "--budget", "2k", "--target", "1500", "--no-model")).status).toBe(0);
});
afterAll(folder.remove);

/** A copy of the archive, with something in it to mend, and the commands for it. */
class Patient {
  readonly home: string;
  readonly database: string;
  readonly json: ReturnType<typeof commandsFor>["json"];
  readonly lcm: ReturnType<typeof commandsFor>["lcm"];
  readonly #stored: unknown[];

  constructor(name: string, sql: string) {
    this.home = join(folder.path, name);
    cpSync(template, this.home, { recursive: true });
    this.database = join(this.home, "archive.db");
    ({ json: this.json, lcm: this.lcm } = commandsFor(run, this.database));
    editArchive(this.database, sql);
    this.#stored = this.#readStored();
  }

  /** Runs a command and kills it when `doom` is over. True if it was still running then. */
  async runAndKill(
    args: readonly string[],
    doom: (child: ChildProcess) => Promise<unknown>,
  ): Promise<boolean> {
    let wasKilled = false;
    await run([...args, "--db", this.database], {
      onStart: (child) => {
        child.on("exit", (_status, signal) => (wasKilled = signal === "SIGKILL"));
        void doom(child).then(() => child.kill("SIGKILL"));
      },
    });
    return wasKilled;
  }

  /** Nothing may be wrong but that search waits for its index, and every message is what it was. */
  async expectWhole(): Promise<void> {
    const { stdout } = await this.lcm("verify", "--json");
    const { data } = JSON.parse(stdout.toString()) as { data: { problems: { code: string }[] } };
    expect(data.problems.filter(({ code }) => code !== "index")).toEqual([]);
    expect(this.#readStored()).toEqual(this.#stored);
  }

  async expectHealthy(): Promise<void> {
    expect((await this.json("verify")).data).toMatchObject({ ok: true });
    expect(this.#readStored()).toEqual(this.#stored);
  }

  #readStored(): unknown[] {
    const connection = new DatabaseSync(this.database, { readOnly: true });
    const rows = connection
      .prepare(
        "SELECT message_id, seq, position, event_id, hidden_now, commitment, chain FROM messages ORDER BY 1",
      )
      .all();
    connection.close();
    return rows;
  }
}

const STRAY = "file_0000000000000000.txt";

/** Its index is degraded, and a file lies there that nobody names. */
function makeUntidy(name: string): { patient: Patient; filesFolder: string } {
  const patient = new Patient(name, "INSERT INTO meta (key, value) VALUES ('index_problem', 'made up')");
  const filesFolder = join(filesDirBeside(patient.database), "1");
  mkdirSync(filesFolder, { recursive: true });
  writeFileSync(join(filesFolder, STRAY), "left behind by nobody");
  utimesSync(join(filesFolder, STRAY), 1_700_000_000, 1_700_000_000);
  return { patient, filesFolder };
}

test.runIf(isSoak)("doctor --fix can be killed at any moment and run again", async () => {
  const { database } = makeUntidy("timed").patient;
  const started = performance.now();
  const timed = await run(["doctor", "--fix", "--json", "--db", database], { ownProcess: true });
  const wholeMs = performance.now() - started;
  expect(parseEnvelope(timed).data["mended"]).not.toEqual([]);
  let kills = 0;
  for (let round = 0; round < KILLS; round += 1) {
    const { patient, filesFolder } = makeUntidy(`untidy-${round}`);
    const momentMs = wholeMs * (0.2 + 0.8 * random.next());
    if (await patient.runAndKill(["doctor", "--fix"], () => setTimeout(momentMs))) kills += 1;
    await patient.expectWhole();
    const { data } = await patient.json("doctor", "--fix");
    const findings = data["findings"] as { isSafeToFix: boolean }[];
    expect(findings.filter(({ isSafeToFix }) => isSafeToFix)).toEqual([]);
    expect(readdirSync(filesFolder)).not.toContain(STRAY);
    await patient.expectHealthy();
  }
  expect(kills).toBeGreaterThan(0);
});

test.runIf(isSoak)(
  "repair --apply can be killed between any two summaries, and in the middle of one, and run again",
  async () => {
    let kills = 0;
    for (let round = 0; round < KILLS; round += 1) {
      const patient = new Patient(`stale-${round}`, "UPDATE summaries SET stale = 1 WHERE state = 'cover'");
      const countStale = async (): Promise<number> =>
        (await patient.json("repair", "--all")).data.items.length;
      const before = await countStale();
      const [steps, thenMs] = [random.below(before), random.below(40)];
      const args = ["repair", "--all", "--no-model", "--apply"];
      const doom = (child: ChildProcess): Promise<void> =>
        waitForLines(child, steps).then(() => setTimeout(thenMs));
      if (await patient.runAndKill(args, doom)) kills += 1;
      await patient.expectHealthy();
      // What it told of is done.
      expect(await countStale()).toBeLessThanOrEqual(before - steps);
      expect((await patient.lcm(...args)).status).toBe(0);
      expect(await countStale()).toBe(0);
      await patient.expectHealthy();
    }
    expect(kills).toBeGreaterThan(0);
  },
);

test.runIf(isSoak)(
  "doctor imports --apply can be killed at any moment: the import is there or gone, and can be removed again",
  async () => {
    for (let round = 0; round < KILLS; round += 1) {
      const patient = new Patient(`import-${round}`, "SELECT 1");
      const [run0] = (await patient.json("doctor", "imports")).data.items;
      const args = ["doctor", "imports", String(run0?.["importId"]), "--apply"];
      const afterMs = random.below(60);
      await patient.runAndKill(args, () => waitForCopy(patient.home).then(() => setTimeout(afterMs)));
      expect((await patient.json("verify")).data["ok"]).toBe(true);
      const left = (await patient.json("doctor", "imports")).data.items.length;
      if (left > 0) await patient.expectHealthy();
      expect((await patient.lcm(...args)).status).toBe(left > 0 ? 0 : 3);
      expect((await patient.json("verify")).data).toMatchObject({ ok: true, messages: 0 });
    }
  },
);

/** Resolves when the copy that comes before a removal is made. */
async function waitForCopy(home: string): Promise<void> {
  const isMade = (): boolean =>
    readdirSync(home).some((name) => name.includes(".before-repair-") && !name.endsWith(".partial"));
  while (!isMade()) await setTimeout(2);
}

/** Resolves when the program has told of so many steps. */
function waitForLines(child: ChildProcess, count: number): Promise<void> {
  if (count === 0) return Promise.resolve();
  let lines = 0;
  return new Promise((resolve) => {
    child.stderr?.on("data", (chunk: Buffer) => {
      lines += chunk.toString().split("\n").length - 1;
      if (lines >= count) resolve();
    });
  });
}

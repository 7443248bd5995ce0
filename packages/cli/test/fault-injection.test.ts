/**
 * Calls to the disk fail in the middle of a command: no space, an error of the device, or a file that may not grow. The command ends with an
 * error that says so, or does its work; what is left proves and holds what was acknowledged. A write of which only a part is done is no
 * failure: the rest is written, and the command does its work.
 */
import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { makeRandom, makeTemporaryFolder } from "@lossless/testkit";
import { findTracer, traceDisk } from "@lossless/testkit/disk-trace.ts";
import type { Fault } from "@lossless/testkit/disk-trace.ts";
import { isSoak, rounds } from "@lossless/testkit/rounds.ts";
import { buildShortWrites, runWithShortWrites } from "@lossless/testkit/short-writes.ts";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  buildArchive,
  COMMANDS,
  environmentOf,
  listAcknowledged,
  prepareFolder,
  readArchive,
} from "./disk-commands.ts";
import type { Command, Content } from "./disk-commands.ts";

const tracer = isSoak ? await findTracer() : null;
/** How many faults each command meets. */
const FAULTS = rounds({ test: 0, soak: 2 });
const CALLS = ["pwrite64", "fsync", "ftruncate", "rename", "unlink", "mkdir"] as const;
/** Which call of its kind fails at most: most commands have many writes and few of the rest. */
const LAST: Readonly<Record<string, number>> = { pwrite64: 300, fsync: 20 };

const built = makeTemporaryFolder("lcm-fault-");
afterAll(() => built[Symbol.dispose]());
beforeAll(() => {
  if (isSoak) buildArchive(built.file("archive"));
});

describe.runIf(tracer !== null)("when the disk fails in the middle of", () => {
  test.each(COMMANDS.map((command, number) => ({ ...command, number })))(
    "$name, the archive proves and holds what was acknowledged",
    async ({ number, ...command }) => {
      const random = makeRandom(number + 1);
      for (let round = 0; round < FAULTS; round++) {
        const call = random.pick(CALLS);
        const fault: Fault = {
          call,
          error: random.pick(["EIO", "ENOSPC"] as const),
          when: 1 + random.below(LAST[call] ?? 3),
        };
        const name = JSON.stringify(fault);
        using folder = makeTemporaryFolder("lcm-fault-");
        const work = folder.file("work");
        const before = await prepare(work, command);
        const { steps, status, stderr } = await traceDisk(
          tracer ?? "",
          work,
          [process.execPath, ...command.run(work)],
          { output: folder.file("trace"), env: environmentOf(work), fault },
        );
        if (status !== 0) expect(stderr, name).not.toBe("");
        const printed = steps.map((step) => (step.kind === "print" ? step.text : "")).join("");
        await checkLeft(work, command, { before, printed, name });
      }
    },
  );
});

/** How many limits each command meets. */
const LIMITS = rounds({ test: 0, soak: 1 });
/** The largest limit that is tried, in blocks of 512 bytes: more than any file of these commands gets, but for the largest. */
const MOST_BLOCKS = 400;

/** Where a file may not grow beyond a limit, the write that crosses it is cut short, and the next one fails. */
describe.runIf(isSoak && process.platform !== "win32")("when a write is cut short in the middle of", () => {
  test.each(COMMANDS.map((command, number) => ({ ...command, number })))(
    "$name, the archive proves and holds what was acknowledged",
    async ({ number, ...command }) => {
      const random = makeRandom(number + 1);
      for (let round = 0; round < LIMITS; round++) {
        // Small limits meet the first writes of a log; odd ones fall into the middle of a page.
        const blocks = 1 + random.below(random.pick([8, 40, MOST_BLOCKS]));
        using folder = makeTemporaryFolder("lcm-fault-");
        const work = folder.file("work");
        const before = await prepare(work, command);
        const { status, stdout, stderr } = spawnSync(
          "sh",
          ["-c", `ulimit -f ${blocks}; exec "$@"`, "sh", process.execPath, ...command.run(work)],
          {
            encoding: "utf8",
            env: { ...process.env, ...environmentOf(work), NODE_COMPILE_CACHE: undefined },
          },
        );
        const name = `${blocks} blocks`;
        if (status !== 0) expect(stderr, name).not.toBe("");
        expect(stderr, name).not.toContain("internal error");
        await checkLeft(work, command, { before, printed: stdout, name });
      }
    },
  );
});

const library = isSoak ? buildShortWrites(built.path) : null;
/** How often each command meets one short write, in longer soaks; in one more run every write is short. */
const SHORT_WRITES = rounds({ test: 1, soak: 1 }) - 1;

describe.runIf(library !== null)(
  "when writes do only a part of what they are asked, in the middle of",
  () => {
    test.each(COMMANDS.map((command, number) => ({ ...command, number })))(
      "$name, the rest is written",
      async ({ number, ...command }) => {
        const random = makeRandom(number + 1);
        const once = Array.from({ length: SHORT_WRITES }, () => ({ from: 1 + random.below(60), step: 1e9 }));
        for (const cut of [{ from: 1, step: 1 }, ...once]) {
          using folder = makeTemporaryFolder("lcm-fault-");
          const work = folder.file("work");
          const before = await prepare(work, command);
          const { status, stdout, stderr, cuts } = runWithShortWrites(
            library ?? "",
            [process.execPath, ...command.run(work)],
            { ...cut, folder: work, note: folder.file("note") },
            environmentOf(work),
          );
          const name = JSON.stringify(cut);
          expect(status, `${name}: ${stderr}`).toBe(0);
          if (cut.step === 1) expect(cuts, name).toBeGreaterThan(0);
          await checkLeft(work, command, { before, printed: stdout, name });
        }
      },
    );
  },
);

test.runIf(isSoak && library === null)("writes cannot be cut short here: there is no C compiler", (context) =>
  context.skip(),
);

const prepare = (work: string, command: Command): Promise<Content> =>
  prepareFolder(command, built.file("archive"), work);

async function checkLeft(
  work: string,
  command: Command,
  { before, printed, name }: { before: Content; printed: string; name: string },
): Promise<void> {
  const acknowledged = listAcknowledged(command, printed);
  if (!existsSync(join(work, "lcm.db"))) expect([command.isNew, acknowledged], name).toEqual([true, []]);
  else {
    // A search index that could not be written says so, and is made anew by `lcm reindex`.
    const content = await readArchive(work, ["index"]);
    expect(command.allows(content, before, acknowledged), name).toBe(true);
  }
  await command.check?.(work);
}

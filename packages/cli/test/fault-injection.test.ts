/**
 * Calls to the disk fail in the middle of a command: no space, or an error of the device. The command ends with an error that says so, or does
 * its work; what is left proves and holds what was acknowledged.
 */
import { cpSync, existsSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { makeRandom, makeTemporaryFolder } from "@lossless/testkit";
import { findTracer, traceDisk } from "@lossless/testkit/disk-trace.ts";
import type { Fault } from "@lossless/testkit/disk-trace.ts";
import { isSoak, rounds } from "@lossless/testkit/rounds.ts";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { buildArchive, COMMANDS, environmentOf, listAcknowledged, readArchive } from "./disk-commands.ts";

const tracer = isSoak ? await findTracer() : null;
/** How many faults each command meets. */
const FAULTS = rounds({ test: 0, soak: 2 });
const CALLS = ["pwrite64", "fsync", "ftruncate", "rename", "unlink", "mkdir"] as const;
/** Which call of its kind fails at most: most commands have many writes and few of the rest. */
const LAST: Readonly<Record<string, number>> = { pwrite64: 300, fsync: 20 };

const built = makeTemporaryFolder("lcm-fault-");
afterAll(() => built[Symbol.dispose]());
beforeAll(() => {
  if (tracer !== null) buildArchive(built.file("archive"));
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
        if (command.isNew) mkdirSync(work);
        else cpSync(built.file("archive"), work, { recursive: true });
        const before = command.isNew ? new Map<string, string>() : await readArchive(work);
        const { steps, status, stderr } = await traceDisk(
          tracer ?? "",
          work,
          [process.execPath, ...command.run(work)],
          { output: folder.file("trace"), env: environmentOf(work), fault },
        );
        if (status !== 0) expect(stderr, name).not.toBe("");
        const printed = steps.map((step) => (step.kind === "print" ? step.text : "")).join("");
        const acknowledged = listAcknowledged(command, printed);
        if (!existsSync(join(work, "lcm.db")))
          expect([command.isNew, acknowledged], name).toEqual([true, []]);
        else {
          // A search index that could not be written says so, and is made anew by `lcm reindex`.
          const content = await readArchive(work, ["index"]);
          expect(command.allows(content, before, acknowledged), name).toBe(true);
        }
        await command.check?.(work);
      }
    },
  );
});

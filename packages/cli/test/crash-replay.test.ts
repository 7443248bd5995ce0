/**
 * Commands are traced once; then the disk is made again as it was after each of their steps, as a kill or a power cut would leave it. Whatever
 * is left opens, proves, and holds what was acknowledged by then.
 */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { makeRandom, makeTemporaryFolder } from "@lossless/testkit";
import { DiskModel } from "@lossless/testkit/disk-model.ts";
import type { Remains } from "@lossless/testkit/disk-model.ts";
import { findTracer, traceDisk } from "@lossless/testkit/disk-trace.ts";
import type { DiskStep } from "@lossless/testkit/disk-trace.ts";
import { isSoak, rounds } from "@lossless/testkit/rounds.ts";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  buildArchive,
  COMMANDS,
  environmentOf,
  listAcknowledged,
  prepareFolder,
  readArchive,
} from "./disk-commands.ts";

const tracer = isSoak ? await findTracer() : null;
/** How many moments of each command are tried in each way; `LCM_SOAK=100` tries all of them. */
const MOMENTS = rounds({ test: 0, soak: 8 });

const built = makeTemporaryFolder("lcm-crash-");
afterAll(() => built[Symbol.dispose]());
beforeAll(() => {
  if (tracer !== null) buildArchive(built.file("archive"));
});

/** Moments spread over a run, its end included. Kills are told apart by every step, power cuts only by what was flushed. */
function chooseMoments(steps: readonly DiskStep[], remains: Remains): number[] {
  const isTold = ({ kind }: DiskStep): boolean =>
    kind !== "print" && (remains !== "flushed" || kind === "flush");
  const moments = steps.flatMap((step, at) => (isTold(step) ? [at + 1] : []));
  const every = Math.max(1, Math.ceil(moments.length / MOMENTS));
  return moments.filter((_, index) => (moments.length - 1 - index) % every === 0);
}

describe.runIf(tracer !== null)("after a crash in the middle of", () => {
  test.each(COMMANDS)("$name, what is left proves and holds what was acknowledged", async (command) => {
    using folder = makeTemporaryFolder("lcm-crash-");
    const work = folder.file("work");
    const before = await prepareFolder(command, built.file("archive"), work);
    const start = new DiskModel(work);
    const trace = await traceDisk(tracer ?? "", work, [process.execPath, ...command.run(work)], {
      output: folder.file("trace"),
      env: environmentOf(work),
    });
    expect(trace.status, trace.stderr).toBe(0);
    expect(trace.steps.some(({ kind }) => kind === "flush")).toBe(true);
    const left = folder.file("left");
    const random = makeRandom(1);
    for (const remains of ["written", "flushed", "some"] as const) {
      const disk = new DiskModel(start);
      const moments = new Set(chooseMoments(trace.steps, remains));
      const acknowledged: string[] = [];
      for (const [at, step] of trace.steps.entries()) {
        disk.apply(step);
        if (step.kind === "print") acknowledged.push(...listAcknowledged(command, step.text));
        if (!moments.has(at + 1)) continue;
        disk.leave(remains, left, random);
        const moment = `${remains} after step ${at + 1} of ${trace.steps.length} (${step.kind})`;
        if (command.isNew && !existsSync(join(left, "lcm.db"))) {
          expect(acknowledged, moment).toEqual([]);
          continue;
        }
        const content = await readArchive(left).catch((error: unknown) => {
          throw new Error(moment, { cause: error });
        });
        expect(command.allows(content, before, acknowledged), moment).toBe(true);
        await command.check?.(left);
      }
    }
  });
});

test.runIf(isSoak && tracer === null)("crashes cannot be replayed here: strace is not to be had", (context) =>
  context.skip(),
);

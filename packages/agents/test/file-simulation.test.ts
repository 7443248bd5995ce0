/** Whatever happens to session files, each line that was there at an import is stored once, and another process reads it. */
import { isSoak, rounds } from "@lossless/testkit/rounds.ts";
import { firstSeed, playOrExplain, stepsUpTo } from "@lossless/testkit/shorten-script.ts";
import { test } from "vitest";
import { playFiles } from "./file-simulation.ts";

const FILE = "packages/agents/test/file-simulation.test.ts";
const ONLY = /^\d+$/.test(process.env["LCM_SEED"] ?? "") ? Number(process.env["LCM_SEED"]) : null;
const ONLY_STEPS = process.env["LCM_STEPS"]?.split(",").map(Number);
const STEPS = 40;

test.runIf(isSoak || ONLY !== null)(
  "session files that are cut, sliced, renamed, copied and written again lose no line and double none",
  async () => {
    const first = firstSeed();
    const several = Array.from({ length: rounds({ test: 0, soak: 8 }) }, (_, at) => first + at);
    const seeds = ONLY === null ? several : [ONLY];
    for (const seed of seeds)
      await playOrExplain({ seed, steps: ONLY_STEPS ?? stepsUpTo(STEPS) }, FILE, playFiles);
  },
);

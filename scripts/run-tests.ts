/**
 * `npm test`, `npm run test:soak`, `npm run test:browser`, `npm run test:postgres`: vitest with the files of a suite (`vitest.config.ts`), and
 * then the processor time that it and all its processes used. On a busy machine that number, and not wall time, is the cost of a suite.
 */
import { spawnSync } from "node:child_process";
import { join } from "node:path";

const VITEST = join(import.meta.dirname, "../node_modules/vitest/vitest.mjs");
/** The limit for `npm test`. */
const MAX_TEST_MINUTES = 5;
const LASTING = "packages/lossless-claw/test/lasting.test.ts";

/** The shell reports the usage of its children; only it knows of those that vitest waited for. */
const AND_TIMES = '"$@"; status=$?; times >&3; exit $status';

function runVitest(args: readonly string[]): { status: number; cpuMinutes: number | null } {
  const command = [process.execPath, VITEST, "run", ...args];
  const isPosix = process.platform !== "win32";
  const [program = "", ...rest] = isPosix ? ["sh", "-c", AND_TIMES, "sh", ...command] : command;
  const { status, output } = spawnSync(program, rest, {
    stdio: ["inherit", "inherit", "inherit", "pipe"],
    encoding: "utf8",
  });
  return { status: status ?? 1, cpuMinutes: isPosix ? sumMinutes(String(output[3])) : null };
}

/** `times` prints user and system time of the shell, then of its children: `1m2.3s 0m4.5s`. */
function sumMinutes(times: string): number {
  return [...times.matchAll(/(\d+)m([\d.]+)s/g)].reduce(
    (sum, [, minutes, seconds]) => sum + Number(minutes) + Number(seconds) / 60,
    0,
  );
}

/** `--minutes 15` of a soak: only the test that plays for that long. */
function takeMinutes(args: readonly string[]): string[] {
  const at = args.indexOf("--minutes");
  if (at < 0) return [...args];
  const minutes = Number(args[at + 1]);
  if (!(minutes > 0)) throw new Error(`cannot run for --minutes ${args[at + 1]}: name a number above 0`);
  process.env["LCM_MINUTES"] = String(minutes);
  return [...args.slice(0, at), ...args.slice(at + 2), LASTING];
}

const [suite = "test", ...given] = process.argv.slice(2);
process.env["LCM_SUITE"] = suite;
if (suite === "soak") process.env["LCM_SOAK"] ??= "1";
const args = suite === "soak" ? takeMinutes(given) : given;
const { status, cpuMinutes } = runVitest(args);
if (cpuMinutes !== null) {
  const limit = suite === "test" ? ` (at most ${MAX_TEST_MINUTES} for a whole run)` : "";
  console.log(`Processor time: ${cpuMinutes.toFixed(1)} minutes${limit}`);
}
process.exitCode = status;

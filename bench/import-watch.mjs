/**
 * Preloaded into the measured process: at its end it writes the process's usage, thread by thread. Plain JavaScript, because loading TypeScript
 * takes 17 MB in each thread, which would count as the program's.
 */
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { isMainThread } from "node:worker_threads";

const TASKS = "/proc/self/task";
const TICK_MS = 10;
const out = process.env.LCM_BENCH_USAGE;
/** Processor time of the engine's thread, which ends before the process does; null if the system does not report it. */
let engineCpuMs = null;

function look() {
  try {
    for (const id of readdirSync(TASKS)) {
      const stat = readFileSync(`${TASKS}/${id}/stat`, "utf8");
      if (!stat.includes("(lossless-engine)")) continue;
      const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
      engineCpuMs = (Number(fields[11]) + Number(fields[12])) * TICK_MS;
    }
  } catch {
    // The thread has just ended, or the system lacks these files.
  }
}

if (out !== undefined && isMainThread) {
  setInterval(look, 250).unref();
  process.on("exit", () => {
    const { maxRSS, userCPUTime, systemCPUTime } = process.resourceUsage();
    const main = process.threadCpuUsage();
    const usage = {
      peakBytes: maxRSS * 1024,
      cpuMs: (userCPUTime + systemCPUTime) / 1000,
      mainCpuMs: (main.user + main.system) / 1000,
      engineCpuMs,
    };
    writeFileSync(out, JSON.stringify(usage));
  });
}

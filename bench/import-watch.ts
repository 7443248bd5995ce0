/** Loaded into the process under measurement before anything else: at its end it writes what the process took, thread by thread. */
import { writeFileSync } from "node:fs";
import { isMainThread } from "node:worker_threads";

export interface ImportUsage {
  readonly peakBytes: number;
  /** Processor time of the whole process, and of its first thread alone. */
  readonly cpuMs: number;
  readonly mainCpuMs: number;
}

const out = process.env["LCM_BENCH_USAGE"];
if (isMainThread && out !== undefined) {
  process.on("exit", () => {
    const { maxRSS, userCPUTime, systemCPUTime } = process.resourceUsage();
    const main = process.threadCpuUsage();
    const usage: ImportUsage = {
      peakBytes: maxRSS * 1024,
      cpuMs: (userCPUTime + systemCPUTime) / 1000,
      mainCpuMs: (main.user + main.system) / 1000,
    };
    writeFileSync(out, JSON.stringify(usage));
  });
}

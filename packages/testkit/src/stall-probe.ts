/**
 * Measures how long a thread is away from its event loop, that is, how long a host is blocked. Time in which it was runnable but others had the
 * processor is not counted if the system reports it.
 */
import { readFileSync } from "node:fs";

const PROBE_MS = 1;
const MAX_COUNTED_MS = 1_000;

/** Samples how long the thread is away from its event loop. */
export class StallProbe {
  stallMs = 0;
  workMs = 0;
  /** How often it was away for each number of milliseconds; the last entry counts everything longer. */
  readonly #counts = new Uint32Array(MAX_COUNTED_MS + 1);
  #timer: NodeJS.Timeout;
  #last = performance.now();
  #lastWork = process.threadCpuUsage();
  #lastQueuedMs = readQueuedMs();

  constructor() {
    this.#timer = setInterval(() => this.#look(), PROBE_MS);
  }

  stop(): void {
    this.#look();
    clearInterval(this.#timer);
  }

  /** This share of all samples found the thread away for no longer than the result, in milliseconds. */
  percentile(share: number): number {
    const total = this.#counts.reduce((sum, count) => sum + count, 0);
    let seen = 0;
    return this.#counts.findIndex((count) => (seen += count) >= share * total);
  }

  #look(): void {
    const now = performance.now();
    const work = process.threadCpuUsage(this.#lastWork);
    const queuedMs = readQueuedMs();
    const awayMs = now - this.#last - PROBE_MS - (queuedMs - this.#lastQueuedMs);
    this.stallMs = Math.max(this.stallMs, awayMs);
    const counted = Math.min(Math.max(0, Math.ceil(awayMs)), MAX_COUNTED_MS);
    this.#counts[counted] = (this.#counts[counted] ?? 0) + 1;
    this.workMs = Math.max(this.workMs, (work.user + work.system) / 1000);
    this.#last = performance.now();
    this.#lastWork = process.threadCpuUsage();
    this.#lastQueuedMs = queuedMs;
  }
}

/** How long this thread was runnable without a processor. Linux reports it; elsewhere it counts as a stall. */
function readQueuedMs(): number {
  if (process.platform !== "linux") return 0;
  const [, queuedNs = "0"] = readFileSync(`/proc/self/task/${process.pid}/schedstat`, "utf8").split(" ");
  return Number(queuedNs) / 1e6;
}

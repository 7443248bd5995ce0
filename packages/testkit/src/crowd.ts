/** Starts processes around one database for a test or a benchmark: collects the result of each, and stops it. */
import { fork } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import type { CrowdOrders, CrowdResult, CrowdRole } from "./crowd-program.ts";

const PROGRAM = fileURLToPath(import.meta.resolve("./crowd-program.ts"));

/** A process of the crowd, and its result. Fails with its output when it fails. */
export class CrowdMember {
  readonly process: ChildProcess;
  readonly report: Promise<CrowdResult>;

  constructor(role: CrowdRole, orders: CrowdOrders) {
    this.process = fork(PROGRAM, [role, JSON.stringify(orders)], {
      execArgv: [],
      stdio: ["ignore", "ignore", "pipe", "ipc"],
    });
    this.report = this.#watch(`${role} ${orders.name}`);
    // The test awaits it later; until then a failure must not be unhandled.
    this.report.catch(() => undefined);
  }

  async #watch(title: string): Promise<CrowdResult> {
    let report: CrowdResult | null = null;
    let errors = "";
    this.process.stderr?.on("data", (data: Buffer) => (errors += data.toString()));
    this.process.on("message", (message: { kind: string }) => {
      if (message.kind === "done") report = message as CrowdResult;
    });
    const [status, signal] = (await once(this.process, "close")) as [number | null, string | null];
    if (status !== 0 || report === null)
      throw new Error(`${title} ended with ${status ?? signal}: ${errors}`);
    return report;
  }

  async heldLock(): Promise<void> {
    await Promise.race([once(this.process, "message"), this.report]);
  }

  async stop(): Promise<CrowdResult> {
    if (this.process.connected) this.process.send("stop");
    return this.report;
  }
}

/** Unfinished work: turns in the spool that are not in the database yet, and a removal whose last step is missing. */
import type { CheckInput, Finding } from "../finding.ts";
import { listSpooledTurns } from "../spooled-turns.ts";

const SPOOL_AGE_MS = 10 * 60_000;

export async function checkWaiting({ engine, databasePath, now }: CheckInput): Promise<Finding[]> {
  const findings: Finding[] = [];
  const waiting = listSpooledTurns(databasePath).times.filter((at) => now - at > SPOOL_AGE_MS).length;
  if (waiting > 0) {
    findings.push({
      code: "spool_waiting",
      severity: "warning",
      id: "lcm-spool",
      message: `${waiting} turns wait on this machine for the database; the host stores them when it runs`,
      step: null,
    });
  }
  if (await engine.isForgettingOpen()) {
    findings.push({
      code: "forgetting_open",
      severity: "error",
      id: "archive",
      message: "messages were forgotten, but freed pages of the database may still contain their text",
      step: { kind: "fix" },
      fix: { kind: "finish_forgetting" },
    });
  }
  return findings;
}

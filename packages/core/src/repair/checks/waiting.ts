/** Work that was begun and waits: turns in the spool that the database has not taken, and a removal whose last step is missing. */
import { readdirSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { nameLocally } from "../../settings/local-name.ts";
import type { CheckInput, Finding } from "../finding.ts";

const SPOOL_AGE_MS = 10 * 60_000;

export async function checkWaiting({ engine, databasePath, now }: CheckInput): Promise<Finding[]> {
  const findings: Finding[] = [];
  const waiting = listSpooled(join(dirname(nameLocally(databasePath)), "lcm-spool"), now);
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
      message: "messages were forgotten, but freed pages of the database may still hold their text",
      step: { kind: "fix" },
      fix: { kind: "finish_forgetting" },
    });
  }
  return findings;
}

function listSpooled(folder: string, now: number): number {
  if (!statSync(folder, { throwIfNoEntry: false })?.isDirectory()) return 0;
  return readdirSync(folder).filter((name) => {
    const found = statSync(join(folder, name), { throwIfNoEntry: false });
    return name.endsWith(".json") && found !== undefined && now - found.mtimeMs > SPOOL_AGE_MS;
  }).length;
}

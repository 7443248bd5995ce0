/** Hooks as `lcm setup` leaves them, without the configuration of an agent: its script, and the folders that the script uses. */
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { findBundleFolder, findHookScript, findSpoolFolder, renderHookScript } from "../src/index.ts";
import type { HookAgent } from "../src/index.ts";

export function installHookScript(database: string, agent: HookAgent): void {
  const path = findHookScript(database, agent);
  for (const folder of [dirname(path), findSpoolFolder(database), findBundleFolder(database)])
    mkdirSync(folder, { recursive: true, mode: 0o700 });
  writeFileSync(path, renderHookScript(database, agent), { mode: 0o600 });
}

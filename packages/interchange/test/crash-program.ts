/** The program that `crash.test.ts` kills: imports a directory into a database and reports every step to its parent. */

import { openEngine } from "lossless-claw";
import { importPaths } from "../src/transcript/import.ts";

const [database, directory] = process.argv.slice(2);
if (database === undefined || directory === undefined)
  throw new Error("usage: crash-program <database> <directory>");

function tell(message: unknown): void {
  process.send?.(message);
}

const engine = await openEngine({ database });
tell({ kind: "ready" });
const onProgress = (): void => tell({ kind: "progress" });
const summary = await importPaths({ engine, paths: [directory], batchLines: 20, onProgress });
await engine.close();
tell({ kind: "done", ...summary });
process.disconnect();

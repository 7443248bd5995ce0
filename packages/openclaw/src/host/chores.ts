/**
 * Work on the archive that takes long and would hold the host's thread: adopting the database of an older version, and full backups. Each runs
 * in its own thread, which ends with it. This file has the message types of both sides; `chore-worker.ts` does the work.
 */

import { Worker } from "node:worker_threads";
import type { Settings } from "@lossless/core";
import { deserializeError } from "@lossless/core/doors";
import type { SerializedError } from "@lossless/core/doors";
import type { Adoption } from "@lossless/interchange";
import type { BackupResult } from "@lossless/core/repair";

export type Chore = { readonly kind: "adopt" | "backup"; readonly settings: Settings };

export type ChoreResult =
  | { readonly ok: true; readonly value: Adoption | BackupResult }
  | { readonly ok: false; readonly error: SerializedError };

/** Adopts the database of an older version at the archive's path. */
export async function adoptInThread(settings: Settings, workerUrl = defaultUrl()): Promise<Adoption> {
  return (await runChore({ kind: "adopt", settings }, workerUrl)) as Adoption;
}

/** Makes a proven copy of the database and its files beside it. */
export async function backUpInThread(settings: Settings, workerUrl = defaultUrl()): Promise<BackupResult> {
  return (await runChore({ kind: "backup", settings }, workerUrl)) as BackupResult;
}

async function runChore(chore: Chore, url: URL): Promise<unknown> {
  const worker = new Worker(url, { workerData: chore, name: `lossless-${chore.kind}` });
  const { promise, resolve, reject } = Promise.withResolvers<ChoreResult>();
  worker.once("message", resolve);
  worker.once("error", reject);
  worker.once("exit", (code) => reject(new Error(`the thread for ${chore.kind} ended with ${code}`)));
  try {
    const answer = await promise;
    if (answer.ok) return answer.value;
    throw deserializeError(answer.error);
  } finally {
    await worker.terminate();
  }
}

/** Beside this file: TypeScript when run from source, JavaScript when bundled. */
function defaultUrl(): URL {
  return new URL(
    import.meta.url.endsWith(".ts") ? "./chore-worker.ts" : "./chore-worker.js",
    import.meta.url,
  );
}

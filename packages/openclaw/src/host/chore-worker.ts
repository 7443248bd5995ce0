/** The thread of one chore: runs it, reports the result, and ends. */

import { parentPort, workerData } from "node:worker_threads";
import { openEngine } from "lossless-claw";
import { serializeError } from "@lossless/core/doors";
import { adoptDocumentedDatabase } from "lossless-claw/interchange";
import { createBackup } from "lossless-claw/repair";
import type { Chore, ChoreResult } from "./chores.ts";

async function work({ kind, settings }: Chore): Promise<ChoreResult> {
  try {
    return { ok: true, value: kind === "adopt" ? await adopt(settings) : await backUp(settings) };
  } catch (error) {
    return { ok: false, error: serializeError(error) };
  }
}

function adopt(settings: Chore["settings"]): ReturnType<typeof adoptDocumentedDatabase> {
  const { databasePath: path, largeFilesDir: filesDir, largeFileThresholdTokens } = settings;
  return adoptDocumentedDatabase({ path, filesDir, largeFileThresholdTokens, settings, now: Date.now() });
}

async function backUp(settings: Chore["settings"]): ReturnType<typeof createBackup> {
  const { databasePath, largeFilesDir: filesDir } = settings;
  const engine = await openEngine({
    database: databasePath,
    filesDir,
    settings,
    create: false,
    thread: false,
  });
  try {
    return await createBackup({ engine, databasePath, filesDir });
  } finally {
    await engine.close();
  }
}

parentPort?.postMessage(await work(workerData as Chore));

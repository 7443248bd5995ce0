/** The footprint of the archive: bytes on disk per byte of JSON, memory of an import, and time of the host's thread. */
import { execFile } from "node:child_process";
import { closeSync, openSync, readdirSync, readFileSync, statSync, writeSync } from "node:fs";
import { basename, join } from "node:path";
import { promisify } from "node:util";
import { openEngine } from "lossless-claw";
import { importPaths } from "@lossless/interchange";
import { findSharedData, listTranscripts } from "@lossless/testkit/shared-data.ts";
import { makeTemporaryFolder } from "@lossless/testkit/temporary.ts";
import { renderSessionFile } from "./archive-messages.ts";
import type { ProgramResult } from "./archive-program.ts";

const PROGRAM = join(import.meta.dirname, "archive-program.ts");
const run = promisify(execFile);

export interface DiskResult {
  readonly rawBytes: number;
  readonly databaseBytes: number;
  readonly filesBytes: number;
}

/** Imports the real Claude Code transcripts, if present, folds them if requested, and measures the closed database. */
export async function measureRealDisk(foldTokens: number | null = null): Promise<DiskResult | null> {
  const data = findSharedData();
  const paths =
    data === null ? [] : listTranscripts(data, "claude-code").filter((path) => path.endsWith(".jsonl"));
  return paths.length === 0 ? null : weighImport(paths, foldTokens);
}

export async function measureGeneratedDisk(bytes: number): Promise<DiskResult> {
  using folder = makeTemporaryFolder("lossless-bench-");
  const file = folder.file("session.jsonl");
  writeSessionFile(file, bytes);
  return await weighImport([file], null);
}

async function weighImport(paths: readonly string[], foldTokens: number | null): Promise<DiskResult> {
  using folder = makeTemporaryFolder("lossless-bench-");
  const database = folder.file("lcm.db");
  const engine = await openEngine({ database, thread: true });
  await importPaths({ engine, paths });
  if (foldTokens !== null)
    for (const { conversationId } of (await engine.listConversations({ limit: 500 })).items)
      await engine.compact({ conversationId, budgetTokens: foldTokens });
  await engine.close();
  return {
    rawBytes: paths.reduce((sum, path) => sum + readFileSync(path).byteLength, 0),
    databaseBytes: sumFiles(folder.path, (name) => name.startsWith(basename(database))),
    filesBytes: sumFiles(folder.path, (name) => !name.startsWith(basename(database))),
  };
}

function sumFiles(folder: string, counts: (name: string) => boolean): number {
  return readdirSync(folder, { recursive: true, encoding: "utf8" })
    .filter(counts)
    .map((name) => statSync(join(folder, name)))
    .reduce((sum, entry) => sum + (entry.isFile() ? entry.size : 0), 0);
}

export function writeSessionFile(path: string, bytes: number): void {
  const handle = openSync(path, "w");
  for (const line of renderSessionFile(9, bytes)) writeSync(handle, line);
  closeSync(handle);
}

export type Task = "import" | "turns" | "large";

/** Runs a task in its own process, several times; each run has its own database. */
export async function runProgram(task: Task, file: string, times: number): Promise<ProgramResult[]> {
  const reports: ProgramResult[] = [];
  for (let i = 0; i < times; i++) {
    using folder = makeTemporaryFolder("lossless-bench-");
    const { stdout } = await run(process.execPath, [PROGRAM, task, folder.file("lcm.db"), file]);
    reports.push(JSON.parse(stdout) as ProgramResult);
  }
  return reports;
}

/**
 * The state of the watcher, in a small file beside the database, so that `lcm status` can report it; and the lock that keeps a second watcher
 * from following the same folders into the same archive. The lock, never the file, shows whether the watcher still runs.
 */
import { existsSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { EngineError, hidePassword } from "@lossless/core";
import { nameLocally } from "@lossless/core/formats";
import { withFileLock } from "lossless-claw/file-lock";

export interface AgentState {
  readonly agent: string;
  readonly root: string;
  /** False when the agent has no sessions on this machine. */
  readonly isPresent: boolean;
  readonly transcripts: number;
  /** ms UTC: when a transcript last changed, and when that was stored. */
  readonly lastEventAt: number | null;
  readonly lastStoredAt: number | null;
  /** Time from the last change until it was stored. */
  readonly lagMs: number | null;
  /** Changed and not stored yet. */
  readonly waiting: number;
  readonly problem: string | null;
}

export interface WatchState {
  readonly pid: number;
  readonly startedAt: number;
  /** False where the system has no file events and folders are scanned instead. */
  readonly hasEvents: boolean;
  readonly agents: readonly AgentState[];
}

const stateFile = (database: string): string => `${nameLocally(database)}.watch.json`;

export function writeWatchState(database: string, state: WatchState): void {
  const path = stateFile(database);
  writeFileSync(`${path}.new`, `${JSON.stringify(state)}\n`, { mode: 0o600 });
  renameSync(`${path}.new`, path);
}

/** Null when no watcher ever ran, or a crash of the machine left nothing of the file. */
export async function readWatchState(
  database: string,
): Promise<(WatchState & { readonly isRunning: boolean }) | null> {
  const state = readState(stateFile(database));
  if (state === null) return null;
  const isRunning = await withLock(database, () => Promise.resolve(false)).catch(() => true);
  return { ...state, isRunning };
}

function readState(path: string): WatchState | null {
  if (!existsSync(path)) return null;
  try {
    return JSON.parse(readFileSync(path, "utf8")) as WatchState;
  } catch (error) {
    if (error instanceof SyntaxError) return null;
    throw error;
  }
}

/** Runs `work` unless another watcher runs for the same archive. */
export async function watchAlone<T>(database: string, work: () => Promise<T>): Promise<T> {
  try {
    return await withLock(database, work);
  } catch (error) {
    if (!(error instanceof EngineError) || error.code !== "database_busy" || !error.message.includes("lock"))
      throw error;
    throw new EngineError(
      "database_busy",
      `cannot watch: another lcm watch stores into ${hidePassword(database)}`,
      {
        hint: "lcm status shows what it does",
        cause: error,
      },
    );
  }
}

const withLock = <T>(database: string, work: () => Promise<T>): Promise<T> =>
  withFileLock(`${nameLocally(database)}.watch.lock`, 0, work);

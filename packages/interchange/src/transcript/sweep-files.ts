/**
 * Session files that have grown too large: each is rotated, or only reported, according to the settings.
 *
 * Invariant: a failure on one file never prevents handling the next.
 */
import { statSync } from "node:fs";
import { readdir } from "node:fs/promises";
import { join, resolve } from "node:path";
import type { Engine, Settings } from "@lossless/core";
import type { ArchiveAccess } from "@lossless/core/repair";
import { rotateSessionFile } from "./rotate.ts";
import type { RotateOptions } from "./rotate.ts";

export interface SweepOptions {
  readonly engine: Engine;
  readonly files: readonly string[];
  readonly phase: "startup" | "runtime";
  readonly settings: Settings;
  readonly databasePath: string;
  readonly filesDir: string;
  readonly owner?: string;
  readonly log: (line: string) => void;
  readonly now?: () => number;
}

export interface SweepTally {
  readonly scanned: number;
  readonly eligible: number;
  readonly rotated: number;
  readonly warned: number;
  readonly skipped: number;
  readonly bytesRemoved: number;
}

/** The session files below a folder; none when the folder does not exist. */
export async function findSessionFiles(folder: string): Promise<string[]> {
  try {
    const entries = await readdir(folder, { recursive: true, withFileTypes: true });
    return entries
      .filter((entry) => entry.isFile() && entry.name.endsWith(".jsonl"))
      .map((entry) => resolve(join(entry.parentPath, entry.name)))
      .toSorted();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return [];
    throw error;
  }
}

/** Warns about large files, or rotates them if the settings say so. Null when the settings ask for neither. */
export async function sweepSessionFiles(
  options: SweepOptions,
  access: ArchiveAccess,
): Promise<SweepTally | null> {
  const { enabled, [options.phase]: mode } = options.settings.autoRotateSessionFiles;
  if (!enabled || mode === "off") return null;
  const sweep = new Sweep(options, access);
  for (const path of options.files) await sweep.look(path, mode);
  return sweep.finish();
}

class Sweep {
  readonly #options: SweepOptions;
  readonly #access: ArchiveAccess;
  readonly #now: () => number;
  readonly #startedAt: number;
  readonly #tally = { scanned: 0, eligible: 0, rotated: 0, warned: 0, skipped: 0, bytesRemoved: 0 };
  /** What to back up before the next rotation: one backup is enough for all files. */
  #backup: RotateOptions["backup"];

  constructor(options: SweepOptions, access: ArchiveAccess) {
    const { settings, databasePath, filesDir, now = Date.now } = options;
    this.#options = options;
    this.#access = access;
    this.#now = now;
    this.#startedAt = now();
    this.#backup = settings.autoRotateSessionFiles.createBackups ? { databasePath, filesDir } : undefined;
  }

  async look(path: string, mode: "warn" | "rotate"): Promise<void> {
    this.#tally.scanned += 1;
    const { sizeBytes: thresholdBytes } = this.#options.settings.autoRotateSessionFiles;
    let sizeBytes: number;
    try {
      sizeBytes = statSync(path, { throwIfNoEntry: false })?.size ?? 0;
    } catch (error) {
      return this.#warn({ sessionFile: path, error: describe(error) });
    }
    if (sizeBytes <= thresholdBytes) {
      this.#tally.skipped += 1;
      return;
    }
    this.#tally.eligible += 1;
    const facts = { sessionFile: path, sizeBytes, thresholdBytes };
    if (mode === "warn") return this.#warn({ ...facts, reason: "larger than the threshold" });
    try {
      this.#log({ ...facts, action: "rotate", ...(await this.#rotate(path)) });
    } catch (error) {
      this.#warn({ ...facts, error: describe(error) });
    }
  }

  finish(): SweepTally {
    const durationMs = this.#now() - this.#startedAt;
    if (this.#options.phase === "startup") this.#log({ action: "summary", ...this.#tally, durationMs });
    return this.#tally;
  }

  async #rotate(path: string): Promise<LogFacts> {
    const { engine, settings, databasePath, owner } = this.#options;
    const startedAt = this.#now();
    const report = await rotateSessionFile(
      {
        engine,
        path,
        freshTailCount: settings.freshTailCount,
        dryRun: false,
        databasePath,
        owner,
        backup: this.#backup,
      },
      this.#access,
    );
    const { sessionId, bytesRemoved, preservedTailMessageCount, backupPath, newSizeBytes } = report;
    if (backupPath !== null) this.#backup = undefined;
    this.#tally.rotated += 1;
    this.#tally.bytesRemoved += bytesRemoved;
    const durationMs = this.#now() - startedAt;
    const sizes = { bytesRemoved, preservedTailMessageCount, checkpointSize: newSizeBytes };
    return { sessionId, durationMs, backupPath, ...sizes };
  }

  #warn(facts: LogFacts): void {
    this.#tally.warned += 1;
    this.#log({ ...facts, action: "warn" });
  }

  #log(facts: LogFacts): void {
    const { phase, log } = this.#options;
    log(renderLog({ phase, ...facts }));
  }
}

const describe = (error: unknown): string => (error instanceof Error ? error.message : String(error));

type LogFacts = Readonly<Record<string, string | number | null>>;

function renderLog(facts: LogFacts): string {
  const words = Object.entries(facts).map(
    ([key, value]) =>
      `${key}=${typeof value === "string" ? JSON.stringify(value).replace(/^"([\w./:-]+)"$/, "$1") : value}`,
  );
  return `[lcm] auto-rotate: ${words.join(" ")}`;
}

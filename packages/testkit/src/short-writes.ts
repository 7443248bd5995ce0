/**
 * Runs a program whose writes to one folder are cut short by a library that is loaded before libc. `strace` cannot do that: it can make a call
 * fail, or say that it wrote something, but not let it write a part.
 */
import { execFileSync, spawnSync } from "node:child_process";
import { existsSync, statSync } from "node:fs";
import { fileURLToPath } from "node:url";

const SOURCE = fileURLToPath(new URL("./short-writes.c", import.meta.url));

export interface ShortWrites {
  readonly folder: string;
  /** The number of the first write that is cut short. */
  readonly from: number;
  /** Every so many writes after it. */
  readonly step: number;
  /** A file outside of the folder. */
  readonly note: string;
}

/** Compiles the library into a folder; null: there is no C compiler, or the platform has no such thing. */
export function buildShortWrites(folder: string): string | null {
  if (process.platform !== "linux") return null;
  const library = `${folder}/short-writes.so`;
  try {
    execFileSync("cc", ["-shared", "-fPIC", "-O1", "-o", library, SOURCE, "-ldl"], { stdio: "pipe" });
    return library;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return null;
    throw error;
  }
}

export interface ShortWriteResult {
  readonly status: number | null;
  readonly stdout: string;
  readonly stderr: string;
  /** How many writes were cut short. */
  readonly cuts: number;
}

export function runWithShortWrites(
  library: string,
  command: readonly string[],
  { folder, from, step, note }: ShortWrites,
  env: NodeJS.ProcessEnv,
): ShortWriteResult {
  const [program = "", ...args] = command;
  const { status, stdout, stderr } = spawnSync(program, args, {
    encoding: "utf8",
    env: {
      ...process.env,
      ...env,
      LD_PRELOAD: library,
      LCM_SHORT_FOLDER: folder,
      LCM_SHORT_FROM: String(from),
      LCM_SHORT_STEP: String(step),
      LCM_SHORT_NOTE: note,
    },
  });
  return { status, stdout, stderr, cuts: existsSync(note) ? statSync(note).size : 0 };
}

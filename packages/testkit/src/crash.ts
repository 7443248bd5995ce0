/**
 * Runs a program again and again and kills it without warning, until it has been killed often enough and has then finished by
 * itself. What must hold after a crash is checked by the caller; when to kill follows from a seed.
 *
 * The program is a module that talks to its parent: each message it sends is a moment worth dying at.
 */

import { fork, type ChildProcess } from "node:child_process";

export interface CrashOptions {
  /** The module to run; TypeScript is fine. */
  readonly module: string;
  readonly args: readonly string[];
  /** Numbers in [0, 1) that a seed repeats. */
  readonly chance: () => number;
  /** How many times to kill before the program may finish. */
  readonly kills: number;
  /** Latest moment for a kill that waits for no message, from the start of the program. */
  readonly latestKillMs: number;
  /** Called before every run, with the number of kills so far. */
  readonly beforeRun?: (kills: number) => void;
  /** Called for each message of the program. */
  readonly onMessage?: (message: unknown) => void;
}

export interface CrashResult {
  readonly kills: number;
  readonly runs: number;
  readonly messages: number;
}

/** When a run is killed: after so many messages, or after so many milliseconds, whichever comes first; or never. */
interface Doom {
  readonly afterMessages: number;
  readonly afterMs: number;
}

const SPARED: Doom = { afterMessages: Number.POSITIVE_INFINITY, afterMs: Number.POSITIVE_INFINITY };
/** A program that survives this many attempts on its life finishes before it can be killed; the plan needs changing. */
const MAX_RUNS_PER_KILL = 5;

export async function runWithCrashes(options: CrashOptions): Promise<CrashResult> {
  let [kills, runs, messages] = [0, 0, 0];
  for (;;) {
    options.beforeRun?.(kills);
    const doom = kills < options.kills ? drawDoom(options) : SPARED;
    const run = await runOnce(options, doom);
    runs += 1;
    messages += run.messages;
    if (run.wasKilled) kills += 1;
    else if (run.exitCode !== 0)
      throw new Error(`the program failed with status ${run.exitCode}:\n${run.output}`);
    else if (doom === SPARED) return { kills, runs, messages };
    if (runs > options.kills * MAX_RUNS_PER_KILL)
      throw new Error(`killed only ${kills} times in ${runs} runs`);
  }
}

function drawDoom({ chance, latestKillMs }: CrashOptions): Doom {
  if (chance() < 0.5) return { ...SPARED, afterMessages: 1 + Math.floor(chance() * 8) };
  return { ...SPARED, afterMs: Math.floor(chance() * latestKillMs) };
}

interface Run {
  readonly wasKilled: boolean;
  readonly exitCode: number | null;
  readonly messages: number;
  readonly output: string;
}

async function runOnce(options: CrashOptions, doom: Doom): Promise<Run> {
  const child = fork(options.module, [...options.args], {
    execArgv: [],
    stdio: ["ignore", "pipe", "pipe", "ipc"],
  });
  let messages = 0;
  const output: string[] = [];
  for (const stream of [child.stdout, child.stderr])
    stream?.on("data", (data: Buffer) => output.push(data.toString()));
  child.on("message", (message) => {
    messages += 1;
    options.onMessage?.(message);
    if (messages >= doom.afterMessages) child.kill("SIGKILL");
  });
  const timer = Number.isFinite(doom.afterMs) ? setTimeout(() => child.kill("SIGKILL"), doom.afterMs) : null;
  try {
    const { exitCode, signal } = await waitForEnd(child);
    return { wasKilled: signal === "SIGKILL", exitCode, messages, output: output.join("") };
  } finally {
    if (timer !== null) clearTimeout(timer);
  }
}

function waitForEnd(
  child: ChildProcess,
): Promise<{ exitCode: number | null; signal: NodeJS.Signals | null }> {
  return new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (exitCode, signal) => resolve({ exitCode, signal }));
  });
}

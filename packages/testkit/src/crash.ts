/**
 * Runs a program repeatedly and kills it without warning, until it has been killed often enough and has then finished by itself. The caller
 * checks what must hold after a crash; a seed decides when to kill.
 *
 * The program is a module that talks to its parent: each message it sends marks a moment to kill it.
 */

import { fork, type ChildProcess } from "node:child_process";

import type { Random } from "./random.ts";

export interface CrashOptions {
  /** The module to run; TypeScript is fine. */
  readonly module: string;
  /** Its arguments, or a function of the number of previous runs. */
  readonly args: readonly string[] | ((runs: number) => readonly string[]);
  readonly random: Random;
  /** How many times to kill before the program may finish, if it runs long enough. */
  readonly kills: number;
  /** Called before every run; the last one is not killed. */
  readonly beforeRun?: (isLast: boolean) => void;
  /** Called for each message of the program. */
  readonly onMessage?: (message: unknown) => void;
}

export interface CrashResult {
  readonly kills: number;
  readonly runs: number;
  readonly messages: number;
}

/** When to kill a run: this many milliseconds after this many messages. */
interface Doom {
  readonly afterMessages: number;
  readonly thenMs: number;
}

const SPARED: Doom = { afterMessages: Number.POSITIVE_INFINITY, thenMs: 0 };
/** On some machines a program often finishes before it is killed; after this many runs per kill it may. */
const MAX_RUNS_PER_KILL = 3;
/** Later steps repeat the first few; the delay is long enough to hit the middle of the next step. */
const MAX_MESSAGES = 10;
const MAX_WAIT_MS = 60;

export async function runWithCrashes(options: CrashOptions): Promise<CrashResult> {
  let [kills, runs, messages] = [0, 0, 0];
  for (;;) {
    const isLast = kills >= options.kills || runs >= options.kills * MAX_RUNS_PER_KILL;
    options.beforeRun?.(isLast);
    const doom = isLast ? SPARED : drawDoom(options.random);
    const args = typeof options.args === "function" ? options.args(runs) : options.args;
    const run = await runOnce(options, args, doom);
    runs += 1;
    messages += run.messages;
    if (run.wasKilled) kills += 1;
    else if (run.exitCode !== 0)
      throw new Error(`the program failed with status ${run.exitCode}:\n${run.output}`);
    else if (isLast) return { kills, runs, messages };
  }
}

/** Kills half of the runs exactly at a message, half some time after one. */
function drawDoom(random: Random): Doom {
  const afterMessages = 1 + random.below(MAX_MESSAGES);
  return { afterMessages, thenMs: random.next() < 0.5 ? 0 : random.below(MAX_WAIT_MS) };
}

interface Attempt {
  readonly wasKilled: boolean;
  readonly exitCode: number | null;
  readonly messages: number;
  readonly output: string;
}

async function runOnce(options: CrashOptions, args: readonly string[], doom: Doom): Promise<Attempt> {
  const child = fork(options.module, [...args], {
    execArgv: [],
    stdio: ["ignore", "pipe", "pipe", "ipc"],
  });
  const output: string[] = [];
  for (const stream of [child.stdout, child.stderr])
    stream?.on("data", (data: Buffer) => output.push(data.toString()));
  let messages = 0;
  let timer: NodeJS.Timeout | null = null;
  child.on("message", (message) => {
    messages += 1;
    options.onMessage?.(message);
    if (messages !== doom.afterMessages) return;
    if (doom.thenMs === 0) child.kill("SIGKILL");
    else timer = setTimeout(() => child.kill("SIGKILL"), doom.thenMs);
  });
  const { exitCode, signal } = await waitForEnd(child);
  if (timer !== null) clearTimeout(timer);
  return { wasKilled: signal === "SIGKILL", exitCode, messages, output: output.join("") };
}

function waitForEnd(
  child: ChildProcess,
): Promise<{ exitCode: number | null; signal: NodeJS.Signals | null }> {
  return new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (exitCode, signal) => resolve({ exitCode, signal }));
  });
}

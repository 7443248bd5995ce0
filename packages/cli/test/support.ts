/** Runs the real program as a child process, in a home of its own, and keeps what it printed. */
import { fork, spawn } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { SAMPLE } from "@lossless/testkit/sample.ts";
import { afterAll, expect } from "vitest";
import type { WarmOrder, WarmResult } from "./warm-program.ts";

export const ROOT = fileURLToPath(new URL("../../../", import.meta.url));
export const LCM = join(ROOT, "packages/cli/bin/lcm.js");
export { SAMPLE };

/** Compiled modules are kept between runs: most of a short command's time is reading its own source. */
const COMPILE_CACHE = join(ROOT, "node_modules/.cache/lcm-tests");

export interface Run {
  readonly status: number | null;
  readonly stdout: Buffer;
  readonly stderr: string;
}

export interface RunOptions {
  readonly env?: Readonly<Record<string, string>>;
  readonly script?: string;
  /** For a run whose duration matters. */
  readonly ownProcess?: boolean;
  /** Called with the process as soon as it runs; it is then a process of its own. */
  readonly onStart?: (child: ReturnType<typeof spawn>) => void;
}

/** A folder that a test file may fill; `remove` empties it. */
export function makeFolder(): { readonly path: string; readonly remove: () => void } {
  const path = mkdtempSync(join(tmpdir(), "lcm-cli-"));
  return { path, remove: () => rmSync(path, { recursive: true, force: true }) };
}

/** A program runner whose state folder is `home`, so that nobody's own settings play a part. Made by a test file, not within a test. */
export function createRunner(home: string): (args: readonly string[], options?: RunOptions) => Promise<Run> {
  afterAll(() => warm.end());
  return (args, options = {}) => {
    const env = {
      PATH: process.env["PATH"] ?? "",
      HOME: home,
      OPENCLAW_STATE_DIR: join(home, "state"),
      TZ: "UTC",
      NODE_COMPILE_CACHE: COMPILE_CACHE,
      ...options.env,
    };
    const order: WarmOrder = { args, env, folder: home };
    const isOwn = options.ownProcess ?? (options.script !== undefined || options.onStart !== undefined);
    return isOwn || warm.isBusy ? runInOwnProcess(order, options) : warm.run(order);
  };
}

function runInOwnProcess({ args, env, folder }: WarmOrder, options: RunOptions): Promise<Run> {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [options.script ?? LCM, ...args], {
      cwd: folder,
      env,
      stdio: ["ignore", "pipe", "pipe"],
    });
    const stdout: Buffer[] = [];
    const stderr: Buffer[] = [];
    child.stdout.on("data", (chunk: Buffer) => stdout.push(chunk));
    child.stderr.on("data", (chunk: Buffer) => stderr.push(chunk));
    child.on("error", reject);
    child.on("close", (status) =>
      resolve({ status, stdout: Buffer.concat(stdout), stderr: Buffer.concat(stderr).toString("utf8") }),
    );
    options.onStart?.(child);
  });
}

/** One process for all commands of a test file that nothing happens to while they run. Two commands at once are two processes. */
class WarmProgram {
  isBusy = false;
  #process: ChildProcess | null = null;

  async run(order: WarmOrder): Promise<Run> {
    this.isBusy = true;
    try {
      const { status, stdout, stderr } = await this.#ask(order);
      return { status, stdout: Buffer.from(stdout), stderr: Buffer.from(stderr).toString("utf8") };
    } finally {
      this.isBusy = false;
    }
  }

  async end(): Promise<void> {
    if (this.#process === null) return;
    const ended = once(this.#process, "exit");
    this.#process.disconnect();
    this.#process = null;
    await ended;
  }

  async #ask(order: WarmOrder): Promise<WarmResult> {
    const child = (this.#process ??= fork(new URL("./warm-program.ts", import.meta.url), {
      execArgv: [],
      serialization: "advanced",
      stdio: ["ignore", "inherit", "inherit", "ipc"],
      env: { NODE_COMPILE_CACHE: COMPILE_CACHE },
    }));
    const stop = new AbortController();
    const died = once(child, "exit", { signal: stop.signal }).then(() => {
      throw new Error(`the process ended while it ran lcm ${order.args.join(" ")}`);
    });
    const answered = once(child, "message", { signal: stop.signal });
    child.send(order);
    try {
      return ((await Promise.race([answered, died])) as [WarmResult])[0];
    } finally {
      stop.abort();
      await Promise.allSettled([answered, died]);
    }
  }
}

const warm = new WarmProgram();

/** What a test file asks of its archive: a run as it comes, or one that must succeed in silence, as text or as an envelope. */
export function commandsFor(
  run: ReturnType<typeof createRunner>,
  database: string,
): {
  readonly lcm: (...args: string[]) => Promise<Run>;
  readonly text: (...args: string[]) => Promise<string>;
  readonly json: (...args: string[]) => Promise<Envelope>;
} {
  const lcm = (...args: string[]): Promise<Run> => run([...args, "--db", database]);
  const succeed = async (...args: string[]): Promise<Run> => {
    const result = await lcm(...args);
    expect(result.stderr).toBe("");
    expect(result.status).toBe(0);
    return result;
  };
  return {
    lcm,
    text: async (...args) => (await succeed(...args)).stdout.toString("utf8"),
    json: async (...args) => parseEnvelope(await succeed(...args, "--json")),
  };
}

export interface Envelope {
  readonly ok: boolean;
  readonly command: string;
  readonly data: Record<string, unknown> & { readonly items: readonly Record<string, unknown>[] };
  readonly pagination?: { readonly next: string | null; readonly limit: number; readonly total?: number };
  readonly meta: { readonly version: string; readonly durationMs: number; readonly database?: string };
}

export function parseEnvelope(run: Run): Envelope {
  return JSON.parse(run.stdout.toString("utf8")) as Envelope;
}

export function parseError(run: Run): {
  readonly code: string;
  readonly message: string;
  readonly hint?: string;
} {
  const parsed = JSON.parse(run.stderr) as {
    ok: boolean;
    error: { code: string; message: string; hint?: string };
  };
  if (parsed.ok) throw new Error("not an error");
  return parsed.error;
}

/** The first lines of the sample, as bytes, each with its line feed. */
export function readSampleLines(count: number): string {
  return `${readFileSync(SAMPLE, "utf8").split("\n").slice(0, count).join("\n")}\n`;
}

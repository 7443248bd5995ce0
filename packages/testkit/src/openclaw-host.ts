/**
 * A real OpenClaw for tests: found in a cache folder or installed there, given private state in a temporary folder, started, stopped, killed and
 * restarted on the same state. The host is a test subject of 650 MB and never a dependency of the project.
 *
 * Invariant: only processes started here are ended, by their process group, because the host starts itself a second time as a child.
 */

import { spawn, type ChildProcess } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { connectGateway, type GatewayClient } from "./gateway-client.ts";
import { findFreePort } from "./loopback.ts";
import { cachePath, installPackage, isCached } from "./tool-cache.ts";

export const OPENCLAW_VERSION = "2026.9.6";
const INSPECTOR = "@openclaw/plugin-inspector";
const INSPECTOR_VERSION = "0.3.20";

export interface InstalledHost {
  readonly version: string;
  readonly packageDir: string;
  readonly entryFile: string;
}

const GATEWAY_TOKEN = "local-test-token";
/** These end processes that hang. They are not limits on speed: the slowest machine stays far below them. */
const READY_DEADLINE_MS = 900_000;
const STOP_DEADLINE_MS = 300_000;
const COMMAND_DEADLINE_MS = 900_000;

export function hostCacheDir(version = OPENCLAW_VERSION): string {
  return cachePath(`openclaw-${version}`);
}

/** The cached host, or undefined when it has to be installed first. */
export async function findHost(version = OPENCLAW_VERSION): Promise<InstalledHost | undefined> {
  const cache = hostCacheDir(version);
  const packageDir = join(cache, "node_modules", "openclaw");
  if (!isCached(cache)) return undefined;
  const entryFile = join(packageDir, "openclaw.mjs");
  if (!existsSync(entryFile)) return undefined;
  const manifest = JSON.parse(await readFile(join(packageDir, "package.json"), "utf8")) as {
    version?: string;
  };
  return manifest.version === version ? { version, packageDir, entryFile } : undefined;
}

export async function ensureHost(
  say: (line: string) => void,
  version = OPENCLAW_VERSION,
): Promise<InstalledHost> {
  const found = await findHost(version);
  if (found !== undefined) return found;
  say(`installing openclaw@${version} into the cache (about 650 MB, once)`);
  await installPackage("openclaw", version, hostCacheDir(version));
  const installed = await findHost(version);
  if (installed === undefined)
    throw new Error(`cannot use openclaw@${version}: the installation is not complete`);
  return installed;
}

/** The public inspector of OpenClaw plugins: its entry file, from the cache or installed there. */
export async function ensurePluginInspector(say: (line: string) => void): Promise<string> {
  const target = cachePath(`plugin-inspector-${INSPECTOR_VERSION}`);
  const entryFile = join(target, "node_modules", ...INSPECTOR.split("/"), "src", "cli.js");
  if (!isCached(target)) {
    say(`installing ${INSPECTOR}@${INSPECTOR_VERSION} into the cache (once)`);
    await installPackage(INSPECTOR, INSPECTOR_VERSION, target);
  }
  return entryFile;
}

/** Private state of one host: survives restarts of the gateway and is removed by its owner. */
export interface HostState {
  readonly host: InstalledHost;
  readonly rootDir: string;
  readonly stateDir: string;
  readonly port: number;
  readonly env: Readonly<Record<string, string>>;
}

export interface HostStateOptions {
  readonly host: InstalledHost;
  /** An existing empty folder; everything the host writes goes below it. */
  readonly rootDir: string;
  readonly modelUrl: string;
  /** Model window in tokens. */
  readonly contextTokens?: number;
  /** Further models of the fake provider: id and window. One with `vision` in its id accepts pictures. */
  readonly models?: Readonly<Record<string, number>>;
  /** The `plugins` part of the host's configuration. */
  readonly plugins: Record<string, unknown>;
  /** True: the host's tool search stays on, its default. */
  readonly toolSearch?: boolean;
  readonly env?: Record<string, string>;
}

export async function createHostState(options: HostStateOptions): Promise<HostState> {
  const { host, rootDir } = options;
  const stateDir = join(rootDir, "state");
  const home = join(rootDir, "home");
  await mkdir(join(stateDir, "ws"), { recursive: true });
  await mkdir(home, { recursive: true });
  const port = await findFreePort();
  const env = {
    PATH: process.env.PATH ?? "",
    HOME: home,
    TMPDIR: rootDir,
    OPENCLAW_STATE_DIR: stateDir,
    OPENCLAW_CONFIG_PATH: join(stateDir, "openclaw.json"),
    OPENCLAW_OFFLINE: "1",
    OPENCLAW_NO_AUTO_UPDATE: "1",
    OPENCLAW_DISABLE_BONJOUR: "1",
    OPENCLAW_SKIP_CHANNELS: "1",
    OPENCLAW_EXEC_SHELL_SNAPSHOT: "0",
    NO_COLOR: "1",
    ...options.env,
  };
  const state: HostState = { host, rootDir, stateDir, port, env };
  await writeHostConfig(state, options);
  return state;
}

/** Writes the host's configuration; a running gateway reloads the plugin part by itself. */
export async function writeHostConfig(
  state: HostState,
  options: Pick<HostStateOptions, "modelUrl" | "contextTokens" | "models" | "plugins" | "toolSearch">,
): Promise<void> {
  const windows = { "fake-1": options.contextTokens ?? 128_000, ...options.models };
  const models = Object.entries(windows).map(([id, contextWindow]) => ({
    id,
    name: id,
    reasoning: false,
    input: id.includes("vision") ? ["text", "image"] : ["text"],
    contextWindow,
    maxTokens: 1024,
    cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 },
  }));
  const config = {
    gateway: {
      mode: "local",
      port: state.port,
      bind: "loopback",
      auth: { mode: "token", token: GATEWAY_TOKEN },
    },
    // Without this the host writes into a folder shared by all users of the machine.
    logging: { file: join(state.rootDir, "gateway.log") },
    models: {
      mode: "merge",
      providers: {
        fake: { baseUrl: options.modelUrl, apiKey: "none", api: "openai-completions", models },
      },
    },
    // A heartbeat would add its own turns.
    agents: {
      defaults: {
        model: { primary: "fake/fake-1" },
        workspace: join(state.stateDir, "ws"),
        skipBootstrap: true,
        heartbeat: { every: "0m" },
      },
    },
    // Tool search would hide the host's own tools from the model's request.
    tools: { toolSearch: options.toolSearch ?? false },
    plugins: { enabled: true, ...options.plugins },
  };
  await writeFile(state.env.OPENCLAW_CONFIG_PATH!, JSON.stringify(config, null, 2));
}

export interface RunningGateway {
  readonly pid: number;
  /** Everything the gateway printed so far. */
  output(): string;
  connect(): Promise<GatewayClient>;
  /** Asks the gateway to end, and ends it if it does not. */
  stop(): Promise<void>;
  /** Kills the gateway at once, as in a crash. */
  kill(): Promise<void>;
}

export async function startGateway(
  state: HostState,
  deadlineMs = READY_DEADLINE_MS,
): Promise<RunningGateway> {
  const child = spawnGroup(process.execPath, [state.host.entryFile, "gateway", "run"], {
    cwd: state.rootDir,
    env: state.env,
  });
  const ended = new Promise<void>((resolve) => child.process.once("exit", () => resolve()));
  try {
    await child.waitForOutput(/\[gateway\] ready/, deadlineMs);
  } catch (error) {
    child.signal("SIGKILL");
    throw error;
  }
  return {
    pid: child.process.pid!,
    output: child.output,
    connect: () => connectGateway({ port: state.port, token: GATEWAY_TOKEN }),
    async stop() {
      child.signal("SIGTERM");
      const timer = setTimeout(() => child.signal("SIGKILL"), STOP_DEADLINE_MS);
      await ended;
      clearTimeout(timer);
      // A grandchild may outlive its parent for a moment; the group is ours, so all of it must end.
      child.signal("SIGKILL");
    },
    async kill() {
      child.signal("SIGKILL");
      await ended;
    },
  };
}

/** Runs a Node program to its end, and kills it when it takes too long. */
export function runNodeProgram(
  args: readonly string[],
  options: { readonly cwd: string; readonly deadlineMs: number },
): Promise<{ code: number; output: string }> {
  return runProcess(process.execPath, args, options);
}

/** Runs one command of the host's CLI on this state and returns its output. */
export function runHostCommand(
  state: HostState,
  args: readonly string[],
  deadlineMs = COMMAND_DEADLINE_MS,
): Promise<{ code: number; output: string }> {
  return runProcess(process.execPath, [state.host.entryFile, ...args], {
    cwd: state.rootDir,
    env: state.env,
    deadlineMs,
  });
}

interface ProcessGroup {
  readonly process: ChildProcess;
  output(): string;
  signal(name: "SIGTERM" | "SIGKILL"): void;
  waitForOutput(pattern: RegExp, deadlineMs: number): Promise<void>;
}

const liveGroups = new Set<ProcessGroup>();

/** Last resort of a test run that ends early: kills every process started here that is still running. */
export function killStartedProcesses(): void {
  for (const group of liveGroups) group.signal("SIGKILL");
}

function spawnGroup(
  command: string,
  args: readonly string[],
  options: { cwd: string; env?: Readonly<Record<string, string>> },
): ProcessGroup {
  const child = spawn(command, args, {
    ...options,
    env: options.env ?? process.env,
    stdio: ["ignore", "pipe", "pipe"],
    detached: true,
  });
  let text = "";
  const collect = (chunk: Buffer): void => {
    text += chunk.toString("utf8");
  };
  child.stdout.on("data", collect);
  child.stderr.on("data", collect);
  const group: ProcessGroup = {
    process: child,
    output: () => text,
    signal(name) {
      if (child.pid === undefined) return;
      try {
        process.kill(-child.pid, name);
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
      }
    },
    waitForOutput: (pattern, deadlineMs) => waitForOutput(child, () => text, pattern, deadlineMs),
  };
  liveGroups.add(group);
  child.once("exit", () => liveGroups.delete(group));
  child.once("error", () => liveGroups.delete(group));
  return group;
}

function waitForOutput(
  child: ChildProcess,
  output: () => string,
  pattern: RegExp,
  deadlineMs: number,
): Promise<void> {
  return new Promise((resolve, reject) => {
    const finish = (error?: Error): void => {
      clearTimeout(timer);
      child.stdout!.off("data", look);
      child.stderr!.off("data", look);
      child.off("exit", fail);
      if (error === undefined) resolve();
      else reject(error);
    };
    const look = (): void => {
      if (pattern.test(output())) finish();
    };
    const fail = (): void =>
      finish(new Error(`the process ended before it printed ${pattern}:\n${output().slice(-3000)}`));
    const timer = setTimeout(
      () =>
        finish(
          new Error(
            `the process did not print ${pattern} within ${deadlineMs} ms:\n${output().slice(-3000)}`,
          ),
        ),
      deadlineMs,
    );
    child.stdout!.on("data", look);
    child.stderr!.on("data", look);
    child.once("exit", fail);
    look();
  });
}

interface ProcessOptions {
  readonly cwd: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly deadlineMs: number;
}

function runProcess(
  command: string,
  args: readonly string[],
  options: ProcessOptions,
): Promise<{ code: number; output: string }> {
  return new Promise((resolve, reject) => {
    const group = spawnGroup(command, args, options);
    const timer = setTimeout(() => {
      group.signal("SIGKILL");
      reject(
        new Error(
          `${command} ${args.join(" ")} did not end within ${options.deadlineMs} ms:\n${group.output().slice(-3000)}`,
        ),
      );
    }, options.deadlineMs);
    group.process.once("error", (error) => {
      clearTimeout(timer);
      reject(error);
    });
    group.process.once("close", (code) => {
      clearTimeout(timer);
      resolve({ code: code ?? -1, output: group.output() });
    });
  });
}

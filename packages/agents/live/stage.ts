/** One agent with its own home, the archive beside it, and the watcher: the environment of the live test's scenes. */
import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { setTimeout } from "node:timers/promises";
import { findBundleFolder, listLocations } from "../src/index.ts";
import { renderClaudePlugin } from "../src/setup/claude-plugin.ts";
import type { Invocation, LiveAgent, Place } from "./agents.ts";

const LCM = join(import.meta.dirname, "../../cli/bin/lcm.js");
/** Ends a hanging call; the slowest agent takes a minute and a half for a turn on a busy machine. */
const DEADLINE_MS = 300_000;

interface Ended {
  readonly status: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export class LiveStage {
  readonly place: Place;
  readonly #agent: LiveAgent;
  readonly #database: string;
  readonly #touched: string[] = [];
  #session: string | null = null;
  #watcher: ChildProcess | null = null;

  constructor(agent: LiveAgent, place: Place) {
    this.#agent = agent;
    this.place = place;
    this.#database = join(place.home, "state", "lcm.db");
  }

  /** The environment of the agent and of lcm: from the caller's only the path. */
  get #env(): Record<string, string> {
    const { home } = this.place;
    return {
      PATH: process.env["PATH"] ?? "",
      HOME: home,
      OPENCLAW_STATE_DIR: join(home, "state"),
      TZ: "UTC",
      NO_COLOR: "1",
      ...this.#agent.env(this.place),
    };
  }

  async lcm(...args: readonly string[]): Promise<string> {
    const { status, stdout, stderr } = await this.#run({ program: process.execPath, args: [LCM, ...args] });
    if (status !== 0) throw new Error(`lcm ${args.join(" ")} ended with ${status}\n${stderr}`);
    return stdout;
  }

  /** The files that it changed. */
  async setUp(): Promise<string[]> {
    const { data } = JSON.parse(await this.lcm("--json", "setup", this.#agent.name, "--apply")) as {
      data: { agents: { files: { path: string; changed: boolean }[] }[] };
    };
    const changed = data.agents.flatMap(({ files }) => files.filter((file) => file.changed));
    const paths = changed.map(({ path }) => path);
    this.#touched.push(...paths);
    return paths;
  }

  async remove(): Promise<void> {
    await this.lcm("setup", this.#agent.name, "--remove", "--apply");
  }

  async watch(): Promise<void> {
    const watcher = spawn(process.execPath, [LCM, "watch"], {
      cwd: this.place.project,
      env: this.#env,
      stdio: ["ignore", "ignore", "pipe"],
    });
    this.#watcher = watcher;
    await Promise.race([once(watcher.stderr, "data"), once(watcher, "exit")]);
  }

  /** The watcher looks for newly installed agents every half a minute. */
  async waitForStored(words: string): Promise<void> {
    for (const end = Date.now() + DEADLINE_MS; ; await setTimeout(500)) {
      const found = await this.lcm("search", words).catch(() => "");
      if (/^msg_/mu.test(found)) return;
      if (Date.now() > end) throw new Error(`the watcher did not store ${words}`);
    }
  }

  async stopWatching(): Promise<void> {
    const watcher = this.#watcher;
    this.#watcher = null;
    if (watcher === null || watcher.exitCode !== null) return;
    const ended = once(watcher, "exit");
    watcher.kill("SIGTERM");
    await ended;
  }

  async turn(prompt: string): Promise<void> {
    const ended = await this.#runAgent(this.#agent.turn(this.place, prompt, this.#session));
    this.#session ??= this.#agent.findSession(ended.stdout);
    if (this.#session === null) throw new Error(`no session id in:\n${ended.stdout.slice(-4000)}`);
  }

  async compact(): Promise<void> {
    const command = this.#agent.compact(this.place, this.#session ?? "");
    if (command === null) await this.turn(this.#agent.fill);
    else await this.#runAgent(command);
  }

  async #runAgent(command: Invocation): Promise<Ended> {
    const ended = await this.#run(command);
    if (ended.status === 0) return ended;
    throw new Error(
      `${this.#agent.name} ${command.args.join(" ")} ended with ${ended.status}\n${ended.stdout.slice(-3000)}\n${ended.stderr.slice(-3000)}`,
    );
  }

  /** A process group of its own, so that child processes of a hanging agent end with it. */
  async #run({ program, args }: Invocation): Promise<Ended> {
    const child = spawn(program, args, {
      cwd: this.place.project,
      env: this.#env,
      stdio: ["ignore", "pipe", "pipe"],
      detached: true,
    });
    const timer = globalThis.setTimeout(() => process.kill(-(child.pid ?? 0), "SIGKILL"), DEADLINE_MS);
    const output = { stdout: "", stderr: "" };
    child.stdout.on("data", (chunk: Buffer) => (output.stdout += chunk.toString("utf8")));
    child.stderr.on("data", (chunk: Buffer) => (output.stderr += chunk.toString("utf8")));
    const [status] = (await once(child, "close")) as [number | null];
    clearTimeout(timer);
    return { status, ...output };
  }

  bundles(): string[] {
    const folder = findBundleFolder(this.#database);
    return existsSync(folder) ? readdirSync(folder).filter((name) => name.endsWith(".json")) : [];
  }

  async waitFor(isDone: () => boolean, what: string): Promise<void> {
    for (const end = Date.now() + DEADLINE_MS / 5; !isDone(); await setTimeout(100))
      if (Date.now() > end) throw new Error(`${what} did not come`);
  }

  /** The number of bundles in a request. Instructions to the summariser are marked differently, and Claude Code repeats them. */
  countBundles(body: string): number {
    return body.split("<lcm-restart as-of=").length - 1;
  }

  /** Lets Claude Code validate our plugin and its marketplace. */
  async validatePlugin(): Promise<void> {
    const folder = join(this.place.home, "package");
    for (const [name, text] of Object.entries(renderClaudePlugin("0.0.1"))) {
      mkdirSync(dirname(join(folder, name)), { recursive: true });
      writeFileSync(join(folder, name), text);
    }
    const { program } = this.#agent.turn(this.place, "", null);
    for (const path of [folder, join(folder, "claude-plugin")])
      await this.#runAgent({ program, args: ["plugin", "validate", path] });
  }

  /** The content of every file below the home. */
  snapshot(): ReadonlyMap<string, string> {
    return new Map(listFiles(this.place.home).map((path) => [path, readFileSync(path, "latin1")]));
  }

  /** Each file that setup wrote has its old content; one that the agent itself has changed meanwhile has no entry of ours. */
  compareConfiguration(before: ReadonlyMap<string, string>): void {
    const after = this.snapshot();
    for (const path of this.#touched) {
      const text = after.get(path);
      if (text === before.get(path)) continue;
      const name = relative(this.place.home, path);
      if (text === undefined || /"lossless"|lcm\.js|lossless-recall|\.capture/u.test(text))
        throw new Error(`${name} is not as before:\n${text}`);
      console.log(`      ${name}: written by the agent too, and free of our entries`);
    }
  }

  async compareTranscripts(): Promise<void> {
    await this.lcm("watch", "--once");
    const stored = await this.#readStored();
    const written = this.#readWritten();
    if (written.size === 0) throw new Error("the agent wrote no transcript");
    const wrong: string[] = [];
    for (const [line, times] of written)
      if (stored.get(line) !== times)
        wrong.push(`${stored.get(line) ?? 0} of ${times}: ${line.slice(0, 300)}`);
    if (wrong.length > 0)
      throw new Error(`${wrong.length} of ${written.size} lines:\n${wrong.slice(0, 5).join("\n")}`);
    await this.lcm("verify");
    console.log(`      ${written.size} lines, ${[...stored.values()].reduce((a, b) => a + b, 0)} stored`);
  }

  async #readStored(): Promise<Map<string, number>> {
    const { data } = JSON.parse(await this.lcm("--json", "conversations", "list")) as {
      data: { items: { id: number }[] };
    };
    const lines: string[] = [];
    for (const { id } of data.items) {
      const raw = await this.lcm("messages", "list", "--raw", "--conversation", String(id));
      lines.push(...raw.split("\n").filter((line) => line !== ""));
    }
    return countEach(this.#agent.name === "opencode" ? lines.map(readId) : lines);
  }

  #readWritten(): Map<string, number> {
    const place = listLocations(this.#env, this.place.home).find(({ agent }) => agent === this.#agent.stored);
    if (place === undefined) throw new Error("the watcher does not know this agent");
    const files = listFiles(place.root).filter((path) => place.isTranscript(path.split("/").at(-1) ?? ""));
    if (this.#agent.name === "opencode") return countEach(readOpencodeIds(join(place.root, "opencode.db")));
    return countEach(
      files.flatMap((path) =>
        readFileSync(path, "utf8")
          .split("\n")
          .filter((line) => line !== ""),
      ),
    );
  }
}

function readOpencodeIds(path: string): string[] {
  using database = new DatabaseSync(path, { readOnly: true });
  return database
    .prepare("select id from message")
    .all()
    .map(({ id }) => String(id));
}

const readId = (line: string): string => /"id":"(msg_[^"]+)"/u.exec(line)?.[1] ?? line;

function countEach(lines: readonly string[]): Map<string, number> {
  const counts = new Map<string, number>();
  for (const line of lines) counts.set(line, (counts.get(line) ?? 0) + 1);
  return counts;
}

function listFiles(folder: string): string[] {
  if (!existsSync(folder)) return [];
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .filter((path) => statSync(path).size < 50_000_000);
}

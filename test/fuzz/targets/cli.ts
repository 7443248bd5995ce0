/** Command lines, one word per line. Each ends in a result or in one of our errors; with `--json` the output is one JSON object. */
import { SAMPLE } from "@lossless/testkit/sample.ts";
import { cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { registerHooks } from "node:module";
import { join } from "node:path";
import { accept, hold } from "../target.ts";
import type { Target } from "../target.ts";

/** These run until ended, or need a terminal. */
const SERVICES = /^(?:tui|web|mcp|watch|worker|demo)$/;
/** Excludes everything outside the folder of the run. */
const OUTSIDE = /(?:^|=|-d)\s*[/~]|(?:\.\.\/){2}|postgres|file:|\0/;
const FEW_LINES = 10;
const PATHS = process.env["PATH"];

export const cliTarget: Target = {
  name: "cli",
  words: [
    "--json",
    "-j",
    "--db",
    "archive.db",
    "--owner",
    "import",
    "session.jsonl",
    "search",
    "show",
    "expand",
    "ask",
    "messages\nlist",
    "conversations\nlist",
    "summaries\nlist",
    "compact",
    "--budget",
    "8k",
    "assemble",
    "verify",
    "status",
    "stats",
    "export",
    "--out",
    "out.lcmx",
    "--format",
    "config\nset",
    "config\nget",
    "freshTailCount",
    "forget",
    "--message",
    "msg_1",
    "--apply",
    "backup",
    "restore",
    "--regex",
    "--limit",
    "--after",
    "--since",
    "2026-01-01",
    "--conversation",
    "1",
    "--help",
    "doctor",
    "reindex",
    "rotate",
    "support",
    "spend",
    "prompts",
    "completion",
    "bash",
    "--",
    "--=",
    "-",
    "\n",
    "\n--",
    "sum_0123456789abcdef",
  ],
  open: async (folder) => {
    const program = await loadProgram();
    const sound = join(folder, "sound");
    const work = join(folder, "a/b/c/work");
    const before = { folder: process.cwd(), env: { ...process.env } };
    mkdirSync(sound);
    const lines = readFileSync(SAMPLE, "utf8").split("\n").slice(0, FEW_LINES);
    writeFileSync(join(sound, "session.jsonl"), `${lines.join("\n")}\n`);
    enter(sound);
    await runQuietly(program, ["import", "session.jsonl", "--db", "archive.db"]);
    return {
      run: async (input) => {
        const args = input.toString("utf8").split("\n");
        if (args.at(-1) === "") args.pop();
        if (args.some((word) => SERVICES.test(word) || OUTSIDE.test(word))) return;
        rmSync(work, { recursive: true, force: true });
        cpSync(sound, work, { recursive: true });
        enter(work);
        const { stdout } = await runQuietly(program, args);
        const isJson = args
          .slice(0, args.includes("--") ? args.indexOf("--") : args.length)
          .includes("--json");
        if (isJson && stdout !== "" && !/help|completion|version|-V|-h/.test(args.join(" ")))
          JSON.parse(stdout);
      },
      close: async () => {
        process.chdir(before.folder);
        setEnvironment(before.env);
        process.exitCode = 0;
      },
    };
  },
};

type Program = typeof import("../../../packages/cli/src/program.ts");

/** Engines run in this thread: two more threads per command line would be most of the work. */
async function loadProgram(): Promise<Program> {
  const [invocation, threadless] = ["src/invocation.ts", "test/threadless-engine.ts"].map(
    (file) => new URL(`../../../packages/cli/${file}`, import.meta.url).href,
  );
  registerHooks({
    resolve: (name, context, next) =>
      next(
        name === "lossless-claw" && context.parentURL === invocation ? (threadless ?? name) : name,
        context,
      ),
  });
  return import("../../../packages/cli/src/program.ts");
}

function enter(folder: string): void {
  process.chdir(folder);
  setEnvironment({ PATH: PATHS, HOME: folder, OPENCLAW_STATE_DIR: join(folder, "state"), TZ: "UTC" });
}

function setEnvironment(env: Readonly<Record<string, string | undefined>>): void {
  for (const name of Object.keys(process.env)) delete process.env[name];
  Object.assign(process.env, env);
}

async function runQuietly(
  { buildProgram, isHelpShown }: Program,
  args: readonly string[],
): Promise<{ stdout: string }> {
  let stdout = "";
  const real = { out: process.stdout.write, err: process.stderr.write };
  const take = (chunk: Uint8Array | string, ...rest: unknown[]): true => {
    stdout += chunk.toString();
    const done = rest.findLast((each) => typeof each === "function");
    if (done) process.nextTick(done as () => void);
    return true;
  };
  process.stdout.write = take as typeof process.stdout.write;
  process.stderr.write = ((chunk: Uint8Array | string, ...rest: unknown[]) => {
    const printed = stdout;
    take(chunk, ...rest);
    stdout = printed;
    return true;
  }) as typeof process.stderr.write;
  try {
    await accept(async () => {
      try {
        await buildProgram().parseAsync(args, { from: "user" });
      } catch (error) {
        if (!isHelpShown(error)) throw error;
      }
    });
  } finally {
    process.stdout.write = real.out;
    process.stderr.write = real.err;
  }
  hold(!/^\s+at .+:\d+:\d+/m.test(stdout), "a trace of calls is printed", stdout);
  return { stdout };
}

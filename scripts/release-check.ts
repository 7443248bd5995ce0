/**
 * `npm run release:check`: checks the package as users get it. Builds and packs it, checks it with third-party tools, installs it with plain npm
 * from its own registry (in a program's folder and globally), and uses it from there: the command, PostgreSQL, the terminal UI, the web
 * inspector, the MCP server and the library. The plugin in the real host is a scene of `npm run test:hosts`.
 *
 * Everything is written below one temporary folder. Nothing is fetched, except a Node that is too old, once, into the cache.
 */
import assert from "node:assert/strict";
import { spawn, spawnSync, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { HANG_LIMIT_MS } from "@lossless/testkit/hang-limit.ts";
import { packPackage, startRegistry } from "@lossless/testkit/package-registry.ts";
import { findPostgres, startPostgres } from "@lossless/testkit/postgres-server.ts";
import { SAMPLE } from "@lossless/testkit/sample.ts";
import { listBlocks, listPromises, ROOT } from "../test/source-files.ts";
import { ensureOldNode } from "./package/old-node.ts";

const BUILT = join(ROOT, "dist", "lossless-claw");
const folder = mkdtempSync(join(tmpdir(), "lossless-release-"));
const inside = (...names: string[]): string => join(folder, ...names);
/** A user's shell: of the clone it has only Node. */
const programs = (process.env["PATH"] ?? "").split(delimiter).filter((path) => !path.startsWith(ROOT));
const ENV = {
  PATH: [inside("global", "bin"), dirname(process.execPath), ...programs].join(delimiter),
  HOME: inside("home"),
  TZ: "UTC",
  NO_COLOR: "1",
  LANG: "C.UTF-8",
};
const started: ChildProcess[] = [];

/** Errors are of one class, whichever entry point a program uses. */
const WAYS_IN = `
import { EngineError, openStore } from "lossless-claw";
import { detectHistory, importHistory } from "lossless-claw/interchange";
import { parseAddress } from "lossless-claw/ports";
import { createBackup, previewForget } from "lossless-claw/repair";
import { settingsJsonSchema } from "lossless-claw/settings";

for (const way of [openStore, detectHistory, importHistory, createBackup, previewForget, settingsJsonSchema])
  if (typeof way !== "function") throw new Error("a way in is missing");
try {
  parseAddress("ftp://nowhere/lcm.db");
} catch (error) {
  if (!(error instanceof EngineError)) throw error;
}
`;

try {
  mkdirSync(inside("home"));
  run(process.execPath, [join(ROOT, "scripts", "build.ts")]);
  const archive = packPackage(BUILT, folder);
  step("packs what is needed and nothing else", () => checkContents(archive));
  step("passes publint", () => runTool("publint", ["run", BUILT, "--strict"]));
  step("passes attw", () => runTool("@arethetypeswrong/cli", [archive, "--profile", "esm-only"]));
  const registry = await startRegistry(BUILT, archive);
  try {
    // The registry runs in this process, so npm must not block it.
    await installFrom(registry.url);
  } finally {
    await registry.close();
  }
  step("is a library for JavaScript and TypeScript", checkLibrary);
  step("imports, searches, gives back and proves", checkCommand);
  await stepAsync("stores in PostgreSQL", checkPostgres);
  await stepAsync("serves the web inspector", checkWeb);
  await stepAsync("answers as an MCP server", checkMcp);
  await stepAsync("shows the terminal UI", checkTui);
  await stepAsync("says which Node it needs", checkOldNode);
} finally {
  for (const child of started) child.kill("SIGKILL");
  rmSync(folder, { recursive: true, force: true });
}

function step(name: string, work: () => void): void {
  work();
  console.log(`ok    ${name}`);
}

async function stepAsync(name: string, work: () => Promise<string | void>): Promise<void> {
  const note = await work();
  console.log(`ok    ${name}${note === undefined ? "" : ` (${note})`}`);
}

function checkContents(archive: string): void {
  const { stdout } = run("tar", ["-tzf", archive]);
  const names = stdout.trim().split("\n");
  for (const name of [
    "README.md",
    "LICENSE",
    "THIRD-PARTY-LICENSES.md",
    "openclaw.plugin.json",
    "package.json",
  ])
    assert.ok(names.includes(`package/${name}`), `${name} is missing`);
  const sources = names.filter((name) => name.endsWith(".ts") && !name.endsWith(".d.ts"));
  assert.deepEqual(sources, [], "sources do not belong into the package");
  const manifest = JSON.parse(readFileSync(join(BUILT, "package.json"), "utf8")) as Record<string, unknown>;
  assert.equal(manifest["dependencies"], undefined, "everything is bundled");
  const notices = readFileSync(join(BUILT, "THIRD-PARTY-LICENSES.md"), "utf8");
  assert.doesNotMatch(notices, /GPL|UNLICENSED|undefined/, "a license that does not go with MIT");
  console.log(`      ${names.length} files, ${Math.round(statSync(archive).size / 1024)} kB packed`);
}

function runTool(name: string, args: readonly string[]): void {
  const home = join(ROOT, "node_modules", name);
  const { bin } = JSON.parse(readFileSync(join(home, "package.json"), "utf8")) as {
    bin: string | Record<string, string>;
  };
  const program = typeof bin === "string" ? bin : Object.values(bin)[0]!;
  run(process.execPath, [join(home, program), ...args]);
}

async function installFrom(url: string): Promise<void> {
  mkdirSync(inside("empty"));
  mkdirSync(inside("app"));
  writeFileSync(inside("app", "package.json"), JSON.stringify({ private: true, type: "module" }));
  const plain = ["--registry", url, "--cache", inside("cache"), "--no-audit", "--no-fund"];
  const ways = {
    "is installed in the folder of a program": ["install", "--prefix", inside("app"), "lossless-claw"],
    "runs with npx, without being installed": ["exec", "--yes", "--", "lossless-claw", "--version"],
    "is installed globally": ["install", "--global", "--prefix", inside("global"), "lossless-claw"],
  };
  for (const [name, words] of Object.entries(ways)) {
    await stepAsync(name, async () => {
      const npm = start("npm", [...plain, ...words], inside("empty"));
      const [status] = (await once(npm, "close")) as [number];
      assert.equal(status, 0, `npm ${words.join(" ")} ended with ${status}`);
    });
  }
}

function checkLibrary(): void {
  const app = inside("app");
  // TypeScript programs have these types.
  for (const name of ["@types/node", "undici-types"])
    cpSync(join(ROOT, "node_modules", name), join(app, "node_modules", name), { recursive: true });
  const program = listBlocks("docs/library.md", "ts runnable").join("\n");
  writeFileSync(join(app, "example.ts"), program);
  writeFileSync(join(app, "ways-in.ts"), WAYS_IN);
  const compilerOptions = {
    module: "nodenext",
    target: "es2024",
    strict: true,
    types: ["node"],
    outDir: "out",
  };
  writeFileSync(join(app, "tsconfig.json"), JSON.stringify({ compilerOptions }));
  run(process.execPath, [join(ROOT, "node_modules", "typescript", "bin", "tsc"), "-p", app], app);
  for (const file of ["example.ts", "out/example.js"]) {
    const home = inside(`library-${file.endsWith(".ts") ? "ts" : "js"}`);
    mkdirSync(home);
    const { stdout } = run(process.execPath, [join(app, file)], home);
    assert.deepEqual(stdout.trimEnd().split("\n"), listPromises(program), file);
  }
  run(process.execPath, [join(app, "out", "ways-in.js")], app);
}

function lcm(...args: string[]): string {
  return run("lcm", args, folder).stdout;
}

/** The error output of the command, with the place of the failure. */
function fail(...args: string[]): string {
  const env = { ...ENV, LCM_DEBUG: "1" };
  const { status, stderr } = spawnSync("lcm", args, { cwd: folder, env, encoding: "utf8" });
  assert.notEqual(status, 0, args.join(" "));
  return stderr;
}

function checkCommand(): void {
  lcm("import", SAMPLE, "--db", "tour.db");
  assert.match(lcm("search", "back-off cap carrier ban", "--limit", "1", "--db", "tour.db"), /^msg_93 /m);
  // Regular expressions run in their own thread.
  assert.match(lcm("search", "--regex", "cap of \\d+ s", "--limit", "1", "--db", "tour.db"), /^msg_\d+ /m);
  lcm("compact", "--budget", "32k", "--db", "tour.db");
  assert.equal(lcm("messages", "list", "--raw", "--db", "tour.db"), readFileSync(SAMPLE, "utf8"));
  lcm("watch", "--once", "--db", "watched.db");
  // Its driver is bundled too, so only the server is missing.
  assert.doesNotMatch(
    fail("verify", "--db", "postgres://127.0.0.1:1/none"),
    /internal error|Dynamic require|Cannot find module/,
  );
  assert.match(
    fail("verify", "--db", "none.db"),
    /at .*packages\/core\/src\/.*\.ts:\d+/,
    "source maps are missing",
  );
  assert.match(lcm("verify", "--db", "tour.db"), /^ok {2}1,276 messages.*everything is whole and unaltered/);
}

/** The driver is bundled, and loaded only for such an address. */
async function checkPostgres(): Promise<string | void> {
  const programs = await findPostgres();
  if (programs === null) return "not tried: there is no PostgreSQL";
  const server = await startPostgres(programs);
  try {
    const address = await server.createDatabase();
    lcm("import", SAMPLE, "--db", address);
    assert.match(lcm("verify", "--db", address), /^ok {2}1,276 messages/);
  } finally {
    await server.stop();
  }
}

async function checkWeb(): Promise<void> {
  const server = start("lcm", ["web", "--db", "tour.db", "--json"]);
  const { data } = JSON.parse(await readLine(server)) as { data: { url: string } };
  const page = await fetch(data.url);
  const cookie = page.headers.get("set-cookie")?.split(";")[0] ?? "";
  assert.match(await page.text(), /<div id="app">/);
  for (const path of ["/app.js", "/app.css", "/icon.svg"]) {
    const file = await fetch(new URL(path, data.url), { headers: { cookie } });
    assert.equal(file.status, 200, path);
  }
  await end(server);
}

async function checkMcp(): Promise<void> {
  const server = start("lcm", ["mcp", "--db", "tour.db"]);
  const clientInfo = { name: "release-check", version: "0" };
  const ask = async (id: number, method: string, params: unknown): Promise<string> => {
    server.stdin!.write(`${JSON.stringify({ jsonrpc: "2.0", id, method, params })}\n`);
    return readLine(server);
  };
  const hello = { protocolVersion: "2025-11-25", capabilities: {}, clientInfo };
  assert.match(await ask(1, "initialize", hello), /"name":"lossless"/);
  assert.match(await ask(2, "tools/list", {}), /"name":"lcm_grep"/);
  const call = { name: "lcm_grep", arguments: { pattern: "carrier ban" } };
  assert.match(await ask(3, "tools/call", call), /msg_\d+/);
  server.stdin!.end();
  await once(server, "exit");
}

async function checkTui(): Promise<string | void> {
  if (spawnSync("tmux", ["-V"]).status !== 0) return "not tried: tmux is missing";
  const tmux = (...args: string[]): string =>
    run("tmux", ["-S", inside("tmux"), "-f", "/dev/null", ...args], folder).stdout;
  tmux("new-session", "-d", "-s", "main", "-x", "100", "-y", "30", "sh");
  try {
    tmux("send-keys", "-t", "main", "lcm-tui --db tour.db; echo status $?", "Enter");
    const see = async (text: RegExp): Promise<void> => {
      const deadline = performance.now() + HANG_LIMIT_MS;
      while (!text.test(tmux("capture-pane", "-p", "-t", "main"))) {
        assert.ok(performance.now() < deadline, `the terminal does not show ${text}`);
        await setTimeout(50);
      }
    };
    await see(/lcm {2}Conversations[\s\S]*TITLE[\s\S]*Clawdia/);
    tmux("send-keys", "-t", "main", "Enter");
    await see(/following/);
    tmux("send-keys", "-t", "main", "q");
    await see(/^status 0/m);
  } finally {
    tmux("kill-server");
  }
}

async function checkOldNode(): Promise<string | void> {
  const node = await ensureOldNode();
  if (node === null) return "not tried: an older Node cannot be fetched";
  const { status, stderr } = spawnSync(node, [inside("global", "bin", "lcm"), "--version"], {
    encoding: "utf8",
    env: ENV,
  });
  assert.equal(status, 1);
  assert.match(stderr, /^lcm: cannot run on Node 22\.[\d.]+: it needs 24\.16 or newer/);
}

function run(program: string, args: readonly string[], cwd = folder): { stdout: string } {
  const { status, stdout, stderr, error } = spawnSync(program, args, {
    cwd,
    env: ENV,
    encoding: "utf8",
    maxBuffer: 2 ** 26,
    shell: process.platform === "win32",
  });
  if (error !== undefined) throw error;
  assert.equal(status, 0, `${program} ${args.join(" ")} ended with ${status}:\n${stdout}${stderr}`);
  return { stdout };
}

function start(program: string, args: readonly string[], cwd = folder): ChildProcess {
  const child = spawn(program, args, { cwd, env: ENV, stdio: ["pipe", "pipe", "inherit"] });
  started.push(child);
  return child;
}

async function readLine(child: ChildProcess): Promise<string> {
  let text = "";
  while (!text.includes("\n")) {
    const [chunk] = (await once(child.stdout!, "data")) as [Buffer];
    text += chunk.toString("utf8");
  }
  return text;
}

async function end(child: ChildProcess): Promise<void> {
  const ended = once(child, "exit");
  child.kill("SIGINT");
  assert.deepEqual(await ended, [0, null]);
}

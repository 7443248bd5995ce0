// Starts the program on a Node that can run it: the machine's own, or the one the project brings along when that is too old. Plain
// JavaScript that an old Node can read; shared by every command of the package.
import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import module from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const WANTED = [24, 16];

function isNewEnough(version) {
  const [major, minor] = version.split(".").map(Number);
  return major > WANTED[0] || (major === WANTED[0] && minor >= WANTED[1]);
}

/** The `node` of the nearest node_modules above this file. */
function findOwnNode() {
  const name = process.platform === "win32" ? "node.exe" : "node";
  for (let folder = new URL("./", import.meta.url); ;) {
    const candidate = fileURLToPath(new URL(`node_modules/node/bin/${name}`, folder));
    if (existsSync(candidate)) return candidate;
    const parent = new URL("../", folder);
    if (parent.href === folder.href) return null;
    folder = parent;
  }
}

function runWith(node, file) {
  const args = [fileURLToPath(file), ...process.argv.slice(2)];
  // The child gets Ctrl-C from the terminal itself; this process only waits for its answer.
  process.on("SIGINT", () => {});
  const run = spawnSync(node, args, { stdio: "inherit", env: { ...process.env, LCM_RESTARTED: "1" } });
  if (run.signal) process.kill(process.pid, run.signal);
  process.exitCode = run.status === null ? 1 : run.status;
}

/** `file` is the URL of the command that was called, `words` what stands before the words that were typed. */
export async function start(file, words) {
  const ownNode = isNewEnough(process.versions.node) || process.env.LCM_RESTARTED ? null : findOwnNode();
  if (isNewEnough(process.versions.node)) {
    // What was compiled once is read from Node's own cache: half the time to start, and 25 MB less, because nothing is compiled.
    // A thread finds the cache only where the environment names it.
    process.env.NODE_COMPILE_CACHE ??= join(tmpdir(), "node-compile-cache");
    module.enableCompileCache?.();
    // The published program is bundled; a bug report should name our sources.
    if (process.env.LCM_DEBUG) process.setSourceMapsEnabled(true);
    const { main } = await import("../src/main.ts");
    await main([...words, ...process.argv.slice(2)]);
  } else if (ownNode !== null) {
    runWith(ownNode, file);
  } else {
    process.stderr.write(
      `lcm: cannot run on Node ${process.versions.node}: it needs ${WANTED.join(".")} or newer (in a clone of the project, npm install brings one)\n`,
    );
    process.exitCode = 1;
  }
}

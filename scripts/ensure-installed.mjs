/**
 * Makes `npm start`, `npm test`, `npm run build` and the others work on a fresh clone: installs the dependencies when they are missing or differ
 * from the lock file. Plain JavaScript, because the machine's own Node runs it, and that may be an old one.
 *
 * node_modules itself shows whether an install is needed, so that a manual install counts and an interrupted one does not. Of several runs at
 * the same time one installs and the others wait for it.
 */
import { spawnSync } from "node:child_process";
import {
  existsSync,
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { ensureChromium } from "./ensure-chromium.mjs";

const root = join(dirname(fileURLToPath(import.meta.url)), "..");
const turnstile = join(root, ".cache", "install.pid");
const QUIET = ["--no-audit", "--no-fund", "--loglevel=error"];
const WAIT_SLICE_MS = 250;

if (!isInstalled()) {
  takeTurn();
  try {
    if (!isInstalled()) install();
  } finally {
    rmSync(turnstile, { force: true });
  }
}
// Only one suite needs a browser.
if (process.env.npm_lifecycle_event === "pretest:browser") ensureChromium();

/** npm writes node_modules/.package-lock.json last, with the installed packages. */
function isInstalled() {
  const wanted = readJson(join(root, "package-lock.json"));
  const present = readJson(join(root, "node_modules", ".package-lock.json"));
  if (wanted === null || present === null) return false;
  const fits = Object.entries(wanted.packages).every(
    ([path, entry]) =>
      !path.startsWith("node_modules/") ||
      entry.optional === true ||
      (entry.link === true
        ? isLink(path, entry.resolved)
        : present.packages[path]?.version === entry.version),
  );
  return fits && listCommands().every(hasCommand);
}

/** One of our own packages, under its current name. */
function isLink(path, folder) {
  const link = join(root, path);
  return existsSync(link) && realpathSync(link) === realpathSync(join(root, folder));
}

/** The Node we install, and the commands of our own packages. */
function listCommands() {
  const manifests = readdirSync(join(root, "packages")).map((name) =>
    readJson(join(root, "packages", name, "package.json")),
  );
  return ["node", ...manifests.flatMap((manifest) => Object.keys(manifest?.bin ?? {}))];
}

function hasCommand(name) {
  const path = join(root, "node_modules", ".bin", name);
  return existsSync(path) || existsSync(`${path}.cmd`);
}

function install() {
  process.stderr.write("Installing dependencies (once) …\n");
  // `npm ci` removes node_modules first, which is wrong while something runs from it; and it rejects a lock file that lacks packages of other
  // platforms, which `npm install` does not.
  const isFresh = !existsSync(join(root, "node_modules"));
  const first = isFresh ? runNpm(["ci", ...QUIET]) : null;
  if (first?.status === 0) return;
  const second = runNpm(["install", "--no-save", ...QUIET]);
  if (second.status === 0) return;
  process.stderr.write(String(second.stderr ?? second.error));
  process.stderr.write(
    "cannot install the dependencies: see the lines above, check the connection to the npm registry, then try again\n",
  );
  process.exitCode = second.status ?? 1;
}

function runNpm(args) {
  const options = { cwd: root, stdio: ["ignore", "ignore", "pipe"], maxBuffer: 2 ** 26 };
  // Inside `npm run`, npm provides its path; that also avoids Windows' npm.cmd, which needs a shell.
  const npm = process.env.npm_execpath;
  if (npm?.endsWith(".js"))
    return spawnSync(process.env.npm_node_execpath ?? process.execPath, [npm, ...args], options);
  return spawnSync("npm", args, { ...options, shell: process.platform === "win32" });
}

/** Returns when no other run is installing. */
function takeTurn() {
  mkdirSync(dirname(turnstile), { recursive: true });
  const ticket = `${turnstile}.${process.pid}`;
  writeFileSync(ticket, String(process.pid));
  try {
    waitForTurn(ticket);
  } finally {
    rmSync(ticket);
  }
}

function waitForTurn(ticket) {
  for (let hasSaid = false; ; hasSaid = true) {
    try {
      // Unlike writing a file, linking one is atomic: nobody sees it without its content.
      linkSync(ticket, turnstile);
      return;
    } catch (error) {
      if (error.code !== "EEXIST") throw error;
    }
    if (!isHeld()) rmSync(turnstile, { force: true });
    else if (!hasSaid) process.stderr.write("Waiting for another run that installs the dependencies …\n");
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, WAIT_SLICE_MS);
  }
}

/** False when the process that left the file is gone. */
function isHeld() {
  try {
    process.kill(Number(readFileSync(turnstile, "utf8")), 0);
    return true;
  } catch (error) {
    return error.code !== "ESRCH" && error.code !== "ENOENT";
  }
}

function readJson(path) {
  return existsSync(path) ? JSON.parse(readFileSync(path, "utf8")) : null;
}

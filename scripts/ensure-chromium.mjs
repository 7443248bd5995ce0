/**
 * Provides a browser for the tests of the web inspector: if there is none and it may install one (as root, with apt), it installs Debian's
 * chromium. Never fails: without a browser those tests are skipped, and a line says so. Plain JavaScript, like `ensure-installed.mjs`, which
 * runs it before `npm run test:browser`; `node scripts/ensure-chromium.mjs` runs it by itself.
 */
import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";

const PLACES = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];
const INSTALL_MS = 10 * 60_000;

export function ensureChromium() {
  if (isThere()) return;
  const problem = whyNot() ?? install();
  if (problem !== null && !isThere())
    say(
      `Browser tests are skipped: there is no chromium here, and ${problem}. LCM_CHROMIUM names one elsewhere.`,
    );
}

const isThere = () => [process.env.LCM_CHROMIUM, ...PLACES].some((path) => path && existsSync(path));

function whyNot() {
  if (process.platform !== "linux" || !existsSync("/usr/bin/apt-get"))
    return "there is no apt to install it with";
  return process.getuid?.() === 0 ? null : "only root may install it";
}

/** Null on success, else the reason. */
function install() {
  say("Installing chromium for the browser tests (once) …");
  for (const args of [
    ["update", "-qq"],
    ["install", "-y", "-qq", "--no-install-recommends", "chromium"],
  ]) {
    const { status, error } = spawnSync("apt-get", args, {
      stdio: "ignore",
      timeout: INSTALL_MS,
      env: { ...process.env, DEBIAN_FRONTEND: "noninteractive" },
    });
    // An old package list may still work.
    if (status !== 0 && args[0] === "install")
      return `apt-get ${args[0]} failed${error ? ` (${error.message})` : ""}`;
  }
  return null;
}

const say = (line) => process.stderr.write(`${line}\n`);

if (import.meta.filename === process.argv[1]) ensureChromium();

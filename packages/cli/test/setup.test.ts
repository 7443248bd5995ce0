import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { commandsFor, createRunner, makeFolder } from "./support.ts";

const folder = makeFolder();
const run = createRunner(folder.path);
const { lcm, text, json } = commandsFor(run, join(folder.path, "archive.db"));
afterAll(folder.remove);

test("shows what would change, changes it when told to, and takes it back", async () => {
  const path = join(folder.path, ".claude.json");
  const original = '{\n  "userID": "x",\n  "id": 12345678901234567890\n}\n';
  writeFileSync(path, original);
  expect(await text("setup")).toContain("claude-code: not found");
  const shown = await text("setup", "claude-code");
  expect(shown).toContain(`Would change ${path}`);
  expect(shown).toContain('+     "lossless": {');
  expect(shown).toContain("Run it again with --apply");
  expect(readFileSync(path, "utf8")).toBe(original);
  const applied = await json("setup", "claude-code", "--apply");
  expect(applied.data).toMatchObject({
    agents: [{ agent: "claude-code", applied: true, files: [{ path, changed: true }, {}, {}, {}, {}] }],
  });
  expect(await text("setup")).toContain("Run: lcm setup claude-code --apply");
  const config = JSON.parse(readFileSync(path, "utf8")) as { mcpServers: { lossless: { args: string[] } } };
  expect(config.mcpServers.lossless.args.slice(1)).toEqual(["mcp", "--db", join(folder.path, "archive.db")]);
  expect(await text("setup", "claude-code", "--apply")).toContain("needs no change");
  expect((await lcm("setup", "--remove", "--apply")).status).toBe(0);
  expect(readFileSync(path, "utf8")).toBe(original);
  expect(existsSync(join(folder.path, ".claude"))).toBe(false);
  expect(existsSync(join(folder.path, "archive.db"))).toBe(false);
  expect((await lcm("setup", "emacs")).status).toBe(2);
});

test("sets whose sessions are captured, and the built-in redaction", async () => {
  await text("config", "set", "redactPatterns", "hush-\\d+");
  const dry = await text("setup", "pi", "--capture-owner", "ann", "--redact");
  expect(dry).toContain("Would set captureOwner = ann\n");
  expect((await json("config", "get", "captureOwner")).data).toMatchObject({ value: "main" });
  expect((await json("config", "get", "redactPatterns")).data).toMatchObject({ value: ["hush-\\d+"] });
  const shown = await text("setup", "pi", "--apply", "--capture-owner", "ann", "--redact");
  expect(shown).toContain("captureOwner = ann");
  expect((await json("config", "get", "captureOwner")).data).toMatchObject({ value: "ann" });
  expect((await json("config", "get", "redactPatterns")).data).toMatchObject({
    value: ["hush-\\d+", "@keys", "@tokens", "@cards"],
  });
  for (const key of ["captureOwner", "redactPatterns"]) await text("config", "unset", key);
  await text("setup", "pi", "--remove", "--apply");
});

test("says what was never tried", async () => {
  for (const agent of ["cursor", "copilot"]) {
    expect(await text("setup", agent, "--apply")).toContain("never tried with the real program");
    await text("setup", agent, "--remove", "--apply");
  }
  expect(await text("setup", "codex", "--apply")).toContain("type /hooks, and trust");
  await text("setup", "codex", "--remove", "--apply");
});

test("names scripts instead of printing them, unless asked, and leaves no folder after the last agent", async () => {
  const before = readdirSync(folder.path, { recursive: true });
  const shown = await text("setup", "claude-code");
  expect(shown).toMatch(/Would create .*\.sh \(\d+ lines\)/);
  expect(shown).not.toContain("ritten by lcm setup");
  expect(await text("setup", "claude-code", "--full")).toContain("ritten by lcm setup");
  await text("setup", "claude-code", "codex", "gemini", "--apply");
  for (const agent of ["claude-code", "codex", "gemini"]) await text("setup", agent, "--remove", "--apply");
  expect(readdirSync(folder.path, { recursive: true })).toEqual(before);
});

test("a file that cannot be read keeps only its own agent", async () => {
  await text("setup", "codex", "gemini", "--apply");
  const broken = join(folder.path, ".gemini", "settings.json");
  const written = readFileSync(broken, "utf8");
  writeFileSync(broken, "{ broken");
  const removed = await lcm("setup", "--remove", "--apply");
  expect(removed.status).toBe(2);
  expect(removed.stdout.toString("utf8")).toContain("gemini: nothing was removed: cannot");
  expect(existsSync(join(folder.path, ".codex"))).toBe(false);
  expect(readFileSync(broken, "utf8")).toBe("{ broken");
  writeFileSync(broken, written);
  await text("setup", "gemini", "--remove", "--apply");
  expect(existsSync(broken)).toBe(false);
});

const SECRET = "sk-do-not-show";

test.each([
  ["claude-code", ".claude.json", `{"projects":{},"primaryApiKey":"${SECRET}"}`],
  [
    "claude-code",
    ".claude.json",
    `{"mcpServers":{"x":{"env":{"KEY":"${SECRET}"}}},"primaryApiKey":"${SECRET}"}`,
  ],
  ["claude-code", ".claude.json", `{\n  "primaryApiKey": "${SECRET}"\n}`],
  ["claude-code", ".claude/settings.json", `{"hooks":{},"env":{"API":"${SECRET}"},"x":1}`],
  [
    "claude-code",
    ".claude/settings.json",
    `{\n  "hooks": {\n    "Stop": []\n  },\n  "env": {"API":"${SECRET}"}\n}`,
  ],
  [
    "gemini",
    ".gemini/settings.json",
    `{"mcpServers":{},"x":"${SECRET}","hooks":{"SessionEnd":[]},"y":"${SECRET}"}`,
  ],
  ["codex", ".codex/config.toml", `[mcp_servers.x.env]\nKEY = "${SECRET}"\n`],
])("shows nothing of the rest of the file: %s, %s, %s", async (agent, name, original) => {
  const path = join(folder.path, name);
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, original);
  for (const way of [[], ["--apply"], ["--remove"], ["--remove", "--apply"]]) {
    const shown = await text("setup", agent, ...way);
    expect(shown).toContain("lossless");
    expect(shown).not.toContain(SECRET);
  }
  expect(readFileSync(path, "utf8")).toBe(original);
});

test.each(["claude-code", "codex"])("shows no password of an address: %s", async (agent) => {
  const server = ["--db", `postgres://ada:${SECRET}@localhost:1/archive`] as const;
  for (const way of [[], ["--apply"], ["--remove", "--apply"]]) {
    const { status, stdout, stderr } = await run([...server, "setup", agent, ...way]);
    const shown = stdout.toString("utf8") + stderr;
    expect(status).toBe(0);
    expect(shown).toContain("postgres://ada:***@localhost:1/archive");
    expect(shown).not.toContain(SECRET);
  }
});

test("a cut state of the watcher does not keep status from telling the rest", async () => {
  await text("watch", "--once");
  writeFileSync(join(folder.path, "archive.db.watch.json"), '{"pid":');
  expect(await text("status")).toContain("Database");
});

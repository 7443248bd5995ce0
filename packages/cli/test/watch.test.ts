import { spawnSync } from "node:child_process";
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { findBundleFolder, findHookScript, renderHookCommand, renderHookScript } from "@lossless/agents";
import { afterAll, expect, test } from "vitest";
import { commandsFor, createRunner, makeFolder } from "./support.ts";

const folder = makeFolder();
const run = createRunner(folder.path);
const { lcm, text, json } = commandsFor(run, join(folder.path, "archive.db"));
afterAll(folder.remove);

test("stores the sessions of agents once, for the owner of the settings, and status tells of each agent", async () => {
  const path = join(folder.path, ".claude/projects/-app/s1.jsonl");
  mkdirSync(dirname(path), { recursive: true });
  const row = {
    uuid: "a",
    parentUuid: null,
    isSidechain: false,
    sessionId: "s1",
    cwd: "/srv/app",
    type: "user",
  };
  writeFileSync(path, `${JSON.stringify({ ...row, message: { role: "user", content: "The heron." } })}\n`);
  const env = { LCM_CAPTURE_OWNER: "ada" };
  const watch = () => run(["watch", "--once", "--db", join(folder.path, "archive.db")], { env });
  const first = await watch();
  expect(first.stdout.toString()).toMatch(/^claude-code: 1 transcript, last event \d+ s ago, stored \d/u);
  expect(first.stderr).toContain("claude-code: 1 line stored");
  expect((await watch()).stderr).toBe("");
  expect((await json("conversations", "list")).data.items).toMatchObject([
    { owner: "ada", messages: 1, agent: "claude-code", project: "/srv/app" },
  ]);
  expect(await text("status")).toMatch(
    /Watcher +not running; lcm watch starts it\nAgents +claude-code: 1 transcript/u,
  );
  const { data } = await json("status");
  expect(data).toMatchObject({
    watcher: { isRunning: false, agents: [{ agent: "claude-code", waiting: 0 }, {}, {}, {}, {}, {}] },
  });
  expect((await lcm("watch", "--once", "--install")).status).toBe(2);
});

test("the next command stores what hooks told of while nobody watched, and status names silent hooks", async () => {
  const database = join(folder.path, "archive.db");
  const path = join(folder.path, "elsewhere/s2.jsonl");
  mkdirSync(dirname(path), { recursive: true });
  const row = {
    uuid: "b",
    parentUuid: null,
    isSidechain: false,
    sessionId: "s2",
    cwd: "/srv/app",
    type: "user",
  };
  writeFileSync(path, `${JSON.stringify({ ...row, message: { role: "user", content: "The egret." } })}\n`);
  for (const agent of ["claude-code", "codex"] as const) {
    const script = findHookScript(database, agent);
    mkdirSync(dirname(script), { recursive: true });
    writeFileSync(script, renderHookScript(database, agent));
  }
  const event = JSON.stringify({ session_id: "s2", transcript_path: path, cwd: "/srv/app" });
  const command = renderHookCommand(database, "claude-code", "Stop");
  expect(spawnSync("sh", ["-c", command], { input: event }).status).toBe(0);
  const found = await lcm("search", "egret");
  expect(found.stderr).toContain("stored 1 line of agents; no watcher runs");
  expect(found.stdout.toString()).toContain("egret");
  expect((await lcm("search", "egret")).stderr).toBe("");
  const shown = await text("status");
  expect(shown).toMatch(
    /claude-code: 1 transcript.*, last hook \d+ s ago, hooks that never fired: SessionStart, PreCompact, SessionEnd\n/u,
  );
  expect(shown).toContain("codex: hooks never fired (trust them in Codex with /hooks)");
  expect((await json("status")).data.hooks).toMatchObject([
    { agent: "claude-code", silent: ["SessionStart", "PreCompact", "SessionEnd"], waiting: 0, lost: 0 },
    { agent: "codex", lastAt: null },
  ]);
});

test("forgetting removes notes and bundles of the session, and names the transcript that it leaves", async () => {
  const database = join(folder.path, "archive.db");
  const path = join(folder.path, "elsewhere/s2.jsonl");
  const bundles = findBundleFolder(database);
  expect(readdirSync(bundles)).toEqual(["claude-code.s2.json"]);
  expect(readFileSync(join(bundles, "claude-code.s2.json"), "utf8")).toContain("egret");
  const before = readFileSync(path);
  const preview = await json("forget", "--pattern", "egret");
  const captureFiles = [join(bundles, "claude-code.s2.json")];
  expect(preview.data).toMatchObject({ captureFiles, transcripts: [path] });
  expect(readdirSync(bundles)).toHaveLength(1);
  const done = await lcm("forget", "--pattern", "egret", "--apply");
  expect(done.stdout.toString()).toContain(`they are not changed:\n      ${path}\n`);
  expect(readdirSync(bundles)).toEqual([]);
  expect(readFileSync(path)).toEqual(before);
  // What is forgotten comes back by no hook.
  const event = JSON.stringify({ session_id: "s2", transcript_path: path, cwd: "/srv/app" });
  spawnSync("sh", ["-c", renderHookCommand(database, "claude-code", "Stop")], { input: event });
  expect(await text("search", "egret")).not.toContain("The egret");
  expect(readdirSync(bundles)).toEqual([]);
});

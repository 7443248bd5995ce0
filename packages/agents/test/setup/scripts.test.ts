/** The scripts that setup and the plugin bring, run by a real `sh`: they say what is true, and never fail. */
import { spawnSync } from "node:child_process";
import { readdirSync, writeFileSync } from "node:fs";
import { basename, join, resolve } from "node:path";
import { nameLocally } from "@lossless/core/formats";
import { makeTemporaryDirectory } from "@lossless/testkit";
import { expect, onTestFinished, test, vi } from "vitest";
import { writeWatchState } from "../../src/index.ts";
import { renderClaudePlugin } from "../../src/setup/claude-plugin.ts";
import { renderStatusLine } from "../../src/setup/status-line.ts";

function runShell(script: string, args: readonly string[], env = {}, input = ""): string {
  const path = join(makeTemporaryDirectory(), "script.sh");
  writeFileSync(path, script);
  const { status, stdout } = spawnSync("sh", [path, ...args], {
    env: { PATH: process.env["PATH"], ...env },
    input,
    encoding: "utf8",
  });
  expect(status).toBe(0);
  return stdout;
}

const agent = {
  root: "/x",
  isPresent: true,
  transcripts: 1,
  lastEventAt: null,
  lagMs: null,
  waiting: 0,
  problem: null,
};

test("the status line says whether the watcher runs, and when it last stored something", () => {
  const database = join(makeTemporaryDirectory(), "it's an archive.db");
  const line = (): string => runShell(renderStatusLine(database), []);
  expect(line()).toBe("lcm: nothing stored yet; run lcm watch\n");
  const state = (pid: number, ...times: (number | null)[]): void =>
    writeWatchState(database, {
      pid,
      startedAt: Date.now(),
      hasEvents: true,
      agents: times.map((lastStoredAt, n) => ({ ...agent, agent: `a${n}`, lastStoredAt })),
    });
  state(process.pid, null);
  expect(line()).toBe("lcm: nothing stored yet\n");
  state(process.pid, Date.now() - 3 * 3_600_000, Date.now() - 600_000, null);
  expect(line()).toBe("lcm: stored 10 min ago\n");
  const { pid } = spawnSync("true");
  state(pid, Date.now() - 26 * 3_600_000);
  expect(line()).toBe("lcm: not watching, stored 26 h ago; run lcm watch\n");
  // It runs in any folder, wherever setup was run.
  expect(renderStatusLine("lcm.db")).toContain(`read -r state <${resolve("lcm.db.watch.json")}\n`);
  writeFileSync(`${database}.watch.json`, '{"pid":');
  expect(line()).toMatch(/^lcm: /u);
});

test("the plugin's hook finds the archive by the same variables as the program, also one on a server", () => {
  const files = renderClaudePlugin("1.2.3");
  const home = makeTemporaryDirectory();
  const hook = files["claude-plugin/hook.sh"] ?? "";
  const event = '{"session_id":"s-1","transcript_path":"/t","cwd":"/c","source":"startup"}';
  const spooled = (database: string): number => readdirSync(`${database}.capture/spool`).length;
  runShell(hook, ["SessionStart"], { HOME: home }, event);
  expect(spooled(join(home, ".openclaw/lcm.db"))).toBe(1);
  runShell(hook, ["Stop"], { HOME: home, OPENCLAW_STATE_DIR: join(home, "s") }, event);
  expect(spooled(join(home, "s/lcm.db"))).toBe(1);
  runShell(hook, ["Stop"], { HOME: home, LCM_DATABASE_PATH: join(home, "other.db") }, event);
  expect(spooled(join(home, "other.db"))).toBe(1);
  vi.stubEnv("OPENCLAW_STATE_DIR", join(home, "s"));
  onTestFinished(() => void vi.unstubAllEnvs());
  for (const address of [
    "postgres://lcm@db.example/archive",
    "postgresql://lcm:p%40ss@db.example:6432/archive?sslmode=verify-full",
    "postgres://lcm@/archive?pool=4&host=/run/postgres&port=5433",
    "postgres://db.example/other?statements=named",
  ]) {
    runShell(hook, ["Stop"], { HOME: home, LCM_DATABASE_PATH: address }, event);
    expect(spooled(join(home, ".openclaw", basename(nameLocally(address)))), address).toBe(1);
  }
  // Not taken for another one.
  const encoded = "postgres://lcm@/archive?host=%2Frun%2Fpostgres";
  runShell(hook, ["Stop"], { HOME: home, LCM_DATABASE_PATH: encoded }, event);
  expect(readdirSync(join(home, ".openclaw"))).toHaveLength(5);
  expect(runShell(hook, ["PreCompact"], { HOME: home }, event)).toContain("lcm_describe");
});

test("the files of the plugin name each other", () => {
  const files = renderClaudePlugin("1.2.3");
  const read = (path: string): Record<string, unknown> =>
    JSON.parse(files[path] ?? "") as Record<string, unknown>;
  expect(read(".claude-plugin/marketplace.json")).toMatchObject({ plugins: [{ source: "./claude-plugin" }] });
  expect(read("claude-plugin/.claude-plugin/plugin.json")).toMatchObject({ version: "1.2.3" });
  const { hooks } = read("claude-plugin/hooks/hooks.json") as { hooks: Record<string, unknown> };
  for (const event of Object.keys(hooks)) expect(files["claude-plugin/hook.sh"]).toContain(event);
});

/** The hook scripts, run by the shells of this machine as agents run them: what they spool, what they print, and that nothing makes them fail. */
import { spawnSync } from "node:child_process";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { makeTemporaryDirectory } from "@lossless/testkit";
import { expect, test } from "vitest";
import {
  findBundleFolder,
  findCaptureFolder,
  findHookScript,
  findSpoolFolder,
  HOOK_AGENTS,
  listHookEvents,
  renderHookCommand,
} from "../src/index.ts";
import { installHookScript } from "./install-hooks.ts";
import type { HookAgent } from "../src/index.ts";
import { SPOOL_EVENTS } from "../src/hooks/folder.ts";

/** The name of the folder is as bad as one can be. */
function install(agent: HookAgent = "claude-code"): string {
  const folder = join(makeTemporaryDirectory(), `it's a "$HOME"; exit 3`);
  mkdirSync(folder);
  const database = join(folder, "lcm.db");
  installHookScript(database, agent);
  return database;
}

interface Run {
  readonly event?: string;
  readonly agent?: HookAgent;
  readonly shell?: string;
  readonly input?: string;
}

/** What it printed, on both. Fails unless it ended with 0. */
function run(
  database: string,
  { event = "Stop", agent = "claude-code", shell = "sh", input = "{}" }: Run = {},
): string {
  const command = renderHookCommand(database, agent, event);
  const { status, stdout, stderr } = spawnSync(shell, ["-c", command], { input, encoding: "utf8" });
  expect([status, stderr]).toEqual([0, ""]);
  return stdout;
}

/** Those that are here. */
const SHELLS = ["sh", "dash", "bash"].filter((shell) => spawnSync(shell, ["-c", ":"]).status === 0);

const listSpool = (database: string): string[] => readdirSync(findSpoolFolder(database)).sort();
const readSpool = (database: string): string[] =>
  listSpool(database).map((name) => readFileSync(join(findSpoolFolder(database), name), "utf8"));

const START = { session_id: "0d1f-9", transcript_path: "/t.jsonl", cwd: "/app" };
const compacted = (more: object = {}): string =>
  JSON.stringify({ ...START, hook_event_name: "SessionStart", source: "compact", ...more });

const putBundle = (database: string, name: string, text: string): void =>
  writeFileSync(join(findBundleFolder(database), name), text);

const noted = (fields: object): object => ({
  session_id: "",
  sessionId: "",
  transcript_path: "",
  cwd: "",
  source: "",
  ...fields,
});

test.each(SHELLS)(
  "notes which session an event is about, and nothing that was said, privately (%s)",
  (shell) => {
    const database = install();
    const said = { prompt: 'a "cwd":"/wrong" $HOME \\ %s', last_assistant_message: "secret" };
    const events = [
      { ...START, ...said },
      { cwd: null, session_id: 'a"b', transcript_path: String.raw`C:\new ü`, source: 3 },
      { prompt: "only words" },
    ];
    for (const event of events) expect(run(database, { shell, input: JSON.stringify(event) })).toBe("");
    expect(run(database, { shell, input: "not JSON" })).toBe("");
    expect(
      readSpool(database)
        .map((text) => JSON.parse(text) as { cwd: string })
        .sort((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? 1 : -1)),
    ).toEqual([noted(START), noted({ transcript_path: String.raw`C:\new ü` }), noted({}), noted({})]);
    for (const name of listSpool(database)) {
      expect(name).toMatch(/^claude-code\.Stop\.\d+\.\d+\.json$/u);
      expect(statSync(join(findSpoolFolder(database), name)).mode & 0o777).toBe(0o600);
    }
  },
);

test("reads JSON that is spaced, and all of a large event", () => {
  const database = install();
  const input = `{ "session_id": "s1",\n "cwd": "/app", "prompt": "${"x".repeat(3_000_000)}" }`;
  expect(run(database, { input })).toBe("");
  expect(readSpool(database).map((text) => JSON.parse(text) as object)).toEqual([
    noted({ session_id: "s1", cwd: "/app" }),
  ]);
});

test("a full spool keeps what it has and the newest event of each kind, and counts", () => {
  const database = install();
  const folder = findSpoolFolder(database);
  for (let n = 0; n < SPOOL_EVENTS; n += 1) writeFileSync(join(folder, `codex.Stop.1.${n}.json`), "{}");
  for (const cwd of ["/1", "/2", "/3"]) run(database, { input: JSON.stringify({ cwd }) });
  const others = listSpool(database).filter((name) => !name.startsWith("codex"));
  expect(others).toEqual(["claude-code.Stop.newest.json", "claude-code.lost"]);
  const newest = readFileSync(join(folder, "claude-code.Stop.newest.json"), "utf8");
  expect(JSON.parse(newest)).toEqual(noted({ cwd: "/3" }));
  expect(readFileSync(join(folder, "claude-code.lost"), "utf8")).toBe("3\n");
});

test("prints a bundle once, and only for its session after a compaction", () => {
  const database = install();
  putBundle(database, "claude-code.0d1f-9.json", '{"bundle":"\\\\n %s"}\n');
  const event = "SessionStart";
  expect(run(database, { event, input: compacted({ source: "resume" }) })).toBe("");
  expect(run(database, { event, input: compacted({ session_id: "other" }) })).toBe("");
  expect(run(database, { event: "Stop", input: compacted() })).toBe("");
  expect(run(database, { event, input: compacted({ cwd: '/"source":"startup"/"session_id":"x"' }) })).toBe(
    '{"bundle":"\\\\n %s"}\n',
  );
  expect(run(database, { event, input: compacted() })).toBe("");
  expect(listSpool(database)).toHaveLength(5);
});

test.each(["../../secret", "a/b", "", "a b", "*"])(
  "never opens a file by a session id such as '%s'",
  (id) => {
    const database = install();
    writeFileSync(join(findCaptureFolder(database), "secret.json"), "secret");
    putBundle(database, "claude-code.0d1f-9.json", "secret");
    expect(run(database, { event: "SessionStart", input: compacted({ session_id: id }) })).toBe("");
  },
);

test("Claude Code's summariser is asked to keep ids; no other agent is told anything", () => {
  for (const agent of HOOK_AGENTS) {
    const database = install(agent);
    for (const { name } of listHookEvents(agent)) {
      const printed = run(database, { agent, event: name });
      if (agent === "claude-code" && name === "PreCompact")
        expect(printed).toMatch(/^<lcm-restart for="summary">\nCopy ids [^<]*\n<\/lcm-restart>\n$/u);
      else expect(printed).toBe("");
    }
    expect(listSpool(database)).toHaveLength(listHookEvents(agent).length);
  }
});

test("never fails the agent: no script, no folder, no right to write, no such event", () => {
  const database = install();
  rmSync(findSpoolFolder(database), { recursive: true });
  run(database);
  expect(listSpool(database)).toHaveLength(1);
  run(database, { event: "PreToolUse; rm -rf /" });
  expect(listSpool(database)).toHaveLength(1);
  chmodSync(findSpoolFolder(database), 0o500);
  run(database);
  rmSync(findCaptureFolder(database), { recursive: true });
  writeFileSync(findCaptureFolder(database), "a file");
  expect(existsSync(findHookScript(database, "claude-code"))).toBe(false);
  run(database);
});

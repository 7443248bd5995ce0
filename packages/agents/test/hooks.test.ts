/** Hooks and the watcher together, over real files, a real shell and a real archive. */
import { spawnSync } from "node:child_process";
import {
  appendFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { makeTemporaryDirectory } from "@lossless/testkit";
import { openTestEngine } from "@lossless/testkit/session-archive.ts";
import { estimateTextTokens } from "@lossless/core";
import type { Engine } from "@lossless/core";
import { expect, onTestFinished, test, vi } from "vitest";
import {
  CaptureHooks,
  findBundleFolder,
  findSpoolFolder,
  hasNotes,
  listLocations,
  makeExclusion,
  readHookStates,
  renderHookCommand,
  Watcher,
} from "../src/index.ts";
import { installHookScript } from "./install-hooks.ts";
import type { WatchEvent } from "../src/index.ts";

const PATIENCE = { timeout: 60_000, interval: 20 };
const OWNER = "ada";

interface Scene {
  readonly database: string;
  readonly engine: Engine;
  readonly home: string;
  readonly transcript: string;
  readonly events: WatchEvent[];
}

/** The transcript is outside of the folders that are followed: only a hook tells of it. */
async function setScene(): Promise<Scene> {
  const home = realpathSync(makeTemporaryDirectory());
  const database = join(home, "lcm.db");
  installHookScript(database, "claude-code");
  const transcript = join(home, "elsewhere/projects/-app/s1.jsonl");
  mkdirSync(dirname(transcript), { recursive: true });
  return { database, engine: await openTestEngine(), home, transcript, events: [] };
}

function makeWatcher({ database, engine, home, events }: Scene, patterns: readonly string[] = []): Watcher {
  return new Watcher({
    engine,
    locations: listLocations({}, home),
    owner: OWNER,
    exclude: makeExclusion(patterns),
    hooks: new CaptureHooks({ database, engine, owner: OWNER }),
    onEvent: (event) => events.push(event),
  });
}

function fire({ database, transcript }: Scene, event: string, more: object = {}): string {
  const input = {
    session_id: "s1",
    transcript_path: transcript,
    cwd: "/srv/app",
    hook_event_name: event,
    ...more,
  };
  const command = renderHookCommand(database, "claude-code", event);
  return spawnSync("sh", ["-c", command], { input: JSON.stringify(input), encoding: "utf8" }).stdout;
}

const compact = (scene: Scene): string => fire(scene, "SessionStart", { source: "compact" });

function say(scene: Scene, n: number, role: "user" | "assistant", content: unknown): void {
  const link = {
    uuid: `u${n}`,
    parentUuid: n === 0 ? null : `u${n - 1}`,
    isSidechain: false,
    sessionId: "s1",
  };
  const line = { ...link, cwd: "/srv/app", type: role, message: { role, content } };
  appendFileSync(scene.transcript, `${JSON.stringify(line)}\n`);
}

const call = (name: string, input: object): object[] => [
  { type: "tool_use", id: `call-${name}`, name, input },
];

function work(scene: Scene): void {
  say(scene, 0, "user", "Build the parser. Never use eval. </lcm-restart> <b>");
  say(scene, 1, "assistant", "We decided: going with recursive descent because errors are clearer.");
  say(
    scene,
    2,
    "assistant",
    call("Edit", { file_path: "/srv/app/parser.ts", old_string: "a", new_string: "b" }),
  );
  const todos = [
    { content: "write the lexer", status: "completed" },
    { content: "write the printer", status: "pending" },
  ];
  say(scene, 3, "assistant", call("TodoWrite", { todos }));
  say(scene, 4, "user", "Now add the printer, with two spaces");
}

const countStored = async (engine: Engine): Promise<number> =>
  (await engine.status({ owner: OWNER })).messages;

test("a hook leads the watcher to a transcript that nobody follows, and to what is added to it", async () => {
  const scene = await setScene();
  const controller = new AbortController();
  const ended = makeWatcher(scene).run(controller.signal);
  onTestFinished(async () => {
    controller.abort();
    await ended;
  });
  say(scene, 0, "user", "hello");
  fire(scene, "Stop");
  await vi.waitFor(async () => expect(await countStored(scene.engine)).toBe(1), PATIENCE);
  say(scene, 1, "assistant", "hi");
  await vi.waitFor(async () => expect(await countStored(scene.engine)).toBe(2), PATIENCE);
  await vi.waitFor(() => expect(hasNotes(scene.database)).toBe(false), PATIENCE);
  expect(readHookStates(scene.database)).toMatchObject([
    { agent: "claude-code", silent: ["SessionStart", "PreCompact", "SessionEnd"], waiting: 0, lost: 0 },
  ]);
});

test("without a watcher events wait for the next command", async () => {
  const scene = await setScene();
  expect(readHookStates(scene.database)).toMatchObject([{ lastAt: null, silent: { length: 4 } }]);
  work(scene);
  for (const event of ["SessionStart", "Stop", "PreCompact", "SessionEnd"]) fire(scene, event);
  expect(readHookStates(scene.database)).toMatchObject([{ silent: [], waiting: 4 }]);
  await makeWatcher(scene).runNotes();
  expect(await countStored(scene.engine)).toBe(5);
  expect(readdirSync(findSpoolFolder(scene.database))).toEqual([]);
  expect(readHookStates(scene.database)).toMatchObject([{ silent: [], waiting: 0 }]);
});

test("after a compaction the model gets what it needs, once, in a frame that only we can close", async () => {
  const scene = await setScene();
  work(scene);
  fire(scene, "PreCompact");
  await makeWatcher(scene).runNotes();
  const printed = compact(scene);
  const { hookSpecificOutput } = JSON.parse(printed) as {
    hookSpecificOutput: { hookEventName: string; additionalContext: string };
  };
  expect(hookSpecificOutput.hookEventName).toBe("SessionStart");
  const text = hookSpecificOutput.additionalContext;
  expect(text.match(/<\/?lcm-restart/gu)).toEqual(["<lcm-restart", "</lcm-restart"]);
  expect(text.split("\n").slice(2, -1)).toEqual([
    "All of it: msg_1..msg_5",
    "Last request [msg_5]: Now add the printer, with two spaces",
    "First request [msg_1]: Build the parser. Never use eval. &lt;/lcm-restart> &lt;b>",
    "Open [msg_4]: write the printer",
    "Decided [msg_2]: We decided: going with recursive descent because errors are clearer.",
    "Constraint [msg_1]: Never use eval.",
    "File [msg_3]: edited /srv/app/parser.ts",
  ]);
  expect(compact(scene)).toBe("");
  // Both looks at the compaction are read; neither prepares a second one for it.
  await makeWatcher(scene).runNotes();
  expect(readdirSync(findBundleFolder(scene.database))).toEqual([]);
  say(scene, 5, "assistant", "Done.");
  fire(scene, "Stop");
  await makeWatcher(scene).runNotes();
  expect(compact(scene)).toContain("msg_1..msg_6");
});

test("a bundle stays within its tokens", async () => {
  const scene = await setScene();
  for (let n = 0; n < 120; n += 1)
    say(
      scene,
      n,
      "user",
      `Never touch file ${n} — ${"and say why each time, ".repeat(40)} we decided to use way ${n}.`,
    );
  fire(scene, "Stop");
  await makeWatcher(scene).runNotes();
  const { hookSpecificOutput } = JSON.parse(compact(scene)) as {
    hookSpecificOutput: { additionalContext: string };
  };
  const tokens = estimateTextTokens(hookSpecificOutput.additionalContext);
  expect(tokens).toBeGreaterThan(700);
  expect(tokens).toBeLessThanOrEqual(1_000);
});

test.each([
  ["a setting", (): readonly string[] => ["/srv/app"]],
  ["an ignore file", (): readonly string[] => []],
])(
  "an excluded session leaves nothing: not in the archive, the spool or a bundle (%s)",
  async (_by, patterns) => {
    const scene = await setScene();
    const project = join(scene.home, "project");
    mkdirSync(project);
    const cwd = patterns().length > 0 ? "/srv/app" : project;
    say(scene, 0, "user", "a secret");
    fire(scene, "Stop", { last_assistant_message: "a secret" });
    const spool = findSpoolFolder(scene.database);
    for (const name of readdirSync(spool))
      expect(readFileSync(join(spool, name), "utf8")).not.toContain("secret");
    // It was followed before it was excluded: what was prepared then goes.
    writeFileSync(join(findBundleFolder(scene.database), "claude-code.s1.json"), "a secret");
    writeFileSync(scene.transcript, readFileSync(scene.transcript, "utf8").replaceAll("/srv/app", cwd));
    if (cwd === project) writeFileSync(join(project, ".lcmignore"), "");
    await makeWatcher(scene, patterns()).runNotes();
    expect(await countStored(scene.engine)).toBe(0);
    expect(readdirSync(spool)).toEqual([]);
    expect(readdirSync(findBundleFolder(scene.database))).toEqual([]);
    expect(scene.events).toMatchObject([{ kind: "left_out" }]);
  },
);

test("a note about a file that is not a transcript is dropped after one look", async () => {
  const scene = await setScene();
  writeFileSync(scene.transcript, "this is not a transcript\n");
  fire(scene, "Stop");
  await makeWatcher(scene).runNotes();
  expect(scene.events).toMatchObject([{ kind: "failed" }]);
  expect(hasNotes(scene.database)).toBe(false);
});

test("notes that lead nowhere are dropped, damaged ones once they have rested", async () => {
  const scene = await setScene();
  fire(scene, "Stop", { transcript_path: "/etc/passwd" });
  fire(scene, "Stop", { transcript_path: "relative.jsonl" });
  fire(scene, "Stop", { transcript_path: join(scene.home, "gone.jsonl") });
  const damaged = join(findSpoolFolder(scene.database), "claude-code.Stop.9.0.json");
  writeFileSync(damaged, '{"session_id":');
  await makeWatcher(scene).runNotes();
  expect(readdirSync(findSpoolFolder(scene.database))).toEqual(["claude-code.Stop.9.0.json"]);
  vi.useFakeTimers({ now: Date.now() + 60_000, toFake: ["Date"] });
  onTestFinished(() => {
    vi.useRealTimers();
  });
  await makeWatcher(scene).runNotes();
  expect(existsSync(damaged)).toBe(false);
});

/** The watcher over real files and a real archive: what is written is stored once, whatever happens to the files or to the watcher. */
import { spawn } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import {
  appendFileSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  symlinkSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { makeRandom, makeTemporaryDirectory } from "@lossless/testkit";
import { rounds } from "@lossless/testkit/rounds.ts";
import { openTestEngine, readStoredLines } from "@lossless/testkit/session-archive.ts";
import { openEngine } from "lossless-claw";
import { EngineError } from "@lossless/core";
import type { Engine } from "@lossless/core";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import {
  listLocations,
  makeExclusion,
  readWatchState,
  watchAlone,
  Watcher,
  writeWatchState,
} from "../src/index.ts";
import type { WatchEvent } from "../src/index.ts";

/** Nothing here waits this long; a machine under load may. */
const PATIENCE = { timeout: 60_000, interval: 20 };

const makeHome = (): string => realpathSync(makeTemporaryDirectory());
const sessionFile = (home: string, name: string): string =>
  join(home, ".claude/projects/-app", `${name}.jsonl`);

function row(session: string, n: number, cwd: string, text = `line ${n}`): string {
  const link = { uuid: `${session}-${n}`, parentUuid: n === 0 ? null : `${session}-${n - 1}` };
  const line = { ...link, isSidechain: false, sessionId: session, cwd, type: "user" };
  return `${JSON.stringify({ ...line, message: { role: "user", content: text } })}\n`;
}

function write(path: string, text: string): void {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text);
}

interface Watching {
  readonly engine: Engine;
  readonly events: WatchEvent[];
  readonly watcher: Watcher;
}

async function startWatching(
  home: string,
  patterns: readonly string[] = [],
  now?: () => number,
): Promise<Watching> {
  const engine = await openTestEngine();
  const events: WatchEvent[] = [];
  const watcher = new Watcher({
    engine,
    locations: listLocations({}, home),
    owner: "ada",
    exclude: makeExclusion(patterns, now),
    onEvent: (event) => events.push(event),
  });
  const controller = new AbortController();
  const ended = watcher.run(controller.signal);
  onTestFinished(async () => {
    controller.abort();
    await ended;
  });
  return { engine, events, watcher };
}

/** All stored lines of a session, in order, each in every version that was stored. */
async function readSession(engine: Engine, sessionId: string): Promise<string[]> {
  const state = await engine.readSession({ sessionId, owner: "ada" });
  if (state?.conversationId == null) return [];
  return (await readStoredLines(engine, state.conversationId)).map(({ text }) => `${text}\n`);
}

const waitForLines = (engine: Engine, session: string, lines: readonly string[]): Promise<void> =>
  vi.waitFor(async () => expect(await readSession(engine, session)).toEqual(lines), PATIENCE);

describe("a watcher", () => {
  test("continues when a file cannot be examined", async () => {
    const home = makeHome();
    const path = sessionFile(home, "s1");
    write(path, row("s1", 0, "/srv/app"));
    const { engine, watcher } = await startWatching(home);
    await waitForLines(engine, "s1", [row("s1", 0, "/srv/app")]);
    for (const name of ["a", "loop.jsonl"]) symlinkSync(name, join(dirname(path), name));
    appendFileSync(path, row("s1", 1, "/srv/app"));
    await waitForLines(
      engine,
      "s1",
      [0, 1].map((n) => row("s1", n, "/srv/app")),
    );
    expect(watcher.state().agents[0]).toMatchObject({ problem: null });
  });

  test("stores what is there, what is added, and sessions in new folders, for its owner", async () => {
    const home = makeHome();
    const path = sessionFile(home, "s1");
    write(path, row("s1", 0, "/srv/app"));
    const { engine, watcher } = await startWatching(home);
    await waitForLines(engine, "s1", [row("s1", 0, "/srv/app")]);
    // An unfinished line waits for its end.
    const [half, rest] = [row("s1", 1, "/srv/app").slice(0, 40), row("s1", 1, "/srv/app").slice(40)];
    appendFileSync(path, half);
    appendFileSync(path, rest);
    await waitForLines(
      engine,
      "s1",
      [0, 1].map((n) => row("s1", n, "/srv/app")),
    );
    const rollout = join(home, ".codex/sessions/2026/11/16/rollout-1.jsonl");
    const meta = `${JSON.stringify({ timestamp: "2026-01-01T00:00:00Z", type: "session_meta", payload: { id: "c1", cwd: "/srv/app" } })}\n`;
    write(join(home, ".claude/projects/-other/s2.jsonl"), row("s2", 0, "/srv/other"));
    await waitForLines(engine, "s2", [row("s2", 0, "/srv/other")]);
    write(rollout, meta);
    // The folder of an agent that is new here is found by the next scan.
    expect(
      await new Watcher({
        engine,
        locations: listLocations({}, home),
        owner: "ada",
        exclude: makeExclusion([]),
        onEvent: () => undefined,
      }).runOnce(),
    ).toMatchObject({ agents: [{ transcripts: 2 }, { agent: "codex", transcripts: 1 }, {}, {}, {}, {}] });
    expect(await readSession(engine, "c1")).toEqual([meta]);
    await vi.waitFor(() => {
      const [claude] = watcher.state().agents;
      expect(claude).toMatchObject({
        agent: "claude-code",
        isPresent: true,
        transcripts: 2,
        waiting: 0,
        problem: null,
      });
      expect(claude?.lagMs).toBeGreaterThanOrEqual(0);
    }, PATIENCE);
    expect((await engine.verify()).problems).toEqual([]);
  });

  test("keeps every line once when a transcript is cut, rewritten, replaced, renamed", async () => {
    const home = makeHome();
    const path = sessionFile(home, "s1");
    const lines = Array.from({ length: 6 }, (_, n) => row("s1", n, "/srv/app"));
    write(path, lines.slice(0, 4).join(""));
    const { engine } = await startWatching(home);
    await waitForLines(engine, "s1", lines.slice(0, 4));
    truncateSync(path, lines.slice(0, 2).join("").length);
    appendFileSync(path, lines[4] ?? "");
    await vi.waitFor(async () => expect(await readSession(engine, "s1")).toHaveLength(5), PATIENCE);
    writeFileSync(`${path}.new`, lines.join(""));
    renameSync(`${path}.new`, path);
    await vi.waitFor(async () => expect(await readSession(engine, "s1")).toHaveLength(6), PATIENCE);
    renameSync(path, sessionFile(home, "s1-archived"));
    appendFileSync(sessionFile(home, "s1-archived"), row("s1", 6, "/srv/app"));
    await vi.waitFor(async () => expect(await readSession(engine, "s1")).toHaveLength(7), PATIENCE);
    const stored = await readSession(engine, "s1");
    expect(stored.toSorted()).toEqual([...lines, row("s1", 6, "/srv/app")].toSorted());
    expect((await engine.verify()).problems).toEqual([]);
  });

  test("keeps every line once when a transcript is rotated, by a new file or by emptying it", async () => {
    const home = makeHome();
    const path = sessionFile(home, "s1");
    const lines = Array.from({ length: 9 }, (_, n) => row("s1", n, "/srv/app"));
    write(path, lines.slice(0, 2).join(""));
    const { engine } = await startWatching(home);
    await waitForLines(engine, "s1", lines.slice(0, 2));
    // The line before the rotation may not have been read yet, and the new file goes on where the old one ended.
    appendFileSync(path, lines[2] ?? "");
    renameSync(path, `${path}.1`);
    write(path, lines.slice(3, 5).join(""));
    await vi.waitFor(async () => expect(await readSession(engine, "s1")).toHaveLength(5), PATIENCE);
    appendFileSync(path, lines[5] ?? "");
    renameSync(`${path}.1`, `${path}.2`);
    copyFileSync(path, `${path}.1`);
    truncateSync(path, 0);
    appendFileSync(path, lines[6] ?? "");
    await vi.waitFor(async () => expect(await readSession(engine, "s1")).toHaveLength(7), PATIENCE);
    // An agent that holds the old file open goes on writing into it.
    appendFileSync(`${path}.1`, lines[7] ?? "");
    appendFileSync(path, lines[8] ?? "");
    await vi.waitFor(async () => expect(await readSession(engine, "s1")).toHaveLength(9), PATIENCE);
    expect((await readSession(engine, "s1")).toSorted()).toEqual(lines.toSorted());
    expect((await engine.verify()).problems).toEqual([]);
  });

  test("stores nothing of what is excluded, and says so", async () => {
    const home = makeHome();
    const secret = join(home, "secret");
    const partly = join(home, "partly");
    mkdirSync(join(secret, ".git"), { recursive: true });
    mkdirSync(join(secret, "src"));
    mkdirSync(join(partly, "drafts/deep"), { recursive: true });
    writeFileSync(join(secret, ".lcmignore"), "# nothing from here\n");
    writeFileSync(join(partly, ".lcmignore"), "drafts\n");
    mkdirSync(join(partly, ".git"));
    write(sessionFile(home, "a"), row("a", 0, join(secret, "src")));
    write(sessionFile(home, "b"), row("b", 0, join(partly, "drafts/deep")));
    write(sessionFile(home, "c"), row("c", 0, partly));
    write(sessionFile(home, "d"), row("d", 0, join(home, "private/x")));
    write(sessionFile(home, "e"), row("e", 0, "/srv/app"));
    write(sessionFile(home, "f"), row("f", 0, "/srv/app"));
    const { engine, events } = await startWatching(home, [join(home, "private"), "e"]);
    await waitForLines(engine, "f", [row("f", 0, "/srv/app")]);
    await waitForLines(engine, "c", [row("c", 0, partly)]);
    await vi.waitFor(() => expect(events).toHaveLength(6), PATIENCE);
    for (const session of ["a", "b", "d", "e"]) expect(await readSession(engine, session)).toEqual([]);
    const reasons = events.flatMap((event) => (event.kind === "left_out" ? [event.reason] : []));
    expect(reasons).toHaveLength(4);
    expect(reasons.join()).toContain(join(secret, ".lcmignore"));
    expect((await engine.status()).conversations).toBe(2);
  });

  test("waits for the folder of a session, and takes a file that never names one once it has rested", async () => {
    const home = makeHome();
    const early = `${JSON.stringify({ type: "queue-operation", sessionId: "s1", timestamp: "2026-01-01T00:00:00Z" })}\n`;
    write(sessionFile(home, "s1"), early);
    write(sessionFile(home, "s2"), early.replace("s1", "s2"));
    utimesSync(sessionFile(home, "s2"), 1_700_000_000, 1_700_000_000);
    // However slow the machine is, this one does not rest.
    utimesSync(sessionFile(home, "s1"), 1_800_000_000, 1_800_000_000);
    const { engine, events } = await startWatching(home, [], () => 1_800_000_000_000);
    await waitForLines(engine, "s2", [early.replace("s1", "s2")]);
    await vi.waitFor(() => expect(events.some(({ kind }) => kind === "left_out")).toBe(true), PATIENCE);
    expect(await readSession(engine, "s1")).toEqual([]);
    appendFileSync(sessionFile(home, "s1"), row("s1", 0, "/srv/app"));
    await waitForLines(engine, "s1", [early, row("s1", 0, "/srv/app")]);
  });

  test("names a file that is no transcript, and goes on", async () => {
    const home = makeHome();
    write(sessionFile(home, "x"), '{"what":"ever"}\n');
    write(sessionFile(home, "y"), row("y", 0, "/srv/app"));
    const { engine, events, watcher } = await startWatching(home);
    await waitForLines(engine, "y", [row("y", 0, "/srv/app")]);
    await vi.waitFor(() => expect(events.some(({ kind }) => kind === "failed")).toBe(true), PATIENCE);
    // Its failure waits for its next change.
    await vi.waitFor(() => expect(watcher.state().agents[0]?.waiting).toBe(0), PATIENCE);
  });
});

/** Runs the program, lets files grow under it, and kills it so many ms later, in the middle of whatever it does. */
async function watchUntilKilled(database: string, home: string, grow: () => void, ms: number): Promise<void> {
  const program = join(import.meta.dirname, "watch-program.ts");
  const child: ChildProcess = spawn(process.execPath, [program, database, home], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const ended = once(child, "exit");
  child.stdout?.once("data", () => {
    grow();
    setTimeout(() => {
      grow();
      child.kill("SIGKILL");
    }, ms);
  });
  await ended;
}

test("an archive that fails ends the watcher, and nothing keeps its process alive", async () => {
  const home = makeHome();
  write(sessionFile(home, "s1"), row("s1", 0, "/srv/app"));
  const none = (): Promise<never[]> => Promise.resolve([]);
  const full = {
    ingest: () => Promise.reject(new EngineError("database_full", "the disk is full")),
    readSession: () => Promise.resolve(null),
    knownEvents: none,
    findSessions: none,
    relabelSession: () => Promise.resolve(false),
    setBranch: () => Promise.resolve({ changed: 0 }),
  };
  const countWatches = (): number =>
    process.getActiveResourcesInfo().filter((name) => name.startsWith("FSEvent")).length;
  const before = countWatches();
  const watcher = new Watcher({
    engine: full,
    locations: listLocations({}, home),
    exclude: makeExclusion([]),
    onEvent: () => undefined,
  });
  await expect(watcher.runOnce()).rejects.toThrow("the disk is full");
  expect(countWatches()).toBe(before);
});

test("an archive that others keep busy is tried again, and the watcher goes on", async () => {
  const home = makeHome();
  write(sessionFile(home, "s1"), row("s1", 0, "/srv/app"));
  const engine = await openTestEngine();
  let tries = 0;
  const ingest: Engine["ingest"] = async (request) => {
    if (++tries === 1) throw new EngineError("database_busy", "another process holds the lock");
    return engine.ingest(request);
  };
  const watcher = new Watcher({
    engine: { ...engine, ingest },
    locations: listLocations({}, home),
    exclude: makeExclusion([]),
    onEvent: () => undefined,
  });
  const controller = new AbortController();
  const ended = watcher.run(controller.signal);
  await expect.poll(async () => (await engine.status()).messages, PATIENCE).toBe(1);
  controller.abort();
  await ended;
});

test("killed at any moment, a watcher loses nothing and stores nothing twice; a second one does not start", async () => {
  const home = makeHome();
  const database = join(home, "lcm.db");
  const random = makeRandom(7);
  const lines: Record<string, string[]> = { s1: [], s2: [] };
  const grow = (): void => {
    for (const [session, written] of Object.entries(lines)) {
      const more = Array.from({ length: 1 + random.below(40) }, (_, i) =>
        row(session, written.length + i, "/srv/app", "x".repeat(random.below(4_000))),
      );
      written.push(...more);
      mkdirSync(dirname(sessionFile(home, session)), { recursive: true });
      if (session === "s2") disturb(sessionFile(home, session));
      appendFileSync(sessionFile(home, session), more.join(""));
    }
  };
  let rotated = 0;
  /** Rotates the file, or writes it again as another one, or leaves it. */
  const disturb = (path: string): void => {
    const how = existsSync(path) ? random.below(3) : 2;
    if (how === 0) renameSync(path, `${path}.${(rotated += 1)}`);
    if (how === 1) {
      copyFileSync(path, `${path}.new`);
      renameSync(`${path}.new`, path);
    }
  };
  grow();
  const kills = rounds({ test: 3, soak: 20 });
  for (let round = 0; round < kills; round += 1)
    await watchUntilKilled(database, home, grow, random.below(400));
  const engine = await openEngine({ database, thread: false });
  const watcher = new Watcher({
    engine,
    locations: listLocations({}, home),
    exclude: makeExclusion([]),
    onEvent: () => undefined,
  });
  const state = await watchAlone(database, async () => {
    await expect(watchAlone(database, () => Promise.resolve())).rejects.toMatchObject({
      code: "database_busy",
    });
    writeWatchState(database, watcher.state());
    expect(await readWatchState(database)).toMatchObject({ isRunning: true });
    return watcher.runOnce();
  });
  expect(await readWatchState(database)).toMatchObject({ isRunning: false, pid: process.pid });
  expect(state.agents[0]).toMatchObject({ transcripts: 2 + rotated, waiting: 0 });
  expect(readFileSync(sessionFile(home, "s1"), "utf8")).toBe(lines["s1"]?.join(""));
  for (const [session, written] of Object.entries(lines)) {
    const { conversationId } = (await engine.readSession({ sessionId: session, owner: "main" })) ?? {};
    const stored = (await readStoredLines(engine, conversationId ?? 0)).map(({ text }) => `${text}\n`);
    // Files that follow each other begin to count again.
    if (session === "s1") expect(stored).toEqual(written);
    expect(stored.toSorted()).toEqual(written.toSorted());
  }
  expect((await engine.verify()).problems).toEqual([]);
  await engine.close();
});

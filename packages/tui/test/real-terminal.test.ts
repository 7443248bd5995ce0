/**
 * `lcm tui` as a process in a real terminal, which tmux provides: keys in, screens out, and the terminal as it was afterwards, whatever ended
 * the program.
 */
import { execFileSync, spawnSync } from "node:child_process";
import { chmodSync, existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { resolveSettings } from "@lossless/core";
import { openEngine } from "lossless-claw";
import { makeTemporaryFolder } from "@lossless/testkit";
import { HANG_LIMIT_MS } from "@lossless/testkit/hang-limit.ts";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from "vitest";
import { fillTalk, FOLDING } from "./stage.ts";

const PROGRAMS = join(import.meta.dirname, "../../cli/bin");
const LCM = join(PROGRAMS, "lcm.js");
const LCM_TUI = join(PROGRAMS, "lcm-tui.js");
const hasTmux = spawnSync("tmux", ["-V"]).status === 0;
if (!hasTmux) console.warn("tmux is missing: the terminal UI is not tested in a real terminal");

const folder = makeTemporaryFolder();
const database = join(folder.path, "lcm.db");
/** A server of its own for each test. */
let socket = "";
let servers = 0;

const tmux = (...args: string[]): string =>
  execFileSync("tmux", ["-S", socket, "-f", "/dev/null", ...args], { encoding: "utf8" });
/** The screen; a line the shell wrapped is one line again, so that no test depends on how long the paths are. */
const look = (): string => tmux("capture-pane", "-p", "-J", "-t", "main").replaceAll(/ +$/gm, "");
const press = (...keys: string[]): string => tmux("send-keys", "-t", "main", ...keys);
const type = (text: string): string => tmux("send-keys", "-t", "main", "-l", text);

/** Waits until the screen shows something. */
const see = (text: string | RegExp): Promise<string> =>
  vi.waitFor(
    () => {
      const screen = look();
      if (typeof text === "string" ? screen.includes(text) : text.test(screen)) return screen;
      throw new Error(`the terminal does not show ${String(text)}:\n${screen}`);
    },
    // A look is a process; what comes up meanwhile stays.
    { timeout: HANG_LIMIT_MS, interval: 100 },
  );

const readText = (file: string): string => readFileSync(file, "utf8").trim();

/** What the shell says about the terminal: modes of its line, and whether the cursor is seen. */
async function readModes(): Promise<string> {
  const file = join(folder.path, `modes-${Math.random()}`);
  // Renamed when it is complete: the shell makes the file before it is written.
  type(`stty -a > ${file}-new; mv ${file}-new ${file}; echo wri"tten"`);
  press("Enter");
  await vi.waitFor(() => expect(existsSync(file)).toBe(true), { timeout: HANG_LIMIT_MS });
  await see(/^written$/m);
  // The size is the window's business.
  const modes = readText(file).replace(/rows \d+; columns \d+/, "");
  const flags = "#{cursor_flag} #{alternate_on} #{bracket_paste_flag} #{mouse_any_flag}";
  return `${modes} ${tmux("display", "-p", "-t", "main", flags)}`;
}

async function start(command = `node ${LCM_TUI} --db ${database}`): Promise<void> {
  type(`clear; echo before; ${command}; echo status $?`);
  press("Enter");
  await see(/ lcm {2}Conversations[\s\S]*step 0: the/);
}

beforeAll(async () => {
  const { settings } = resolveSettings({ env: {}, config: { ...FOLDING, databasePath: database } });
  const writer = await openEngine({ database, settings, thread: false });
  await fillTalk(writer);
  await writer.close();
});

beforeEach((context) => {
  if (!hasTmux) context.skip();
  socket = join(folder.path, `tmux-${servers++}`);
  // Without a history: a shell that is hung up would write it while the folder is removed.
  const environment = `PATH=${join(import.meta.dirname, "../../../node_modules/.bin")}:${process.env["PATH"]} HOME=${folder.path} OPENCLAW_STATE_DIR=${join(folder.path, "state")} PS1='$ ' HISTFILE= TZ=UTC`;
  tmux(
    "new-session",
    "-d",
    "-s",
    "main",
    "-x",
    "80",
    "-y",
    "24",
    `env ${environment} bash --norc --noprofile`,
  );
});

afterEach(() => {
  if (socket !== "") spawnSync("tmux", ["-S", socket, "kill-server"]);
});

afterAll(() => folder[Symbol.dispose]());

describe("in a real terminal", () => {
  test("walks from conversations to messages, graph and context by keys, and leaves the terminal as it was", async () => {
    const before = await readModes();
    await start();
    press("Enter");
    const messages = await see("following");
    expect(messages.split("\n").find((line) => line.startsWith("▸"))).toContain("2026-03-05 23:00 assistant");
    press("PageUp");
    await see(/▸ 2026-03-05 1\d:00/);
    press("s");
    await see(/› step 0.* › graph /);
    press("Right", "Down");
    await see(/▸ [├└]─ /);
    press("c");
    await see(/context of step 0[\s\S]*of 32,000 tokens/);
    press("Escape");
    await see(/▸ [├└]─ /);
    press("Escape");
    await see(/▸ 2026-03-05 1\d:00/);
    tmux("resize-window", "-t", "main", "-x", "120", "-y", "30");
    await see("│ msg_");
    press("q");
    await see("status 0");
    tmux("resize-window", "-t", "main", "-x", "80", "-y", "24");
    const after = look();
    expect(after).toMatch(/before\nstatus 0/);
    expect(after).not.toContain("Conversations");
    expect(await readModes()).toBe(before);
  });

  test("is left as it was by Ctrl-C, by a signal, and by an exception", async () => {
    const before = await readModes();
    await start();
    press("s");
    await see("graph of step 0");
    press("C-c");
    await see("status 130");
    expect(look()).toMatch(/before\nstatus 130/);
    expect(await readModes()).toBe(before);

    await start(
      `node ${LCM_TUI} --db ${database} & echo $! > ${folder.path}/pid; fg > /dev/null`.replace(
        "node",
        "exec node",
      ),
    );
    execFileSync("kill", ["-TERM", readText(join(folder.path, "pid"))]);
    await see(/status \d+/);
    expect(look()).not.toContain("Conversations");
    expect(await readModes()).toBe(before);

    const bomb = join(folder.path, "bomb.mjs");
    const fuse = join(folder.path, "fuse");
    writeFileSync(
      bomb,
      `import fs from "node:fs"; import { isMainThread } from "node:worker_threads";
       const look = () => {
         if (!fs.existsSync(${JSON.stringify(fuse)})) return;
         clearInterval(timer);
         throw new Error("the fuse was lit");
       };
       const timer = isMainThread ? setInterval(look, 20).unref() : null;`,
    );
    await start(`node --import ${bomb} ${LCM_TUI} --db ${database}`);
    writeFileSync(fuse, "");
    await see("status 1");
    expect(look()).toContain("internal error: the fuse was lit");
    expect(await readModes()).toBe(before);
  });

  test("gives the terminal to the shell with Ctrl-Z, and comes back with fg", async () => {
    await start();
    press("s");
    await see("graph of step 0");
    press("C-z");
    await see("Stopped");
    expect(look()).not.toContain("graph of step 0");
    expect(await readModes()).toMatch(/[^-]icanon/);
    type("fg");
    press("Enter");
    await see("graph of step 0");
    press("Right", "Down");
    await see(/▸ [├└]─ /);
    press("q");
    await see(/fg\n.*lcm-tui\.js.*\n\$/);
  });

  test("colours roles, and with NO_COLOR sends no colours at all", async () => {
    const colour = new RegExp(String.raw`${"\u001B"}\[[\d;]*3\dm`);
    const coloured = (): boolean => colour.test(tmux("capture-pane", "-e", "-p", "-t", "main"));
    for (const [variable, expected] of [
      ["env -u NO_COLOR", true],
      ["NO_COLOR=1", false],
    ] as const) {
      await start(`${variable} node ${LCM_TUI} --db ${database} --session agent:main:main`);
      await see("following");
      expect(coloured()).toBe(expected);
      press("q");
      await see("status 0");
    }
  });

  test.each([
    [80, 24],
    [120, 36],
    [40, 12],
  ])("reads, searches and follows the mouse at %d×%d", async (columns, rows) => {
    tmux("resize-window", "-t", "main", "-x", String(columns), "-y", String(rows));
    const before = await readModes();
    await start();
    // Wheel and clicks as a terminal reports them.
    const mouse = (button: number, column: number, row: number): string =>
      type(`\u001B[<${button};${column};${row}M`);
    const mouseFlags = "#{mouse_any_flag}#{mouse_sgr_flag}";
    await vi.waitFor(() => expect(tmux("display", "-p", "-t", "main", mouseFlags)).toBe("11\n"), {
      timeout: HANG_LIMIT_MS,
    });
    expect(look()).toMatch(/q quit$/m);
    mouse(0, 3, 3);
    await see(/▸ .*step 119/);
    mouse(64, 3, 4);
    await see(/▸ .*step 116/);
    mouse(65, 3, 4);
    await see(/▸ .*step 119/);
    mouse(0, 3, 3);
    await vi.waitFor(() => expect(look().split("\n")[2]).toMatch(/^▸/), { timeout: HANG_LIMIT_MS });
    const clickFoot = (sign: string): string =>
      mouse(0, (look().split("\n")[rows - 1] ?? "").indexOf(sign) + 1, rows);
    clickFoot("?");
    await see("› keys");
    // Any key leads back; Esc and the next one at once would be one key.
    press("x");
    await see("▸");
    press("/");
    await see(/search: /);
    type("valve_7");
    press("Enter");
    // In the text of the hit, below the list or beside it.
    await see(/\d hits?\b[^]*(?:│[^\n]*|── [^]*)valve_7/);
    clickFoot("q quit");
    await see("status 0");
    tmux("resize-window", "-t", "main", "-x", "80", "-y", "24");
    expect(await readModes()).toBe(before);
  });

  test("leaves the mouse to the terminal with --no-mouse", async () => {
    await start(`node ${LCM_TUI} --db ${database} --no-mouse`);
    expect(tmux("display", "-p", "-t", "main", "#{mouse_any_flag}")).toBe("0\n");
    press("q");
    await see("status 0");
  });

  test("shows what an agent writes meanwhile, without a key", async () => {
    await start();
    press("Enter");
    await see("following");
    const writer = await openEngine({ database, thread: false });
    const session = { key: "agent:main:main", id: "s1", owner: "main" };
    await writer.ingest({
      session,
      messages: [{ eventId: "late", message: { role: "user", content: "news from the greenhouse" } }],
    });
    await writer.close();
    await see("news from the greenhouse");
    press("q");
    await see("status 0");
  });

  test("says what is wrong with the database as every command does", async () => {
    type(`node ${LCM} tui --db ${folder.path}/nothing.db; echo status $?`);
    press("Enter");
    await see("status 5");
    expect(look()).toContain("nothing.db");
    writeFileSync(
      join(folder.path, "foreign.db"),
      "this is no database, and long enough to be looked at as one",
    );
    type(`clear; node ${LCM} tui --db ${folder.path}/foreign.db; echo status $?`);
    press("Enter");
    await see("status 5");
  });

  test("a database that may only be read is shown; changing it is refused with a reason", async ({
    skip,
  }) => {
    if (process.getuid?.() === 0) skip("permissions do not hold for the superuser");
    chmodSync(database, 0o400);
    try {
      await start();
      press("s");
      await see("graph of step 0");
      press("d");
      await see("Nothing has been changed yet");
      press("y");
      await see(/cannot/);
      press("q");
    } finally {
      chmodSync(database, 0o600);
    }
  });
});

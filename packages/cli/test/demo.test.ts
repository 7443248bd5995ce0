import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { makeTemporaryFolder } from "@lossless/testkit";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { displayWidth } from "@lossless/core/doors";
import { prepareFolder } from "../src/demo/program.ts";
import { createRunner, makeFolder, ROOT, SAMPLE } from "./support.ts";
import type { Run, RunOptions } from "./support.ts";

const folder = makeFolder();
const run = createRunner(folder.path);
const place = join(folder.path, "demo");
let demo: Run;
let shown = "";
const toNumber = (text: string): number => Number(text.replaceAll(",", ""));

beforeAll(async () => {
  demo = await run(["--folder", place], { script: join(ROOT, "packages/cli/src/demo/main.ts") });
  shown = demo.stdout.toString("utf8");
});
afterAll(folder.remove);

test("ends by itself with status 0 without a terminal, and without control codes", () => {
  expect(demo.stderr).toBe("");
  expect(demo.status).toBe(0);
  expect([...shown].filter((character) => character < " " && character !== "\n")).toEqual([]);
});

test("plays the conversation turn by turn within its budget", () => {
  const folds = [...shown.matchAll(/^ {3}turn +(\d+) {2}█+▓+░* {2}([\d,]+) tokens, folded to ([\d,]+)$/gm)];
  expect(folds.length).toBeGreaterThan(5);
  for (const [, , before = "", after = ""] of folds) expect(toNumber(after)).toBeLessThan(toNumber(before));
  expect(shown).toMatch(/ok {2}354 turns in .*, \d+ folds/);
});

test("ends with a table of turns, tokens and compression", () => {
  const rows = [...shown.matchAll(/^ +(\d+) +([\d,]+) +([\d,]+) +([\d.]+) : 1 {2}[█░]+$/gm)];
  expect(rows.map((row) => row[1])).toEqual(["10", "30", "50", "100", "354"]);
  for (const [, , raw = "", context = "", factor = ""] of rows) {
    expect(toNumber(context)).toBeLessThanOrEqual(32_000);
    expect(Number(factor)).toBeCloseTo(toNumber(raw) / toNumber(context), 1);
  }
  expect(Number(rows.at(-1)?.[4])).toBeGreaterThan(5);
});

test("opens what was folded, from the summary in the context down to the message", () => {
  expect(shown).toMatch(/^ {3}sum_[0-9a-f]{16} {2}depth [1-9]/m);
  expect(shown).toMatch(/^ +└─ sum_[0-9a-f]{16} {2}depth 0, \d+ messages/m);
  expect(shown).toMatch(/^ +└─ msg_\d+ {2}user, .* word for word:\n +Decision then: exponential back-off/m);
});

test("shows storing, repeating, reading back, searching, proving and finding a changed byte", () => {
  const lines = readFileSync(SAMPLE, "utf8").trimEnd().split("\n").length.toLocaleString("en");
  expect(shown).toMatch(/Messages\s+571 assistant, 354 user, 342 tool/);
  expect(shown).toContain(`0 stored, ${lines} known before`);
  expect(shown).toContain(`${lines} of ${lines} lines come back equal`);
  expect(shown).not.toMatch(/: 0 found/);
  expect(shown).toMatch(/whole\s+and\s+unaltered/);
  expect(shown).toMatch(/found {2}verify fails and says:\n {3}\S+ {2}.*msg_\d+/);
});

test("fits 80 columns, except for commands with a long path", () => {
  const wide = shown.split("\n").filter((line) => !line.includes(place) && displayWidth(line) > 80);
  expect(wide).toEqual([]);
});

/** The proof of the changed copy fails, and the terminal UI refuses to run without a terminal. */
const EXPECTED: Readonly<Record<string, number>> = { verify: 6, tui: 2 };

test("the commands it ends with work", async () => {
  const commands = shown.split("\n").flatMap((line) => /^ +npx lcm (.*--db .*)$/.exec(line)?.[1] ?? []);
  const ours = commands.filter((command) => command.includes(place));
  expect(ours.length).toBeGreaterThanOrEqual(7);
  for (const command of ours) {
    // The inspector runs until Ctrl-C.
    const onStart: RunOptions["onStart"] = (child) => child.stdout?.once("data", () => child.kill("SIGINT"));
    const result = await run(command.split(" "), command.startsWith("web") ? { onStart } : {});
    const [name = ""] = command.split(" ");
    expect({ command, status: result.status }).toEqual({ command, status: EXPECTED[name] ?? 0 });
  }
});

test("leaves the usual folder alone while another demo works in it", () => {
  using temporary = makeTemporaryFolder();
  vi.stubEnv("TMPDIR", temporary.path);
  try {
    const first = prepareFolder(undefined);
    const second = prepareFolder(undefined);
    expect(second).not.toBe(first);
    expect(existsSync(first)).toBe(true);
    // Nobody has this number: the demo that wrote it has ended.
    writeFileSync(join(first, "demo.pid"), "2147483646");
    expect(prepareFolder(undefined)).toBe(first);
  } finally {
    vi.unstubAllEnvs();
  }
});

test("leaves a folder that was named and exists alone", async () => {
  const again = await run(["--folder", place], { script: join(ROOT, "packages/cli/src/demo/main.ts") });
  expect(again.status).not.toBe(0);
  expect(existsSync(join(place, "lcm.db"))).toBe(true);
});

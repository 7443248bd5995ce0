import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { displayWidth } from "../src/width.ts";
import { createRunner, makeFolder, ROOT, SAMPLE } from "./support.ts";
import type { Run } from "./support.ts";

const folder = makeFolder();
const run = createRunner(folder.path);
const place = join(folder.path, "demo");
let demo: Run;
let shown = "";

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

test("shows storing, repeating, reading back, searching, proving and finding a changed byte", () => {
  const lines = readFileSync(SAMPLE, "utf8").trimEnd().split("\n").length.toLocaleString("en");
  expect(shown).toContain(`${lines} lines stored`);
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

test("the commands it ends with work", async () => {
  const commands = shown.split("\n").flatMap((line) => /^ +npx lcm (.*--db .*)$/.exec(line)?.[1] ?? []);
  const ours = commands.filter((command) => command.includes(place));
  expect(ours.length).toBeGreaterThanOrEqual(4);
  for (const command of ours) {
    const result = await run(command.split(" "));
    expect({ command, status: result.status }).toEqual({
      command,
      status: command.startsWith("verify") ? 6 : 0,
    });
  }
});

test("leaves a folder that was named and exists alone", async () => {
  const again = await run(["--folder", place], { script: join(ROOT, "packages/cli/src/demo/main.ts") });
  expect(again.status).not.toBe(0);
  expect(existsSync(join(place, "lcm.db"))).toBe(true);
});

/** `lcm tui` as a command: what it takes, and what it says where there is no terminal. */
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { createRunner, makeFolder, parseError, ROOT } from "./support.ts";

const LCM_TUI = join(ROOT, "packages/cli/bin/lcm-tui.js");
const folder = makeFolder();
const run = createRunner(folder.path);
const database = join(folder.path, "lcm.db");
afterAll(folder.remove);

test("--sessions is a folder", async () => {
  const help = await run(["tui", "--help"]);
  expect(String(help.stdout)).toContain("--sessions <folder>");
  const refused = parseError(await run(["tui", "--sessions", join(folder.path, "none"), "--json"]));
  expect(refused).toMatchObject({
    code: "usage",
    message: expect.stringContaining("there is no such folder"),
  });
});

test("without a terminal it says so and names the other commands", async () => {
  const refused = await run(["tui", "--db", database]);
  expect(refused.status).toBe(2);
  expect(refused.stderr).toContain("it needs a terminal");
  expect(refused.stderr).toContain("lcm messages list");
  expect(refused.stdout.toString()).toBe("");
  const other = await run(["--db", database], { script: LCM_TUI });
  expect(other.status).toBe(2);
});

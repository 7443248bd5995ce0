import { spawnSync } from "node:child_process";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createRunner, makeFolder, parseEnvelope } from "./support.ts";

const folder = makeFolder();
const run = createRunner(folder.path);
const has = (shell: string): boolean => spawnSync(shell, ["-c", "true"]).status === 0;
let bash = "";
let zsh = "";

beforeAll(async () => {
  bash = (await run(["completion", "bash"])).stdout.toString("utf8");
  zsh = (await run(["completion", "zsh"])).stdout.toString("utf8");
});
afterAll(folder.remove);

/** What bash offers when Tab is pressed behind these words. */
function complete(...words: string[]): string[] {
  const typed = words.map((word) => `'${word}'`).join(" ");
  const script = `${bash}\nCOMP_WORDS=(${typed}); COMP_CWORD=${words.length - 1}; _lcm 2>/dev/null; printf '%s\\n' "\${COMPREPLY[@]}"`;
  return spawnSync("bash", ["-c", script], { encoding: "utf8" }).stdout.split("\n").filter(Boolean);
}

describe.skipIf(!has("bash"))("bash", () => {
  test("the script parses", () => {
    expect(spawnSync("bash", ["-n"], { input: bash, encoding: "utf8" })).toMatchObject({
      status: 0,
      stderr: "",
    });
  });

  test("offers commands, subcommands, options and values", () => {
    expect(complete("lcm", "")).toContain("status");
    expect(complete("lcm", "ver")).toEqual(["verify", "version"]);
    expect(complete("lcm", "messages", "")).toEqual(["list", "tail", "show"]);
    expect(complete("lcm", "messages", "list", "--r")).toEqual(["--revisions", "--raw"]);
    expect(complete("lcm", "--db", "x.db", "messages", "list", "--order", "")).toEqual([
      "position",
      "arrival",
    ]);
    expect(complete("lcm", "config", "get", "freshTailC")).toEqual(["freshTailCount"]);
    expect(complete("lcm", "completion", "")).toEqual(["bash", "zsh", "fish"]);
    expect(complete("lcm", "status", "--j")).toEqual(["--json"]);
  });
});

describe("zsh", () => {
  test("the script names every command", () => {
    expect(zsh.startsWith("#compdef lcm\n")).toBe(true);
    for (const word of ["status", "messages list", "config explain"]) expect(zsh).toContain(`'${word}')`);
  });

  test.skipIf(!has("zsh"))("the script parses", () => {
    expect(spawnSync("zsh", ["-n"], { input: zsh, encoding: "utf8" })).toMatchObject({
      status: 0,
      stderr: "",
    });
  });
});

test("with --json the script and help are members of one object, as everything is", async () => {
  const script = parseEnvelope(await run(["completion", "zsh", "--json"]));
  expect(script).toMatchObject({ ok: true, command: "completion", data: { shell: "zsh", script: zsh } });
  const help = parseEnvelope(await run(["help", "messages", "list", "--json"]));
  expect(help.data["text"]).toContain("Usage: lcm messages list");
});

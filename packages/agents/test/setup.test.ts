/** Entries in other agents' configuration: shown, written, written once, and taken back as if nothing had been. */
import { mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { makeTemporaryDirectory } from "@lossless/testkit";
import { describe, expect, test } from "vitest";
import { applySetup, planRemoval, planSetup } from "../src/index.ts";
import type { SetupAgent, SetupRequest } from "../src/index.ts";

const command = ["/opt/node", "/opt/lcm.js", "mcp", "--db", "/data/lcm.db"];

function prepare(agent: SetupAgent, text: string | null): { request: SetupRequest; path: string } {
  const home = makeTemporaryDirectory();
  const path = join(home, agent === "codex" ? ".codex/config.toml" : ".claude.json");
  mkdirSync(dirname(path), { recursive: true });
  if (text !== null) writeFileSync(path, text);
  mkdirSync(join(home, "data"));
  return { request: { agent, env: {}, home, command, database: join(home, "data/lcm.db") }, path };
}

const CONFIGS: Record<SetupAgent, readonly (string | null)[]> = {
  "claude-code": [
    null,
    "{}",
    '{"a":1,"mcpServers":{"x":{"command":"x"}}}',
    '{\n    "z": [1],\n    "a": {}\n}\n',
  ],
  codex: [null, "", 'model = "x"', '# a comment\n[mcp_servers.other]\ncommand = "y"\n'],
};

describe.each(Object.entries(CONFIGS))("%s", (agent, texts) => {
  test.each(texts.map((text) => [text]))("%j is changed once, and given back byte for byte", (text) => {
    const { request, path } = prepare(agent as SetupAgent, text);
    const edit = planSetup(request);
    expect(edit.before).toBe(text);
    applySetup(request, edit, false);
    expect(readFileSync(path, "utf8")).toContain("lcm.js");
    const again = planSetup(request);
    expect(again.after).toBe(again.before);
    // Another command line, for the same original.
    const moved = { ...request, command: ["/usr/bin/lcm", "mcp"] };
    applySetup(moved, planSetup(moved), false);
    expect(readFileSync(path, "utf8")).not.toContain("lcm.js");
    applySetup(request, planRemoval(request), true);
    expect(planSetup(request).before).toBe(text);
    expect(readdirSync(dirname(request.database))).toEqual([]);
  });

  test("only our entry goes when somebody else has changed the file", () => {
    const isCodex = agent === "codex";
    const { request, path } = prepare(agent as SetupAgent, isCodex ? "a = 1\n" : '{\n  "a": 1\n}\n');
    applySetup(request, planSetup(request), false);
    const written = readFileSync(path, "utf8");
    writeFileSync(path, isCodex ? `${written}[x]\nb = 2\n` : written.replace('"a": 1', '"a": 2'));
    applySetup(request, planRemoval(request), true);
    expect(readFileSync(path, "utf8")).toBe(isCodex ? "a = 1\n[x]\nb = 2\n" : '{\n  "a": 2\n}\n');
    const nothing = planRemoval(request);
    expect(nothing.after).toBe(nothing.before);
  });

  test("a file that was written since it was looked at is left alone, and a link stays one", () => {
    const { request, path } = prepare(agent as SetupAgent, null);
    const real = join(dirname(path), "real");
    writeFileSync(real, agent === "codex" ? "" : "{}");
    symlinkSync(real, path);
    const edit = planSetup(request);
    writeFileSync(real, agent === "codex" ? "a = 1\n" : '{"a":1}');
    expect(() => applySetup(request, edit, false)).toThrow("another program has just written it");
    applySetup(request, planSetup(request), false);
    expect(readFileSync(real, "utf8")).toContain("lossless");
  });
});

test("what cannot be changed safely is refused", () => {
  expect(() => planSetup(prepare("claude-code", "{broken").request)).toThrow("not a JSON object");
  const taken = prepare("codex", '[mcp_servers.lossless]\ncommand = "mine"\n');
  expect(() => planSetup(taken.request)).toThrow("has an MCP server named lossless already");
});

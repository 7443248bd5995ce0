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

describe("what cannot be changed safely is refused, and left as it is", () => {
  test.each<[SetupAgent, string | Uint8Array, string]>([
    ["claude-code", "{broken", "not a JSON object"],
    ["claude-code", '{"mcpServers":["mine"]}', "mcpServers is not an object"],
    ["claude-code", '{"mcpServers":{"lossless":{"command":"mine","args":[]}}}', "lossless already"],
    ["claude-code", Buffer.from('{"name":"caf\xe9"}', "latin1"), "not UTF-8"],
    ["codex", '[mcp_servers.lossless]\ncommand = "mine"\n', "lossless already"],
    ["codex", '[ mcp_servers . "lossless" ] # mine\ncommand = "mine"\n', "lossless already"],
    ["codex", "[mcp_servers.lossless.env]\nA = 'b'\n", "lossless already"],
    ["codex", '[mcp_servers]\nother = {}\n\nlossless = { command = "mine" }\n', "lossless already"],
    ["codex", 'mcp_servers.lossless.command = "mine"\n', "lossless already"],
    ["codex", "mcp_servers = {}\n", "lossless already"],
  ])("%s: %j", (agent, content, message) => {
    const { request, path } = prepare(agent, null);
    writeFileSync(path, content);
    expect(() => applySetup(request, planSetup(request), false)).toThrow(message);
    expect(readFileSync(path).equals(Buffer.from(content))).toBe(true);
  });

  test("a folder, and a link that leads nowhere", () => {
    const { request, path } = prepare("claude-code", null);
    symlinkSync(join(dirname(path), "gone"), path);
    expect(() => planSetup(request)).toThrow("cannot change");
    const other = prepare("claude-code", null);
    mkdirSync(other.path);
    expect(() => planSetup(other.request)).toThrow("cannot change");
  });
});

test("an entry of somebody else under the same name is not taken out", () => {
  const { request } = prepare("claude-code", '{"mcpServers":{"lossless":{"command":"mine"}}}');
  const { before, after } = planRemoval(request);
  expect(after).toBe(before);
});

test("a table of another profile, or of another server, is no reason to refuse", () => {
  const text = '[profiles.a]\nmcp_servers = {}\n[mcp_servers.lossless2]\ncommand = "x"\nlossless = 1\n';
  expect(planSetup(prepare("codex", text).request).after).toContain(text);
});

test.each(["claude-code", "codex"] as const)("no entry is left of a second command line: %s", (agent) => {
  const { request, path } = prepare(agent, agent === "codex" ? "a = 1\n" : '{\n  "a": 1\n}\n');
  applySetup(request, planSetup(request), false);
  const written = readFileSync(path, "utf8");
  writeFileSync(path, agent === "codex" ? written.replace("a = 1", "a = 2") : written.replace("1", "2"));
  const moved = { ...request, command: ["/usr/bin/lcm", "mcp"] };
  applySetup(moved, planSetup(moved), false);
  applySetup(moved, planRemoval(moved), true);
  expect(readFileSync(path, "utf8")).toBe(agent === "codex" ? "a = 2\n" : '{\n  "a": 2\n}\n');
});

test("a record that was cut short is no hindrance", () => {
  const { request, path } = prepare("claude-code", '{"a":1}');
  applySetup(request, planSetup(request), false);
  const record = `${request.database}.setup-claude-code.json`;
  writeFileSync(record, readFileSync(record, "utf8").slice(0, 10));
  applySetup(request, planRemoval(request), true);
  expect(readFileSync(path, "utf8")).toBe('{"a":1}');
});

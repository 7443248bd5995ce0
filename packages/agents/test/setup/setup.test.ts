/** What setup writes into the files of agents: shown, written once, and taken back as if nothing had been. */
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { dirname, join, relative } from "node:path";
import { makeTemporaryDirectory, makeTemporaryFolder } from "@lossless/testkit";
import { fc } from "@lossless/testkit/properties.ts";
import { describe, expect, test } from "vitest";
import { applySetup, detectAgents, planRemoval, planSetup, SETUP_AGENTS } from "../../src/index.ts";
import type { SetupAgent, SetupRequest } from "../../src/index.ts";
import { configText } from "./config-text.ts";

const command = ["/opt/node", "/opt/lcm.js", "mcp", "--db", "/data/lcm.db"];
const tools = [{ name: "lcm_grep", title: "Search", description: "Find", parameters: { type: "object" } }];

function makeRequest(agent: SetupAgent, home: string): SetupRequest {
  return { agent, env: {}, home, command, tools, database: join(home, "data", "lcm.db") };
}

/** A home with some files of the agent. */
function prepare(agent: SetupAgent, files: Readonly<Record<string, string>> = {}): SetupRequest {
  const home = makeTemporaryDirectory();
  fill(home, files);
  return makeRequest(agent, home);
}

function fill(home: string, files: Readonly<Record<string, string>>): void {
  mkdirSync(join(home, "data"));
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(home, name)), { recursive: true });
    writeFileSync(join(home, name), text);
  }
}

/** Every file and folder below, with what is in it. */
function readAll(folder: string): Record<string, string | null> {
  const all = readdirSync(folder, { recursive: true, withFileTypes: true });
  return Object.fromEntries(
    all
      .map((entry) => join(entry.parentPath, entry.name))
      .toSorted()
      .map((path) => [
        relative(folder, path),
        statSync(path).isDirectory() ? null : readFileSync(path, "utf8"),
      ]),
  );
}

const apply = (request: SetupRequest): void => applySetup(request, planSetup(request), false);
const remove = (request: SetupRequest): void => applySetup(request, planRemoval(request), true);
const changes = (edits: ReturnType<typeof planSetup>): string[] =>
  edits.filter(({ before, after }) => before !== after).map(({ path }) => path);

/** The files of each agent that others write too, and what must be in them afterwards. */
const SHARED: Readonly<Record<SetupAgent, readonly (readonly [file: string, has: string])[]>> = {
  "claude-code": [
    [".claude.json", '"lossless"'],
    [".claude/settings.json", "claude-code.sh SessionStart"],
  ],
  codex: [
    [".codex/config.toml", "required = true"],
    [".codex/hooks.json", "codex.sh Stop"],
  ],
  gemini: [[".gemini/settings.json", "gemini-cli.sh AfterAgent"]],
  opencode: [[".config/opencode/opencode.json", '"local"']],
  pi: [],
  cursor: [[".cursor/mcp.json", '"lossless"']],
  copilot: [[".copilot/mcp-config.json", '"lossless"']],
};

describe.each(SETUP_AGENTS.map((agent) => [agent]))("%s", (agent) => {
  test("where nothing is: written, written once, and everything gone again", () => {
    const request = prepare(agent);
    const before = readAll(request.home);
    const planned = planSetup(request);
    expect(readAll(request.home)).toEqual(before);
    applySetup(request, planned, false);
    for (const { path } of planned) expect(statSync(path).mode & 0o077, path).toBe(0);
    for (const [file, has] of SHARED[agent])
      expect(readFileSync(join(request.home, file), "utf8"), file).toContain(has);
    expect(planned.some(({ path }) => path.endsWith("lossless-recall/SKILL.md"))).toBe(true);
    expect(changes(planSetup(request))).toEqual([]);
    remove(request);
    expect(readAll(request.home)).toEqual(before);
    expect(changes(planRemoval(request))).toEqual([]);
  });

  test("with any configuration around: the others' bytes stay, and removing gives all back", () => {
    fc.assert(
      fc.property(configText(), fc.boolean(), (text, isMoved) => {
        using folder = makeTemporaryFolder();
        const isToml = (file: string): boolean => file.endsWith(".toml");
        const files = SHARED[agent].map(([file]) => [file, isToml(file) ? toToml(text) : text] as const);
        fill(folder.path, Object.fromEntries(files));
        const request = makeRequest(agent, folder.path);
        const before = readAll(folder.path);
        apply(request);
        for (const [file] of files)
          for (const digits of text.match(/\d{17,}/gu) ?? [])
            expect(readFileSync(join(folder.path, file), "utf8")).toContain(digits);
        // Another command line, for the same original.
        const moved = isMoved ? { ...request, command: ["/usr/bin/lcm", "mcp"] } : request;
        apply(moved);
        expect(changes(planSetup(moved))).toEqual([]);
        remove(moved);
        expect(readAll(folder.path)).toEqual(before);
      }),
      { numRuns: 30 },
    );
  });

  test("when somebody else has written since, only ours goes", () => {
    fc.assert(
      fc.property(configText(), (text) => {
        using folder = makeTemporaryFolder();
        const files = SHARED[agent].filter(([file]) => !file.endsWith(".toml")).map(([file]) => file);
        fill(folder.path, Object.fromEntries(files.map((file) => [file, text])));
        const request = makeRequest(agent, folder.path);
        apply(request);
        for (const file of files) {
          const path = join(folder.path, file);
          const written = readFileSync(path, "utf8");
          const at = written.indexOf("{") + 1;
          writeFileSync(path, `${written.slice(0, at)}"theirs":12345678901234567890,${written.slice(at)}`);
        }
        remove(request);
        for (const file of files) {
          const left = readFileSync(join(folder.path, file), "utf8");
          const at = text.indexOf("{") + 1;
          const wanted = `${text.slice(0, at)}"theirs":12345678901234567890,${text.slice(at)}`;
          // Where the brackets were empty, the space in them is not known, nor who wrote the comma.
          if (/^\{\s*\}/u.test(text)) expect(left).toContain('{"theirs":12345678901234567890');
          else expect(left).toBe(wanted);
        }
      }),
      { numRuns: 30 },
    );
  });
});

/** Any lines are TOML as comments; the point is that they stay. */
const toToml = (text: string): string => text.replaceAll(/^/gmu, "# ");

test("a status line and hooks of the user stay, and ours comes beside them or not at all", () => {
  const theirs = {
    statusLine: { type: "command", command: "mine" },
    hooks: { Stop: [{ hooks: [{ type: "command", command: "notify" }] }] },
  };
  const request = prepare("claude-code", { ".claude/settings.json": JSON.stringify(theirs) });
  const edit = planSetup(request).find(({ path }) => path.endsWith("settings.json"))!;
  expect(edit.left).toEqual(["statusLine"]);
  apply(request);
  const settings = JSON.parse(readFileSync(edit.path, "utf8")) as typeof theirs;
  expect(settings.statusLine).toEqual(theirs.statusLine);
  expect(settings.hooks.Stop).toHaveLength(2);
  expect(settings.hooks.Stop[0]).toEqual(theirs.hooks.Stop[0]);
});

test("a hook that the user put beside ours, in its group, stays", () => {
  const request = prepare("claude-code");
  apply(request);
  const settings = join(request.home, ".claude", "settings.json");
  const parsed = JSON.parse(readFileSync(settings, "utf8")) as {
    hooks: Record<string, { hooks: { command: string }[] }[]>;
  };
  const own = { type: "command", command: "notify-send done" };
  parsed.hooks["Stop"]?.[0]?.hooks.push(own);
  writeFileSync(settings, JSON.stringify(parsed, null, 2));
  expect(changes(planSetup(request))).toEqual([]);
  // Another archive: ours is brought up to date, and nothing else.
  const moved = { ...request, database: join(request.home, "data", "other.db") };
  apply(moved);
  const stop = (JSON.parse(readFileSync(settings, "utf8")) as typeof parsed).hooks["Stop"];
  expect(stop).toHaveLength(1);
  expect(stop?.[0]?.hooks).toMatchObject([{ command: expect.stringContaining("other.db") as string }, own]);
  remove(moved);
  expect(JSON.parse(readFileSync(settings, "utf8"))).toEqual({ hooks: { Stop: [{ hooks: [own] }] } });
});

test("only our entry goes from a TOML file that somebody else has changed", () => {
  const request = prepare("codex", { ".codex/config.toml": "a = 1\n" });
  apply(request);
  const path = join(request.home, ".codex/config.toml");
  writeFileSync(path, `${readFileSync(path, "utf8")}[x]\nb = 2\n`);
  remove(request);
  expect(readFileSync(path, "utf8")).toBe("a = 1\n[x]\nb = 2\n");
});

test("a file of ours that somebody has changed is left, and said so", () => {
  const request = prepare("codex");
  apply(request);
  const skill = join(request.home, ".codex/skills/lossless-recall/SKILL.md");
  writeFileSync(skill, "mine now\n");
  const edit = planRemoval(request).find(({ path }) => path === skill)!;
  expect(edit).toMatchObject({ after: "mine now\n", left: ["the file"] });
  remove(request);
  expect(existsSync(skill)).toBe(true);
  expect(existsSync(join(request.home, ".codex/hooks.json"))).toBe(false);
});

test("a file that was written since it was looked at is left alone, and a link stays one", () => {
  const request = prepare("claude-code");
  const real = join(request.home, "real.json");
  writeFileSync(real, "{}");
  symlinkSync(real, join(request.home, ".claude.json"));
  const edits = planSetup(request);
  writeFileSync(real, '{"a":1}');
  const before = readAll(request.home);
  expect(() => applySetup(request, edits, false)).toThrow("another program has just written it");
  expect(readAll(request.home)).toEqual(before);
  apply(request);
  expect(readFileSync(real, "utf8")).toContain("lossless");
  remove(request);
  expect(readAll(request.home)).toEqual(before);
});

describe("what cannot be changed safely is refused, and left as it is", () => {
  test.each<[SetupAgent, string, string | Uint8Array, string]>([
    ["claude-code", ".claude.json", "{broken", "not a JSON object"],
    ["claude-code", ".claude.json", '{"mcpServers":["mine"]}', "mcpServers is not an object"],
    [
      "claude-code",
      ".claude.json",
      '{"mcpServers":{"lossless":{"command":"mine","args":[]}}}',
      "already has an entry named lossless",
    ],
    ["claude-code", ".claude.json", Buffer.from('{"name":"caf\xe9"}', "latin1"), "not UTF-8"],
    ["claude-code", ".claude/settings.json", '{"hooks":{"Stop":{}}}', "hooks.Stop is not an array"],
    [
      "codex",
      ".codex/config.toml",
      '[mcp_servers.lossless]\ncommand = "mine"\n',
      "already has an entry named lossless",
    ],
    [
      "codex",
      ".codex/config.toml",
      '[ mcp_servers . "lossless" ] # mine\n',
      "already has an entry named lossless",
    ],
    [
      "codex",
      ".codex/config.toml",
      "[mcp_servers.lossless.env]\nA = 'b'\n",
      "already has an entry named lossless",
    ],
    [
      "codex",
      ".codex/config.toml",
      "[mcp_servers]\no = {}\n\nlossless = { a = 1 }\n",
      "already has an entry named lossless",
    ],
    [
      "codex",
      ".codex/config.toml",
      'mcp_servers.lossless.command = "mine"\n',
      "already has an entry named lossless",
    ],
    ["codex", ".codex/config.toml", "mcp_servers = {}\n", "already has an entry named lossless"],
    ["pi", ".pi/agent/extensions/lossless.js", "// mine\n", "another file is there"],
  ])("%s, %s: %j", (agent, file, content, message) => {
    const request = prepare(agent, { [file]: "" });
    writeFileSync(join(request.home, file), content);
    const before = readAll(request.home);
    expect(() => apply(request)).toThrow(message);
    expect(readAll(request.home)).toEqual(before);
    expect(readFileSync(join(request.home, file)).equals(Buffer.from(content))).toBe(true);
  });

  test("a folder, and a link that leads nowhere", () => {
    const link = prepare("claude-code");
    symlinkSync(join(link.home, "gone"), join(link.home, ".claude.json"));
    expect(() => planSetup(link)).toThrow("cannot change");
    const folder = prepare("claude-code");
    mkdirSync(join(folder.home, ".claude.json"));
    expect(() => planSetup(folder)).toThrow("cannot change");
  });
});

test("an empty file is like none, and one that somebody emptied since stays empty", () => {
  const request = prepare("claude-code", { ".claude.json": "" });
  const path = join(request.home, ".claude.json");
  apply(request);
  expect(JSON.parse(readFileSync(path, "utf8"))).toHaveProperty("mcpServers.lossless");
  remove(request);
  expect(readFileSync(path, "utf8")).toBe("");
  apply(request);
  writeFileSync(path, "\n");
  remove(request);
  expect(readFileSync(path, "utf8")).toBe("\n");
});

test("an entry of somebody else under the same name is not taken out", () => {
  const request = prepare("claude-code", {
    ".claude.json": '{"mcpServers":{"lossless":{"command":"mine"}}}',
  });
  expect(changes(planRemoval(request))).toEqual([]);
});

test("a table of another profile, or of another server, is no reason to refuse", () => {
  const text = '[profiles.a]\nmcp_servers = {}\n[mcp_servers.lossless2]\ncommand = "x"\nlossless = 1\n';
  const [edit] = planSetup(prepare("codex", { ".codex/config.toml": text }));
  expect(edit?.after).toContain(text);
});

test("a record that was cut short is no hindrance", () => {
  const request = prepare("claude-code", { ".claude.json": '{"a":1}' });
  apply(request);
  const record = `${request.database}.setup-claude-code.json`;
  writeFileSync(record, readFileSync(record, "utf8").slice(0, 10));
  remove(request);
  expect(readFileSync(join(request.home, ".claude.json"), "utf8")).toBe('{"a":1}');
});

test("OpenCode's file with comments is used where it is", () => {
  const text = '{\n  // mine\n  "theme": "x",\n}\n';
  const request = prepare("opencode", { ".config/opencode/opencode.jsonc": text });
  apply(request);
  const path = join(request.home, ".config/opencode/opencode.jsonc");
  expect(readFileSync(path, "utf8")).toContain('  // mine\n  "theme": "x",\n  "mcp": {');
  expect(existsSync(path.slice(0, -1))).toBe(false);
  remove(request);
  expect(readFileSync(path, "utf8")).toBe(text);
});

test("an agent is found by its folder or by its command", () => {
  const request = prepare("pi", { ".codex/config.toml": "", "bin/gemini": "" });
  const found = (): string[] =>
    detectAgents({ ...request, env: { PATH: join(request.home, "bin") } })
      .filter(({ isPresent }) => isPresent)
      .map(({ agent }) => agent);
  expect(found()).toEqual(["codex"]);
  writeFileSync(join(request.home, "bin/claude"), "", { mode: 0o700 });
  expect(found()).toEqual(["claude-code", "codex"]);
});

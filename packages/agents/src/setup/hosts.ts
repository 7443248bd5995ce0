/** Every agent that can be set up: where it is, and which entries of ours go into which of its files, in its own format. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { renderCommandLine } from "@lossless/core/doors";
import { isObject } from "@lossless/core/formats";
import { listHookEvents, type HookAgent } from "../hooks/events.ts";
import { findCaptureFolder, findHookScript } from "../hooks/folder.ts";
import { renderHookCommand, renderHookScript } from "../hooks/script.ts";
import type { Entry, JsonEntry } from "./entries.ts";
import { renderPiExtension, type ToolDescription } from "./pi-extension.ts";
import { SKILL, SKILL_NAME } from "./skill.ts";
import { renderStatusLine } from "./status-line.ts";

export const SETUP_AGENTS = [
  "claude-code",
  "codex",
  "gemini",
  "opencode",
  "pi",
  "cursor",
  "copilot",
] as const;
export type SetupAgent = (typeof SETUP_AGENTS)[number];

export interface SetupRequest {
  readonly agent: SetupAgent;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly home: string;
  /** The command of the MCP server: a program and its arguments. */
  readonly command: readonly string[];
  /** The setup record and the scripts of hooks are beside it. */
  readonly database: string;
  /** The tools of that server, for an agent that cannot query it. */
  readonly tools: readonly ToolDescription[];
}

/** A file of an agent, or beside the database, with our entries for it. */
export interface HostFile {
  readonly path: string;
  readonly entries: readonly Entry[];
}

interface Host {
  folder(request: SetupRequest): string;
  /** Commands whose presence shows that it is installed. */
  readonly programs: readonly string[];
  files(request: SetupRequest, folder: string): readonly HostFile[];
  /** Notes for the user. */
  readonly notes: readonly string[];
}

/** The name of the server in agents. Hosts use it as a prefix for tool names. */
const NAME = "lossless";

const HOSTS: Readonly<Record<SetupAgent, Host>> = {
  "claude-code": {
    folder: ({ env, home }) => env["CLAUDE_CONFIG_DIR"] || join(home, ".claude"),
    programs: ["claude"],
    files: (request, folder) => [
      {
        path: join(request.env["CLAUDE_CONFIG_DIR"] || request.home, ".claude.json"),
        // Without `alwaysLoad` the first turn begins before the tools are available.
        entries: [nameServer(["mcpServers"], { type: "stdio", ...splitCommand(request), alwaysLoad: true })],
      },
      {
        path: join(folder, "settings.json"),
        entries: [...nameHooks(request, "claude-code"), nameStatusLine(request)],
      },
      ...placeScripts(request, "claude-code"),
      { path: findStatusScript(request), entries: [ownFile(renderStatusLine(request.database))] },
      placeSkill(folder),
    ],
    notes: ["Restart Claude Code. Its /hooks and /mcp show the entries."],
  },
  codex: {
    folder: ({ env, home }) => env["CODEX_HOME"] || join(home, ".codex"),
    programs: ["codex"],
    files: (request, folder) => [
      { path: join(folder, "config.toml"), entries: [nameServerInToml(request)] },
      { path: join(folder, "hooks.json"), entries: nameHooks(request, "codex") },
      ...placeScripts(request, "codex"),
      placeSkill(folder),
    ],
    notes: [
      "Codex runs no hook before you trust it, and says nothing about it. Start codex, type /hooks, and trust the entries of lossless-claw. lcm status says when they have never fired. Trust them again after an update that changes them.",
    ],
  },
  gemini: {
    folder: ({ home }) => join(home, ".gemini"),
    programs: ["gemini"],
    files: (request, folder) => [
      {
        path: join(folder, "settings.json"),
        entries: [
          nameServer(["mcpServers"], splitCommand(request)),
          ...nameHooks(request, "gemini-cli", MILLISECONDS),
        ],
      },
      ...placeScripts(request, "gemini-cli"),
      placeSkill(folder),
    ],
    notes: [
      "Restart Gemini CLI. It tells hooks nothing after it has compressed a chat, so no restart bundle is handed over; the tools work.",
    ],
  },
  opencode: {
    folder: ({ env, home }) => join(env["XDG_CONFIG_HOME"] || join(home, ".config"), "opencode"),
    programs: ["opencode"],
    files: (request, folder) => [
      {
        path: findOpencodeConfig(folder),
        entries: [
          nameServer(["mcp"], { type: "local", command: [...request.command], enabled: true }, "command"),
        ],
      },
      placeSkill(folder),
    ],
    notes: ["Restart OpenCode. It has no hooks that are commands; lcm watch follows its database."],
  },
  pi: {
    folder: ({ env, home }) => env["PI_CODING_AGENT_DIR"] || join(home, ".pi", "agent"),
    programs: ["pi"],
    files: (request, folder) => [
      {
        path: join(folder, "extensions", "lossless.js"),
        entries: [ownFile(renderPiExtension(request.command, request.tools))],
      },
      placeSkill(folder),
    ],
    notes: ["Restart pi. It has no MCP of its own: the extension gives it the tools."],
  },
  cursor: {
    folder: ({ home }) => join(home, ".cursor"),
    programs: ["cursor", "cursor-agent"],
    files: (request, folder) => [
      {
        path: join(folder, "mcp.json"),
        entries: [nameServer(["mcpServers"], { type: "stdio", ...splitCommand(request) })],
      },
      placeSkill(folder),
    ],
    notes: [
      "Written from Cursor's documentation, and never tried with the real program. lcm watch does not follow Cursor's sessions yet, so no hooks are written.",
    ],
  },
  copilot: {
    folder: ({ env, home }) => env["COPILOT_HOME"] || join(home, ".copilot"),
    programs: ["copilot"],
    files: (request, folder) => [
      {
        path: join(folder, "mcp-config.json"),
        entries: [nameServer(["mcpServers"], { type: "local", ...splitCommand(request), tools: ["*"] })],
      },
      {
        path: join(folder, "hooks", "lossless.json"),
        entries: [ownFile(renderCopilotHooks(request))],
      },
      ...placeScripts(request, "copilot"),
      placeSkill(folder),
    ],
    notes: ["Written from the documentation of Copilot CLI, and never tried with the real program."],
  },
};

export const findAgentFolder = (request: SetupRequest): string => HOSTS[request.agent].folder(request);
export const listPrograms = (agent: SetupAgent): readonly string[] => HOSTS[agent].programs;
export const listNotes = (agent: SetupAgent): readonly string[] => HOSTS[agent].notes;
export const listFiles = (request: SetupRequest): readonly HostFile[] =>
  HOSTS[request.agent].files(request, findAgentFolder(request));

/** OpenCode reads both; users who write comments have the second. */
function findOpencodeConfig(folder: string): string {
  const withComments = join(folder, "opencode.jsonc");
  return existsSync(withComments) ? withComments : join(folder, "opencode.json");
}

const ownFile = (text: string): Entry => ({ kind: "file", text });

const placeSkill = (folder: string): HostFile => ({
  path: join(folder, "skills", SKILL_NAME, "SKILL.md"),
  entries: [ownFile(SKILL)],
});

const placeScripts = ({ database }: SetupRequest, agent: HookAgent): HostFile[] => [
  { path: findHookScript(database, agent), entries: [ownFile(renderHookScript(database, agent))] },
];

function splitCommand({ command }: SetupRequest): { command: string; args: string[] } {
  const [program = "", ...args] = command;
  return { command: program, args };
}

/** An entry of ours runs the command `mcp`, whatever starts it. */
const nameServer = (
  path: readonly string[],
  value: object,
  words: "args" | "command" = "args",
): JsonEntry => ({
  kind: "json",
  path,
  key: NAME,
  value,
  isOurs: (entry) => isObject(entry) && Array.isArray(entry[words]) && entry[words].includes("mcp"),
  whenTaken: "refuse",
});

const nameServerInToml = (request: SetupRequest): Entry => {
  const { command, args } = splitCommand(request);
  return {
    kind: "block",
    table: ["mcp_servers", NAME],
    // Without `required` the first turn begins before the tools are available.
    lines: [`command = ${JSON.stringify(command)}`, `args = ${JSON.stringify(args)}`, "required = true"],
  };
};

/** A hook takes a few milliseconds; this timeout ends one that hangs. */
const HOOK_SECONDS = 5;
const MILLISECONDS = 1000;

/** The format of Claude Code, Codex and Gemini CLI: a group of hooks for a matcher; without one it is for all. */
const nameHooks = ({ database }: SetupRequest, agent: HookAgent, perSecond = 1): JsonEntry[] =>
  listHookEvents(agent).map(({ name }) => {
    const hook = {
      type: "command",
      command: renderHookCommand(database, agent, name),
      timeout: HOOK_SECONDS * perSecond,
    };
    const isOurs = (value: unknown): boolean => isOurHook(value, agent);
    return {
      kind: "json",
      path: ["hooks", name],
      key: null,
      value: { hooks: [hook] },
      isOurs: (group) => listHooks(group).length > 0 && listHooks(group).every(isOurs),
      list: { key: "hooks", ours: hook, isOurs },
      whenTaken: "leave",
    };
  });

/** Also matches a hook of another archive: hooks of two would store everything in both. */
const isOurHook = (hook: unknown, agent: HookAgent): boolean =>
  isObject(hook) &&
  typeof hook["command"] === "string" &&
  hook["command"].includes(`.capture/hooks/${agent}.sh`);

const listHooks = (group: unknown): unknown[] =>
  isObject(group) && Array.isArray(group["hooks"]) ? (group["hooks"] as unknown[]) : [];

const findStatusScript = ({ database }: SetupRequest): string =>
  join(findCaptureFolder(database), "hooks", "status-line.sh");

const nameStatusLine = (request: SetupRequest): JsonEntry => ({
  kind: "json",
  path: [],
  key: "statusLine",
  value: { type: "command", command: `sh ${renderCommandLine([findStatusScript(request)])}` },
  isOurs: (value) =>
    isObject(value) &&
    typeof value["command"] === "string" &&
    value["command"].includes(".capture/hooks/status-line.sh"),
  whenTaken: "leave",
});

/** A separate file, so that no other file is touched. */
function renderCopilotHooks({ database }: SetupRequest): string {
  const hooks = listHookEvents("copilot").map(({ name }) => [
    name,
    [{ type: "command", bash: renderHookCommand(database, "copilot", name), timeoutSec: HOOK_SECONDS }],
  ]);
  return `${JSON.stringify({ version: 1, hooks: Object.fromEntries(hooks) }, null, 2)}\n`;
}

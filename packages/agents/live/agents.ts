/** The five agents of the live test: their configuration for the fake model, how each takes a turn and compacts, and where it writes. */
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import type { SetupAgent } from "../src/index.ts";

export interface Place {
  readonly home: string;
  /** The folder the agent works in. */
  readonly project: string;
  readonly model: string;
  /** Where the programs are installed. */
  readonly tools: string;
}

export interface Invocation {
  readonly program: string;
  readonly args: readonly string[];
}

export interface LiveAgent {
  readonly name: SetupAgent;
  /** Its name in the archive. */
  readonly stored: string;
  readonly env: (place: Place) => Record<string, string>;
  /** Its own configuration, before setup. */
  configure(place: Place): void;
  turn(place: Place, prompt: string, session: string | null): Invocation;
  /** The command that compacts; null where only a large number of tokens does. */
  compact(place: Place, session: string): Invocation | null;
  /** The prompt whose answer triggers compaction, where there is no command. */
  readonly fill: string;
  /** Its request to the model for a compaction. */
  readonly compaction: RegExp;
  /** Finds the session's id in the output of the first turn. */
  findSession(output: string): string | null;
  /** Whether a restart bundle comes with the request after a compaction. */
  readonly hasBundle: boolean;
}

const write = (path: string, text: string): void => {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text);
};

const json = (value: object): string => `${JSON.stringify(value, null, 2)}\n`;

const CLAUDE: LiveAgent = {
  name: "claude-code",
  stored: "claude-code",
  env: ({ model }) => ({
    ANTHROPIC_BASE_URL: model,
    ANTHROPIC_API_KEY: "x",
    CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1",
    DISABLE_AUTOUPDATER: "1",
  }),
  configure: ({ home }) => write(join(home, ".claude/settings.json"), '{\n  "note": 90071992547409931\n}\n'),
  turn: ({ tools }, prompt, session) => ({
    program: join(tools, "node_modules/@anthropic-ai/claude-code-linux-x64/claude"),
    args: [
      "-p",
      prompt,
      "--output-format",
      "json",
      "--allowedTools",
      "mcp__lossless",
      ...(session === null ? [] : ["-r", session]),
    ],
  }),
  compact: (place, session) => CLAUDE.turn(place, "/compact keep the facts", session),
  fill: "",
  compaction: /summary/u,
  findSession: (output) => /"session_id":"([^"]+)"/u.exec(output)?.[1] ?? null,
  hasBundle: true,
};

const CODEX: LiveAgent = {
  name: "codex",
  stored: "codex",
  env: ({ home }) => ({ CODEX_HOME: join(home, ".codex"), FAKE_KEY: "x" }),
  configure: ({ home, model }) =>
    write(
      join(home, ".codex/config.toml"),
      `# mine
model = "gpt-5.2-codex"
model_provider = "fake"
model_auto_compact_token_limit = 5000

[model_providers.fake]
name = "fake"
base_url = "${model}/v1"
wire_api = "responses"
env_key = "FAKE_KEY"
`,
    ),
  turn: ({ tools }, prompt, session) => ({
    program: join(tools, "node_modules/.bin/codex"),
    args: [
      "exec",
      ...(session === null ? [] : ["resume", session]),
      "--skip-git-repo-check",
      "--json",
      // Replaces the user's confirmation in /hooks.
      "--dangerously-bypass-hook-trust",
      prompt,
    ],
  }),
  compact: () => null,
  fill: "SAY enough. FILL 9000",
  compaction: /summary/iu,
  findSession: (output) => /"thread_id":"([^"]+)"/u.exec(output)?.[1] ?? null,
  hasBundle: true,
};

const GEMINI: LiveAgent = {
  name: "gemini",
  stored: "gemini-cli",
  env: ({ model }) => ({
    GEMINI_API_KEY: "x",
    GOOGLE_GEMINI_BASE_URL: model,
    GEMINI_CLI_TRUST_WORKSPACE: "true",
    GEMINI_CLI_NO_RELAUNCH: "true",
  }),
  configure: ({ home }) =>
    write(
      join(home, ".gemini/settings.json"),
      `{
  // mine
  "security": { "auth": { "selectedType": "gemini-api-key" } },
  "general": { "disableAutoUpdate": true },
  "privacy": { "usageStatisticsEnabled": false }
}
`,
    ),
  turn: ({ tools }, prompt, session) => ({
    program: join(tools, "node_modules/.bin/gemini"),
    args: [
      "-p",
      prompt,
      "-m",
      "gemini-2.5-flash",
      "--approval-mode",
      "yolo",
      "--output-format",
      "json",
      ...(session === null ? [] : ["--resume", session]),
    ],
  }),
  compact: () => null,
  // It counts within one prompt only, so the prompt needs a second request.
  fill: 'CALL lcm_grep {"pattern":"turn","mode":"full_text"} FILL 900000',
  compaction: /snapshot|summar/iu,
  findSession: (output) => /"session_id":\s*"([^"]+)"/u.exec(output)?.[1] ?? null,
  hasBundle: false,
};

const OPENCODE: LiveAgent = {
  name: "opencode",
  stored: "opencode",
  env: ({ home }) => ({
    XDG_CONFIG_HOME: join(home, ".config"),
    XDG_DATA_HOME: join(home, ".local/share"),
    XDG_STATE_HOME: join(home, ".local/state"),
    XDG_CACHE_HOME: join(home, ".cache"),
    OPENCODE_DISABLE_AUTOUPDATE: "1",
    OPENCODE_DISABLE_MODELS_FETCH: "1",
  }),
  configure: ({ home, model }) =>
    write(
      join(home, ".config/opencode/opencode.json"),
      json({
        model: "fake/fake",
        provider: {
          fake: {
            npm: "@ai-sdk/openai-compatible",
            options: { baseURL: `${model}/v1`, apiKey: "x" },
            models: { fake: { name: "fake", limit: { context: 20_000, output: 2000 }, tool_call: true } },
          },
        },
      }),
    ),
  turn: ({ tools }, prompt, session) => ({
    program: join(tools, "node_modules/opencode-linux-x64/bin/opencode"),
    args: ["run", "--format", "json", ...(session === null ? [] : ["-s", session]), prompt],
  }),
  compact: () => null,
  fill: "SAY enough. FILL 19500",
  compaction: /summar/iu,
  findSession: (output) => /"sessionID":"([^"]+)"/u.exec(output)?.[1] ?? null,
  hasBundle: false,
};

const PI: LiveAgent = {
  name: "pi",
  stored: "pi",
  env: ({ home }) => ({ PI_CODING_AGENT_DIR: join(home, ".pi/agent"), PI_OFFLINE: "1" }),
  configure: ({ home, model }) => {
    const folder = join(home, ".pi/agent");
    const one = {
      id: "fake",
      name: "fake",
      contextWindow: 20_000,
      maxTokens: 2000,
      input: ["text"],
      reasoning: false,
    };
    const cost = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 };
    write(
      join(folder, "models.json"),
      json({
        providers: {
          fake: {
            baseUrl: `${model}/v1`,
            api: "openai-completions",
            apiKey: "x",
            models: [{ ...one, cost }],
          },
        },
      }),
    );
    write(
      join(folder, "settings.json"),
      json({ compaction: { enabled: true, reserveTokens: 2000, keepRecentTokens: 5 } }),
    );
  },
  turn: ({ tools }, prompt, session) => ({
    program: join(tools, "node_modules/.bin/pi"),
    args: ["-p", prompt, "--model", "fake/fake", "--mode", "json", ...(session === null ? [] : ["-c"])],
  }),
  compact: () => null,
  fill: "SAY enough. FILL 19000",
  compaction: /summar/iu,
  findSession: (output) => /"type":"session"[^\n]*?"id":"([^"]+)"/u.exec(output)?.[1] ?? null,
  hasBundle: false,
};

export const LIVE_AGENTS: readonly LiveAgent[] = [CLAUDE, CODEX, GEMINI, OPENCODE, PI];

/** Where agents keep their sessions: one entry for each, from its own environment variables and its defaults. */
import { join } from "node:path";

export interface AgentLocation {
  readonly agent: string;
  /** The folder that is followed, with all below it. */
  readonly root: string;
  /** Whether a file in it is a transcript. */
  isTranscript(name: string): boolean;
  /** The transcript that a change of this file is about; itself for most. */
  transcriptOf(path: string): string;
}

type Environment = Readonly<Record<string, string | undefined>>;

/** By these variables agents are told to keep their sessions elsewhere. */
const VARIABLES = ["CLAUDE_CONFIG_DIR", "CODEX_HOME", "XDG_DATA_HOME", "PI_CODING_AGENT_DIR"] as const;

/** Those that are set, for a service that is started without them. */
export const readLocationVariables = (env: Environment): Record<string, string> =>
  Object.fromEntries(VARIABLES.flatMap((name) => (env[name] ? [[name, env[name]]] : [])));

const itself = (path: string): string => path;
/** Also under the name that it has after a rotation: its last lines may not have been read before. */
const isLines = (name: string): boolean => /\.jsonl(?:\.\d+)?$/u.test(name);

/** @example listLocations(process.env, os.homedir()) */
export function listLocations(env: Environment, home: string): AgentLocation[] {
  const set = (name: (typeof VARIABLES)[number]): string | undefined => env[name] || undefined;
  const location = (
    agent: string,
    root: string,
    isTranscript: AgentLocation["isTranscript"] = isLines,
    transcriptOf: AgentLocation["transcriptOf"] = itself,
  ): AgentLocation => ({ agent, root, isTranscript, transcriptOf });
  return [
    location("claude-code", join(set("CLAUDE_CONFIG_DIR") ?? join(home, ".claude"), "projects")),
    location(
      "codex",
      join(set("CODEX_HOME") ?? join(home, ".codex"), "sessions"),
      (name) => name.startsWith("rollout-") && isLines(name),
    ),
    // Other files of the project lie in the same folder; older versions write one document per session.
    location("gemini-cli", join(home, ".gemini", "tmp"), (name) =>
      /^session-.*\.jsonl?(?:\.\d+)?$/u.test(name),
    ),
    location(
      "opencode",
      join(set("XDG_DATA_HOME") ?? join(home, ".local", "share"), "opencode"),
      (name) => /^opencode\.db(?:-wal)?$/u.test(name),
      (path) => path.replace(/-wal$/u, ""),
    ),
    location("pi", join(set("PI_CODING_AGENT_DIR") ?? join(home, ".pi", "agent"), "sessions")),
    location("copilot", join(home, ".copilot", "session-state"), (name) => name === "events.jsonl"),
  ];
}

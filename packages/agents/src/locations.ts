/** Where agents keep their sessions: one entry each, from its environment variables and defaults. */
import { join } from "node:path";

export interface AgentLocation {
  readonly agent: string;
  /** The folder that is watched, with all subfolders. */
  readonly root: string;
  /** Whether a file in it is a transcript. */
  isTranscript(name: string): boolean;
  /** The transcript that a change of this file belongs to; usually the file itself. */
  transcriptOf(path: string): string;
}

type Environment = Readonly<Record<string, string | undefined>>;

/** Variables that move the sessions of an agent elsewhere. */
const VARIABLES = ["CLAUDE_CONFIG_DIR", "CODEX_HOME", "XDG_DATA_HOME", "PI_CODING_AGENT_DIR"] as const;

/** The variables that are set, for a service that is started without them. */
export const readLocationVariables = (env: Environment): Record<string, string> =>
  Object.fromEntries(VARIABLES.flatMap((name) => (env[name] ? [[name, env[name]]] : [])));

const itself = (path: string): string => path;
/** Also matches the name after a rotation: the last lines may not have been read before. */
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
    // Other files of the project are in the same folder; older versions write one document per session.
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

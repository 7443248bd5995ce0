/** Where agents keep their sessions: one entry for each, from its own environment variables and its defaults. */
import { join } from "node:path";

export interface AgentPlace {
  readonly agent: string;
  /** The folder that is followed, with all below it. */
  readonly root: string;
  /** Whether a file in it is a transcript. */
  isTranscript(name: string): boolean;
  /** The transcript that a change of this file is about; itself for most. */
  transcriptOf(path: string): string;
}

type Environment = Readonly<Record<string, string | undefined>>;

const itself = (path: string): string => path;
const isLines = (name: string): boolean => name.endsWith(".jsonl");

/** @example listPlaces(process.env, os.homedir()) */
export function listPlaces(env: Environment, home: string): AgentPlace[] {
  const set = (name: string): string | undefined => env[name] || undefined;
  const place = (
    agent: string,
    root: string,
    isTranscript: AgentPlace["isTranscript"] = isLines,
    transcriptOf: AgentPlace["transcriptOf"] = itself,
  ): AgentPlace => ({ agent, root, isTranscript, transcriptOf });
  return [
    place("claude-code", join(set("CLAUDE_CONFIG_DIR") ?? join(home, ".claude"), "projects")),
    place("codex", join(set("CODEX_HOME") ?? join(home, ".codex"), "sessions"), (name) =>
      /^rollout-.*\.jsonl$/u.test(name),
    ),
    // Other files of the project lie in the same folder; older versions write one document per session.
    place("gemini-cli", join(home, ".gemini", "tmp"), (name) => /^session-.*\.jsonl?$/u.test(name)),
    place(
      "opencode",
      join(set("XDG_DATA_HOME") ?? join(home, ".local", "share"), "opencode"),
      (name) => /^opencode\.db(?:-wal)?$/u.test(name),
      (path) => path.replace(/-wal$/u, ""),
    ),
    place("pi", join(set("PI_CODING_AGENT_DIR") ?? join(home, ".pi", "agent"), "sessions")),
    place("copilot", join(home, ".copilot", "session-state"), (name) => name === "events.jsonl"),
  ];
}

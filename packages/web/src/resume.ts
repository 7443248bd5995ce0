/** How the host continues a session: its own command, in the session's folder. Null if the host has none that takes an id. */
import { renderCommandLine } from "@lossless/core/doors";

const COMMANDS: Readonly<Record<string, readonly string[]>> = {
  "claude-code": ["claude", "--resume"],
  codex: ["codex", "resume"],
  opencode: ["opencode", "--session"],
};

interface Session {
  readonly agent: string | null;
  readonly project: string | null;
  readonly sessionId: string;
}

export function resumeCommand({ agent, project, sessionId }: Session): string | null {
  const command = COMMANDS[agent ?? ""];
  // The host does not know ids that were made from the name of a file.
  if (command === undefined || !/^[A-Za-z0-9_-]{6,}$/.test(sessionId)) return null;
  const line = renderCommandLine([...command, sessionId]);
  return project === null ? line : `${renderCommandLine(["cd", project])} && ${line}`;
}

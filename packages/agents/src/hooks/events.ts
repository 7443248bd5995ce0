/**
 * The events of each agent that have a hook, and what that hook prints. OpenCode and pi have no hooks that are commands; Cursor's sessions are
 * not watched.
 */
export type HookAgent = "claude-code" | "codex" | "gemini-cli" | "copilot";

export interface HookEvent {
  /** In the agent's spelling; also the only argument of the script. */
  readonly name: string;
  /**
   * - `nothing`: the event is only recorded in the spool.
   * - `bundle`: after the agent's own compaction, what the watcher prepared.
   * - `instructions`: what the agent's summariser should keep.
   */
  readonly prints: "nothing" | "bundle" | "instructions";
}

const spools = (...names: readonly string[]): HookEvent[] =>
  names.map((name) => ({ name, prints: "nothing" }));

/**
 * No event that fires with every prompt or tool call: the watcher reads the lines themselves, and a hook would delay the user. Gemini CLI fires
 * `PreCompress` before every request and has no event after a compaction, so it gets no bundle.
 */
const EVENTS: Readonly<Record<HookAgent, readonly HookEvent[]>> = {
  "claude-code": [
    { name: "SessionStart", prints: "bundle" },
    { name: "PreCompact", prints: "instructions" },
    ...spools("Stop", "SessionEnd"),
  ],
  codex: [{ name: "SessionStart", prints: "bundle" }, ...spools("PreCompact", "Stop", "SessionEnd")],
  "gemini-cli": spools("SessionStart", "AfterAgent", "SessionEnd"),
  copilot: spools("sessionStart", "agentStop", "sessionEnd"),
};

export const HOOK_AGENTS = Object.keys(EVENTS) as readonly HookAgent[];

/** @example listHookEvents("codex").map(({ name }) => name); // ["SessionStart", "PreCompact", "Stop", "SessionEnd"] */
export const listHookEvents = (agent: HookAgent): readonly HookEvent[] => EVENTS[agent];

/** Which events of each agent have a hook, and what that hook prints. OpenCode and pi have no hooks that are commands; Cursor's sessions are not followed. */
export type HookAgent = "claude-code" | "codex" | "gemini-cli" | "copilot";

export interface HookEvent {
  /** As the agent spells it; also the only argument of the script. */
  readonly name: string;
  /**
   * - `nothing`: the event is only noted in the spool.
   * - `bundle`: after the agent's own compaction, what the watcher prepared.
   * - `instructions`: what the agent's summariser should keep.
   */
  readonly prints: "nothing" | "bundle" | "instructions";
}

const spools = (...names: readonly string[]): HookEvent[] =>
  names.map((name) => ({ name, prints: "nothing" }));

/**
 * No event that comes with every prompt or tool call: the watcher sees the lines themselves, and a hook there would make the user wait.
 * Gemini CLI fires `PreCompress` before every request and tells nobody of a compaction afterwards, so it gets no bundle.
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

/** Which sessions are stored. Settings can exclude all sessions, those with certain keys, and stateless ones. */
import type { EngineState } from "./state.ts";

/** Why the settings keep a session from being stored. */
export type SkipReason = "disabled" | "ignored" | "stateless";

export function whySkipped({ settings, ingest }: EngineState, sessionKey: string): SkipReason | null {
  if (!settings.enabled) return "disabled";
  if (ingest.isIgnored(sessionKey)) return "ignored";
  return settings.skipStatelessSessions && ingest.isStateless(sessionKey) ? "stateless" : null;
}

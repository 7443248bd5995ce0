/** Which sessions are stored. Settings can leave out all of them, those of some keys, and stateless ones. */
import type { EngineState } from "./state.ts";

/** Why nothing is stored, when that is what the settings ask for. */
export type SkipReason = "disabled" | "ignored" | "stateless";

export function whySkipped({ settings, ingest }: EngineState, sessionKey: string): SkipReason | null {
  if (!settings.enabled) return "disabled";
  if (ingest.isIgnored(sessionKey)) return "ignored";
  return settings.skipStatelessSessions && ingest.isStateless(sessionKey) ? "stateless" : null;
}

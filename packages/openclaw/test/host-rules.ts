/** How OpenClaw 2026.9.6 reads the answer to a compaction, as observed in it: the first phrase that matches decides. */

interface Answer {
  readonly ok: boolean;
  readonly compacted: boolean;
  readonly reason?: string;
}

const PHRASES: readonly (readonly [string, readonly string[]])[] = [
  ["no_compactable_entries", ["nothing to compact", "no real conversation messages"]],
  ["below_threshold", ["below threshold", "already under target"]],
  ["already_compacted", ["already compacted", "already_compacted"]],
  ["deferred_background", ["deferred to background"]],
  ["live_context_still_exceeds_target", ["still exceeds target"]],
  ["guard_blocked", ["guard"]],
  ["summary_failed", ["summary"]],
  ["timeout", ["timed out", "timeout"]],
];

export function classifyReason(reason = ""): string {
  const text = reason.toLowerCase();
  return PHRASES.find(([, phrases]) => phrases.some((phrase) => text.includes(phrase)))?.[0] ?? "unknown";
}

/** Whether a turn goes on after a compaction that the host asked for before it. */
export function letsTurnGoOn({ ok, compacted, reason }: Answer): boolean {
  if (ok && compacted) return true;
  const kind = classifyReason(reason);
  if (compacted) return false;
  return (
    kind === "below_threshold" || kind === "already_compacted" || (ok && kind === "no_compactable_entries")
  );
}

/**
 * What the host is told about a compaction. It reads the words: with `compacted: false` it goes on with the turn only where the reason
 * contains its own phrases ("already under target", "already compacted", "nothing to compact"), and takes any other text for a failure,
 * which refuses the turn. So the wording is part of the contract, and only this file has it. Pure.
 */

/** Why the host asked: a person did, a model failed at a prompt, or a prompt is about to be too large. */
export type Trigger = "manual" | "overflow" | "budget";

export type HostFoldResult =
  /** Something was folded, as much as there was to be or as much as there is. */
  | { readonly kind: "folded"; readonly targetReached: boolean }
  /** Nothing was folded, but the next context is made smaller. */
  | { readonly kind: "shrunk" }
  /** The context is as small as it was to become. */
  | { readonly kind: "under-target" }
  /** It is not, and nothing more can be folded now: a pass saved nothing, time was up, another process is at it. */
  | { readonly kind: "no-more" }
  | { readonly kind: "nothing-stored" }
  /** The host stopped waiting. */
  | { readonly kind: "cancelled" }
  | { readonly kind: "failed"; readonly message: string };

export interface HostCompactResult {
  readonly ok: boolean;
  readonly compacted: boolean;
  readonly reason: string;
}

export function describeOutcome(outcome: HostFoldResult, trigger: Trigger): HostCompactResult {
  switch (outcome.kind) {
    case "folded":
      return {
        ok: true,
        compacted: true,
        reason: outcome.targetReached
          ? "folded in the archive; every message is kept"
          : "folded as far as possible now, target not reached; every message is kept",
      };
    case "shrunk":
      return { ok: true, compacted: true, reason: "the next prompt is smaller" };
    case "under-target":
      return { ok: true, compacted: false, reason: "already under target" };
    case "no-more":
      return { ok: true, compacted: false, reason: "already compacted as far as possible now" };
    case "nothing-stored":
      return { ok: true, compacted: false, reason: "nothing to compact: nothing of this chat is stored yet" };
    case "cancelled":
      return { ok: false, compacted: false, reason: "cancelled" };
    case "failed":
      // Before a turn a failure is no reason to refuse it: the next prompt is cut to fit whatever the archive does. Status reports it.
      return trigger === "budget"
        ? { ok: false, compacted: false, reason: "already compacted as far as possible without the archive" }
        : { ok: false, compacted: false, reason: outcome.message };
  }
}

/** Why the host refuses the turn after this outcome; null when it goes on. */
export function explainRefusal({ kind }: HostFoldResult, trigger: Trigger): string | null {
  if (kind === "folded" || kind === "shrunk" || trigger === "manual") return null;
  if (kind === "cancelled") return "it stopped waiting for a compaction";
  // A provider said no: without a smaller prompt it would say so again.
  return trigger === "overflow"
    ? "the prompt is too large for the model, and this chat's history has nothing more to give"
    : null;
}

export function readTrigger(trigger: unknown): Trigger {
  if (trigger === undefined || trigger === "manual") return "manual";
  return trigger === "budget" ? "budget" : "overflow";
}

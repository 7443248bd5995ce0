/**
 * The result of a compaction for the host. The host parses the text: with `compacted: false` it continues the turn only if the reason contains
 * one of its own phrases ("already under target", "already compacted", "nothing to compact"); any other text counts as a failure and the turn is
 * refused. So the wording is part of the contract, and only this file has it. Pure.
 */

/** Why the host wants a compaction: a person asked for it, a model rejected a prompt, or a prompt is about to be too large. */
export type Trigger = "manual" | "overflow" | "budget";

export type HostFoldResult =
  /** Something was folded, up to the target or as far as possible. */
  | { readonly kind: "folded"; readonly targetReached: boolean }
  /** Nothing was folded, but the next context is made smaller. */
  | { readonly kind: "shrunk" }
  /** The context is already within the target. */
  | { readonly kind: "under-target" }
  /** It is not, and nothing more can be folded now: a pass saved nothing, time was up, or another process is folding. */
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
      // Before a turn, a failure is not a reason to refuse it: the next prompt is cut to fit whatever the archive does. Status reports it.
      return trigger === "budget"
        ? { ok: false, compacted: false, reason: "already compacted as far as possible without the archive" }
        : { ok: false, compacted: false, reason: outcome.message };
  }
}

/** Why the host refuses the turn after this outcome; null when it continues. */
export function explainRefusal({ kind }: HostFoldResult, trigger: Trigger): string | null {
  if (kind === "folded" || kind === "shrunk" || trigger === "manual") return null;
  if (kind === "cancelled") return "it stopped waiting for a compaction";
  // The provider rejected the prompt: without a smaller one it would do so again.
  return trigger === "overflow"
    ? "the prompt is too large for the model, and this chat's history has nothing more to give"
    : null;
}

export function readTrigger(trigger: unknown): Trigger {
  if (trigger === undefined || trigger === "manual") return "manual";
  return trigger === "budget" ? "budget" : "overflow";
}

/**
 * What was chosen for a context, in the words that every door shows: the ids of a piece, why it is there, and which providers accept the
 * whole. Pure.
 */
import { must } from "../model/errors.ts";
import type { AssembledContext, ExplainedItem } from "../assemble/assemble.ts";
import type { Provider } from "../assemble/grammars.ts";

export interface GrammarVerdict {
  readonly provider: Provider;
  readonly accepts: boolean;
  /** The first rule that is broken. */
  readonly problem: string | null;
}

/** The context must have been assembled with `checkGrammars`. */
export function describeGrammars({ grammars }: AssembledContext): GrammarVerdict[] {
  return must(grammars, "the check of the grammars").map(({ provider, violations: [first] }) => {
    const problem = first === undefined ? null : `${first.rule} at message ${first.index}: ${first.detail}`;
    return { provider, accepts: first === undefined, problem };
  });
}

/** A range is named by its ends, as far as known; everything else has one id. */
export const describeIds = ({ kind, ids }: ExplainedItem): string =>
  kind === "range" ? ids.join("…") || "–" : (ids[0] ?? "–");

/** A stub has a role like a message; it must be visible that it is cut. */
export const describeReason = ({ kind, reason }: ExplainedItem): string =>
  kind === "stub" ? `cut short: ${reason}` : reason;

export const MODES: Readonly<Record<AssembledContext["mode"], string>> = {
  whole: "whole: everything that is not folded fits",
  tight: "tight: older parts are shown in less detail",
  least: "least: only the newest user message and open tool calls fit",
};

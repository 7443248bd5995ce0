/** What a call may read: who asks, and how many tokens it may return. */
import { EngineError } from "../model/errors.ts";
import { resolveReach } from "../recall/reach.ts";
import type { Reach, ScopeRequest } from "../recall/reach.ts";
import type { EngineState } from "./state.ts";

/** The share of a grant's remaining tokens for a call that does not say how much it wants: the grant must last for several calls. */
const GRANT_CALL_SHARE = 0.25;

export function findReach({ store, settings, clock }: EngineState, request: ScopeRequest): Promise<Reach> {
  return resolveReach({ store, settings, now: clock.now() }, request);
}

/** Tokens a call may return: what it asks for, what the settings allow, what its grant has left. */
export function capTokens(engine: EngineState, asked: number | undefined, { grant }: Reach): number {
  if (asked !== undefined && (!Number.isInteger(asked) || asked < 1)) {
    throw new EngineError(
      "usage",
      `cannot return ${asked} tokens: tokenCap must be a whole number of at least 1`,
    );
  }
  if (grant === null) return asked ?? engine.settings.maxExpandTokens;
  const wanted = asked ?? Math.ceil(grant.tokenCap * GRANT_CALL_SHARE);
  const left = grant.tokenCap - grant.tokensUsed;
  if (left <= 0)
    throw new EngineError("denied", "cannot read more: the tokens of the grant are used up", {
      hint: "answer from what was read",
    });
  return Math.min(wanted, left);
}

/** Grants: which part of what its issuer may read a sub-agent's session may read. */
import { createGrant as issueGrant } from "../recall/grants.ts";
import type { GrantRequest, GrantResult } from "../recall/grants.ts";
import type { EngineState } from "./state.ts";

export interface RevokeGrantsRequest {
  readonly grantId?: string;
  readonly issuerKey?: string;
  readonly holderKey?: string;
}

export async function createGrant(engine: EngineState, request: GrantRequest): Promise<GrantResult> {
  const grantId = `grant_${Buffer.from(engine.clock.random(8)).toString("hex")}`;
  const owner = engine.settings.shareAcrossOwners ? undefined : request.session.owner;
  const tokenCap = engine.settings.maxExpandTokens;
  return issueGrant(engine.store, request, { now: engine.clock.now(), grantId, tokenCap, owner });
}

export async function revokeGrants(engine: EngineState, which: RevokeGrantsRequest): Promise<number> {
  return engine.store.revokeGrants(which, engine.clock.now());
}

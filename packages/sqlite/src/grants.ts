/** Ending grants; the rules are in `archive/grants.ts`. */
import type { StoreContext } from "./store-context.ts";

const REVOKE = `
  UPDATE expansion_grants SET revoked_at = ?1
  WHERE revoked_at IS NULL AND (?2 IS NULL OR grant_id = ?2) AND (?3 IS NULL OR issuer_key = ?3) AND (?4 IS NULL OR holder_key = ?4)`;
const SWEEP = "DELETE FROM expansion_grants WHERE coalesce(revoked_at, expires_at) < ?";

export function revokeGrants(
  { connection }: StoreContext,
  which: { grantId?: string; issuerKey?: string; holderKey?: string },
  now: number,
): number {
  const { grantId = null, issuerKey = null, holderKey = null } = which;
  if (grantId === null && issuerKey === null && holderKey === null) return 0;
  return connection.write(() => connection.change(REVOKE, now, grantId, issuerKey, holderKey));
}

export function sweepGrants({ connection }: StoreContext, before: number): number {
  return connection.write(() => connection.change(SWEEP, before));
}

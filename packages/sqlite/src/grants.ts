/** Grants, kept in the database so that a restart neither forgets nor revives one. */
import type { Grant, Row } from "@lossless/core/ports";
import type { StoreContext } from "./store-context.ts";

const LIVE = "revoked_at IS NULL AND expires_at > ?2";
const LIVE_OF_ISSUER = `SELECT 1 AS found FROM expansion_grants WHERE issuer_key = ?1 AND ${LIVE} AND owner = ?3 LIMIT 1`;
const INSERT = `
  INSERT INTO expansion_grants (grant_id, owner, issuer_key, holder_key, conversations, summaries, max_depth, token_cap, tokens_used,
    expires_at, revoked_at)
  VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`;
const SELECT = "SELECT * FROM expansion_grants WHERE grant_id = ?";
const SELECT_OF_HOLDER = `
  SELECT * FROM expansion_grants WHERE holder_key = ?1
  ORDER BY revoked_at IS NULL AND expires_at > ?2 DESC, coalesce(revoked_at, expires_at) DESC LIMIT 1`;
const CHARGE = `
  UPDATE expansion_grants SET tokens_used = min(token_cap, tokens_used + ?3) WHERE grant_id = ?1 AND ${LIVE}`;
const REVOKE = `
  UPDATE expansion_grants SET revoked_at = ?1
  WHERE revoked_at IS NULL AND (?2 IS NULL OR grant_id = ?2) AND (?3 IS NULL OR issuer_key = ?3) AND (?4 IS NULL OR holder_key = ?4)`;
const SWEEP = "DELETE FROM expansion_grants WHERE coalesce(revoked_at, expires_at) < ?";

export function insertGrant({ connection }: StoreContext, grant: Grant, now: number): boolean {
  return connection.write(() => {
    if (connection.get(LIVE_OF_ISSUER, grant.issuerKey, now, grant.owner)) return false;
    connection.run(
      INSERT,
      grant.grantId,
      grant.owner,
      grant.issuerKey,
      grant.holderKey,
      JSON.stringify(grant.conversationIds),
      JSON.stringify(grant.summaryIds),
      grant.maxDepth,
      grant.tokenCap,
      grant.tokensUsed,
      grant.expiresAt,
      grant.revokedAt,
    );
    return true;
  });
}

/** The holder's grant: a live one if there is one, else the last that was. */
export function findGrantOf({ connection }: StoreContext, holderKey: string, now: number): Grant | null {
  const row = connection.get<Row<"expansion_grants">>(SELECT_OF_HOLDER, holderKey, now);
  return row ? toGrant(row) : null;
}

export function chargeGrant(
  { connection }: StoreContext,
  grantId: string,
  tokens: number,
  now: number,
): number | null {
  return connection.write(() => {
    const row = connection.get<{ token_cap: number; tokens_used: number }>(SELECT, grantId);
    if (!row || connection.change(CHARGE, grantId, now, tokens) === 0) return null;
    return row.token_cap - row.tokens_used;
  });
}

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

function toGrant(row: Row<"expansion_grants">): Grant {
  return {
    grantId: row.grant_id,
    owner: row.owner,
    issuerKey: row.issuer_key,
    holderKey: row.holder_key,
    conversationIds: JSON.parse(row.conversations) as number[],
    summaryIds: JSON.parse(row.summaries) as string[],
    maxDepth: row.max_depth,
    tokenCap: row.token_cap,
    tokensUsed: row.tokens_used,
    expiresAt: row.expires_at,
    revokedAt: row.revoked_at,
  };
}

/**
 * Grants: what a sub-agent may open, for a limited time. They are stored in the archive, so that a restart neither loses nor revives one.
 *
 * Invariant: an issuer has at most one live grant of an owner; a grant never counts more tokens than it allows.
 */
import type { Grant, RecallStore } from "../store/recall.ts";
import { Changes } from "./changes.ts";
import { Pages, readRows } from "./pages.ts";
import type { Asking, Plan } from "./plan.ts";
import { tables } from "./tables.ts";
import type { Row } from "./tables.ts";

type GrantRow = Row<"expansion_grants">;

const COLUMNS = Object.keys(tables.expansion_grants.columns) as (keyof GrantRow)[];

const isLive = ({ revoked_at, expires_at }: GrantRow, now: number): boolean =>
  revoked_at === null && expires_at > now;

const endOf = ({ revoked_at, expires_at }: Pick<GrantRow, "revoked_at" | "expires_at">): number =>
  revoked_at ?? expires_at;

/** False, without any change, while the issuer has a live one. */
export function* planInsertGrant(grant: Grant, now: number): Plan<boolean> {
  const changes = new Changes();
  const keys = [grant.issuerKey];
  const issued = yield* readRows("expansion_grants", COLUMNS, { column: "issuer_key", keys });
  if (issued.some((row) => row.owner === grant.owner && isLive(row, now))) return changes.done(false);
  changes.insert("expansion_grants", {
    grant_id: grant.grantId,
    owner: grant.owner,
    issuer_key: grant.issuerKey,
    holder_key: grant.holderKey,
    conversations: JSON.stringify(grant.conversationIds),
    summaries: JSON.stringify(grant.summaryIds),
    max_depth: grant.maxDepth,
    token_cap: grant.tokenCap,
    tokens_used: grant.tokensUsed,
    expires_at: grant.expiresAt,
    revoked_at: grant.revokedAt,
  });
  return changes.done(true);
}

/** The holder's grant: a live one if there is one, else the last one. */
export function* planFindGrant(holderKey: string, now: number): Asking<Grant | null> {
  const held = yield* readRows("expansion_grants", COLUMNS, { column: "holder_key", keys: [holderKey] });
  const [row] = held.sort((a, b) => Number(isLive(b, now)) - Number(isLive(a, now)) || endOf(b) - endOf(a));
  return row ? toGrant(row) : null;
}

/** How many tokens were left before; null for a grant that is not live. */
export function* planChargeGrant(grantId: string, tokens: number, now: number): Plan<number | null> {
  const changes = new Changes();
  const [row] = yield* readRows("expansion_grants", COLUMNS, { column: "grant_id", keys: [grantId] });
  if (!row || !isLive(row, now)) return changes.done(null);
  const { token_cap, tokens_used } = row;
  const used = Math.min(token_cap, tokens_used + tokens);
  changes.update("expansion_grants", { grant_id: grantId }, { tokens_used: used });
  return changes.done(token_cap - tokens_used);
}

/** Ends the grants that match all the given conditions; returns how many. */
export function* planRevokeGrants(
  { grantId, issuerKey, holderKey }: Parameters<RecallStore["revokeGrants"]>[0],
  now: number,
): Plan<number> {
  const changes = new Changes();
  const asked = [
    ["grant_id", grantId],
    ["issuer_key", issuerKey],
    ["holder_key", holderKey],
  ] as const;
  const said = asked.flatMap(([column, key]) => (key === undefined ? [] : [{ column, key }]));
  const [first] = said;
  if (!first) return changes.done(0);
  const found = yield* readRows("expansion_grants", COLUMNS, { column: first.column, keys: [first.key] });
  const ended = found.filter(
    (row) => row.revoked_at === null && said.every(({ column, key }) => row[column] === key),
  );
  for (const { grant_id } of ended) changes.update("expansion_grants", { grant_id }, { revoked_at: now });
  return changes.done(ended.length);
}

/** Removes those that ended before the given time; returns how many. */
export function* planSweepGrants(before: number): Plan<number> {
  const changes = new Changes();
  const pages = new Pages("expansion_grants", {
    columns: ["grant_id", "revoked_at", "expires_at"],
    order: ["grant_id"],
  });
  let swept = 0;
  for (let page; (page = yield* pages.next()).length > 0;)
    for (const row of page)
      if (endOf(row) < before) {
        changes.delete("expansion_grants", { grant_id: row.grant_id });
        swept += 1;
      }
  return changes.done(swept);
}

const toGrant = (row: GrantRow): Grant => ({
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
});

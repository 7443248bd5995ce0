/**
 * Grants: how a sub-agent gets permission to read. A grant names its conversations and summaries, how deep and how much may be read, and
 * until when; it is stored, so a restart neither loses nor revives it. A session that reads under a grant cannot issue one: there is no
 * recursion.
 */
import { EngineError } from "../model/errors.ts";
import type { SessionRef } from "../model/message.ts";
import type { Grant } from "../store/recall.ts";
import type { Store } from "../store/store.ts";
import { readFamily } from "./family.ts";

const DEFAULT_GRANT_DEPTH = 3;
const DEFAULT_GRANT_TTL_MS = 5 * 60_000;
/** Ended grants are kept this long, so that a late call learns why it fails. */
const KEEP_ENDED_MS = 24 * 3_600_000;

export interface GrantRequest {
  /** The session that issues it. */
  readonly session: Pick<SessionRef, "key" | "owner">;
  /** Key of the session that may use it. */
  readonly holderKey: string;
  /** By default the family of the issuing session. */
  readonly conversationIds?: readonly number[];
  readonly summaryIds?: readonly string[];
  readonly maxDepth?: number;
  readonly tokenCap?: number;
  readonly ttlMs?: number;
}

/** Why a grant was refused. */
export type GrantRefusal = "in_flight" | "recursion" | "not_yours";

export type GrantResult =
  | { readonly kind: "granted"; readonly grant: Grant }
  | { readonly kind: "refused"; readonly reason: GrantRefusal; readonly message: string };

const refuse = (reason: GrantRefusal, message: string): GrantResult => ({
  kind: "refused",
  reason,
  message,
});

export async function createGrant(
  store: Store,
  request: GrantRequest,
  options: { now: number; grantId: string; tokenCap: number; owner: string | undefined },
): Promise<GrantResult> {
  const { now } = options;
  const { session } = request;
  const held = await store.findGrantOf(session.key, now);
  if (held && isLive(held, now)) return refuse("recursion", "a sub-agent cannot pass on its grant");
  const conversationIds = request.conversationIds ?? (await readFamily(store, session)).conversationIds;
  if (conversationIds.length === 0)
    return refuse("not_yours", "this session has no conversation that could be read");
  for (const id of conversationIds) {
    if (!(await store.readConversation(id, options.owner)))
      return refuse("not_yours", `conversation ${id} is not yours to grant`);
  }
  for (const id of request.summaryIds ?? []) {
    const summary = await store.readSummary(id, options.owner);
    if (!summary || !conversationIds.includes(summary.conversationId)) {
      return refuse("not_yours", `${id} is not a summary of the granted conversations`);
    }
  }
  const grant: Grant = {
    grantId: options.grantId,
    owner: session.owner,
    issuerKey: session.key,
    holderKey: request.holderKey,
    conversationIds: [...conversationIds],
    summaryIds: [...(request.summaryIds ?? [])],
    maxDepth: Math.max(1, request.maxDepth ?? DEFAULT_GRANT_DEPTH),
    tokenCap: Math.max(1, request.tokenCap ?? options.tokenCap),
    tokensUsed: 0,
    expiresAt: now + Math.max(1, request.ttlMs ?? DEFAULT_GRANT_TTL_MS),
    revokedAt: null,
  };
  await store.sweepGrants(now - KEEP_ENDED_MS);
  const isFirst = await store.insertGrant(grant, now);
  return isFirst
    ? { kind: "granted", grant }
    : refuse("in_flight", "this session already has an expansion in progress");
}

function isLive(grant: Grant, now: number): boolean {
  return grant.revokedAt === null && grant.expiresAt > now;
}

/** The live grant of a session, or an error that says why there is none. */
export async function needGrant(
  store: Store,
  session: { key: string } | undefined,
  now: number,
): Promise<Grant> {
  const grant = session ? await store.findGrantOf(session.key, now) : null;
  if (grant && isLive(grant, now)) return grant;
  const why =
    grant === null
      ? "this session has no grant"
      : grant.revokedAt === null
        ? "its grant has expired"
        : "its grant was revoked";
  throw new EngineError("denied", `cannot read the archive: ${why}`, {
    hint: "ask the agent that started you for what you need",
  });
}

/**
 * The caller and what it may see. The owner comes from the caller's session, never from an argument of a tool; sharing between owners is
 * the operator's setting. A conversation that may not be seen does not exist.
 */
import { EngineError } from "../model/errors.ts";
import type { SessionRef } from "../model/message.ts";
import { isNarrowed } from "../model/origin.ts";
import type { OriginFilter } from "../model/origin.ts";
import type { Settings } from "../settings/settings.ts";
import type { Family, Grant, RecallScope } from "../store/recall.ts";
import type { Store } from "../store/store.ts";
import { readFamily } from "./family.ts";
import { needGrant } from "./grants.ts";

/** The caller. With neither session nor owner it is the operator, who sees everything. */
export interface Caller {
  readonly session?: Pick<SessionRef, "key" | "owner"> & { readonly id?: string };
  readonly owner?: string;
  /** True for a sub-agent: it may read only what its session's grant allows. */
  readonly delegated?: boolean;
}

/** With a project, an agent, or an excluded session, the search covers all conversations, unless one is named. */
export interface ScopeRequest extends Caller, OriginFilter {
  readonly conversationId?: number;
  readonly allConversations?: boolean;
}

/** What a call may read, and how to describe it. */
export interface Reach {
  readonly scope: RecallScope;
  /** Filter for single reads by id; undefined if everything may be read. */
  readonly owner: string | undefined;
  readonly grant: Grant | null;
  readonly label: string;
  /** If known: times of the oldest and newest message. */
  readonly extent?: Extent;
}

/** Times of the oldest and newest message of some conversations. */
export type Extent = Pick<Family, "firstAt" | "lastAt">;

export interface ScopeContext {
  readonly store: Store;
  readonly settings: Pick<Settings, "shareAcrossOwners">;
  readonly now: number;
}

export async function resolveReach(context: ScopeContext, request: ScopeRequest): Promise<Reach> {
  const { store } = context;
  const { shareAcrossOwners } = context.settings;
  // Sharing widens what a session sees; an owner that is named explicitly stays a filter.
  const owner =
    request.session === undefined ? request.owner : shareAcrossOwners ? undefined : request.session.owner;
  if (request.delegated) return resolveGranted(context, request);
  if (request.conversationId !== undefined) {
    await checkConversation(store, request.conversationId, owner);
    return makeReach(owner, [request.conversationId], `conversation ${request.conversationId}`);
  }
  if (isNarrowed(request)) return reachByOrigin(store, owner, request);
  const { session } = request;
  if (request.allConversations || session === undefined)
    return makeReach(owner, undefined, "all conversations");
  const { conversationIds: ids, inherited, ...extent } = await readFamily(store, session);
  const label = ids.length === 1 ? `conversation ${ids[0]}` : `${ids.length} conversations of this session`;
  if (inherited.length === 0) return { ...makeReach(owner, ids, label), extent };
  const reach = makeReach(owner, ids, `${label}, and what came before the copy`);
  return { ...reach, scope: { ...reach.scope, inherited }, extent };
}

async function reachByOrigin(
  store: Store,
  owner: string | undefined,
  { project, agent, exceptSession }: OriginFilter,
): Promise<Reach> {
  const ids = await store.listScope({ owner, project, agent, exceptSession });
  const by = [
    ...(agent === undefined ? [] : [` of ${agent}`]),
    ...(project === undefined ? [] : [` in ${project}`]),
    ...(exceptSession === undefined ? [] : [`, without session ${exceptSession}`]),
  ];
  return makeReach(owner, ids, `${ids.length} conversations${by.join("")}`);
}

function makeReach(owner: string | undefined, ids: readonly number[] | undefined, label: string): Reach {
  const scope = {
    owner,
    conversationIds: ids,
  };
  return { scope, owner, grant: null, label };
}

async function resolveGranted(context: ScopeContext, request: ScopeRequest): Promise<Reach> {
  const grant = await needGrant(context.store, request.session, context.now);
  const wanted = request.conversationId;
  if (wanted !== undefined && !grant.conversationIds.includes(wanted)) throw notFound(wanted);
  const ids = wanted === undefined ? grant.conversationIds : [wanted];
  const owner = context.settings.shareAcrossOwners ? undefined : grant.owner;
  return { ...makeReach(owner, ids, `${ids.length} conversations of the grant`), grant };
}

async function checkConversation(
  store: Store,
  conversationId: number,
  owner: string | undefined,
): Promise<void> {
  if (!(await store.readConversation(conversationId, owner))) throw notFound(conversationId);
}

function notFound(conversationId: number): EngineError {
  return new EngineError(
    "not_found",
    `cannot read conversation ${conversationId}: there is none that you may read`,
    {
      step: { kind: "widen_scope" },
    },
  );
}

/** Whether a call may read something that ends at a position of a conversation. */
export function mayRead({ scope }: Reach, conversationId: number, position: number): boolean {
  const { conversationIds, inherited = [] } = scope;
  if (conversationIds === undefined || conversationIds.includes(conversationId)) return true;
  return inherited.some((part) => part.conversationId === conversationId && position <= part.position);
}

/** ms UTC of a time given as a number or as ISO text. */
export function readTime(value: number | string | undefined, name: string): number | undefined {
  if (value === undefined) return undefined;
  const time = typeof value === "number" ? value : Date.parse(value);
  if (Number.isFinite(time)) return time;
  throw new EngineError("usage", `cannot use ${name} "${value}": it is not a time`, {
    hint: "write it as 2026-03-01 or 2026-03-01T09:30:00Z",
  });
}

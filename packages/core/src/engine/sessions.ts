/**
 * What a host reports about its sessions besides messages: copies, labels, branches, boundaries. Ignored for sessions that the settings
 * exclude.
 */
import { checkSession } from "../message/check-arrival.ts";
import type { SessionRef } from "../model/message.ts";
import type { BoundaryRequest, RelabelSession, SessionState } from "../store/store.ts";
import { chooseForFork } from "./assemble.ts";
import { whySkipped } from "./capture-policy.ts";
import type { EngineState } from "./state.ts";

/** A session by its id; without an owner, of any owner. */
export interface SessionRequest {
  readonly sessionId: string;
  readonly owner?: string;
}

export interface ForkRequest {
  readonly session: SessionRef;
  readonly parentSessionId: string;
  readonly eventIds: readonly string[];
}

export interface ForkResult {
  readonly kind: "forked" | "known" | "unrelated";
  readonly copied: number;
}

export interface RelabelRequest {
  readonly session: SessionRef;
  readonly labels: readonly { from: string; to: string }[];
}

export type RelabelSessionRequest = Omit<RelabelSession, "now">;

export interface SetBranchRequest {
  readonly session: SessionRef;
  readonly offBranch: readonly string[];
}

export interface ShownResult {
  readonly changed: number;
}

export type RecordBoundaryRequest = Omit<BoundaryRequest, "position" | "retainDepth" | "at"> & {
  readonly position?: number;
  readonly at?: number;
};

export interface RecordBoundaryResult {
  readonly kind: "recorded" | "known";
  readonly conversationId: number;
}

export async function readSession(
  { store }: EngineState,
  { owner, sessionId }: SessionRequest,
): Promise<SessionState | null> {
  return store.readSession(owner ?? null, sessionId);
}

export async function knownEvents(
  { store }: EngineState,
  { owner, sessionId, eventIds }: SessionRequest & { readonly eventIds: readonly string[] },
): Promise<string[]> {
  return store.knownEvents(owner ?? null, sessionId, eventIds);
}

export async function findSessions(
  { store }: EngineState,
  { owner, eventId }: { readonly owner: string; readonly eventId: string },
): Promise<string[]> {
  return store.findSessions(owner, eventId);
}

export async function fork(engine: EngineState, request: ForkRequest): Promise<ForkResult> {
  checkSession(request.session);
  const { session, parentSessionId, eventIds } = request;
  if (whySkipped(engine, session.key) !== null) return { kind: "unrelated", copied: 0 };
  const { owner } = session;
  const point = await engine.store.findForkPoint({ owner, parentSessionId, eventIds });
  const parent = point && (await engine.store.readConversation(point.conversationId, owner));
  if (!point || !parent) return { kind: "unrelated", copied: 0 };
  const items = await chooseForFork(engine, parent, point.position + 1);
  const copied = eventIds.slice(0, point.copied);
  const now = engine.clock.now();
  const { kind } = await engine.store.fork({
    session,
    parentSessionId,
    eventIds: copied,
    point,
    items,
    now,
  });
  return { kind, copied: copied.length };
}

export async function relabel(engine: EngineState, request: RelabelRequest): Promise<number> {
  if (whySkipped(engine, request.session.key) !== null) return 0;
  return engine.store.relabel(request.session, request.labels, engine.clock.now());
}

export async function relabelSession(engine: EngineState, request: RelabelSessionRequest): Promise<boolean> {
  checkSession(request.session);
  if (whySkipped(engine, request.session.key) !== null) return false;
  return engine.store.relabelSession({ ...request, now: engine.clock.now() });
}

export async function setBranch(engine: EngineState, request: SetBranchRequest): Promise<ShownResult> {
  if (whySkipped(engine, request.session.key) !== null) return { changed: 0 };
  const { session, offBranch } = request;
  return {
    changed: await engine.store.setHidden(session, "branch", offBranch, engine.clock.now(), "exactly"),
  };
}

export async function showPending(
  engine: EngineState,
  { session }: { readonly session: SessionRef },
): Promise<ShownResult> {
  if (whySkipped(engine, session.key) !== null) return { changed: 0 };
  const now = engine.clock.now();
  return { changed: await engine.store.setHidden(session, "pending", [], now, "exactly") };
}

export async function recordBoundary(
  engine: EngineState,
  request: RecordBoundaryRequest,
): Promise<RecordBoundaryResult> {
  checkSession(request.session);
  if (whySkipped(engine, request.session.key) !== null) return { kind: "known", conversationId: 0 };
  return engine.store.recordBoundary({
    ...request,
    position: request.position ?? null,
    retainDepth: engine.settings.newSessionRetainDepth,
    at: request.at ?? engine.clock.now(),
  });
}

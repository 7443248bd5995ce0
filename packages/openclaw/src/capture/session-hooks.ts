/**
 * Session events outside turns. A hook only triggers a read of the transcript, which has the resets; session ends that the transcript does not
 * have (daily or idle reset, deletion) are recorded as boundaries, identified by the session's id. At the first start, the history of sessions
 * older than the plugin is read in the background, the newest first.
 */

import type { Engine, SessionRef, Settings } from "@lossless/core";
import { noteImport } from "./capture.ts";
import { catchUp } from "./catch-up.ts";
import { importOlder } from "./first-contact.ts";
import { addEstimates, estimateFolding, NO_FOLDING, type FoldEstimate } from "../assemble/fold-estimate.ts";
import type { PluginApi, PluginLogger, SessionEndEvent } from "../host/host.ts";
import type { MediaSource } from "./media.ts";
import { readAddress } from "../host/session.ts";
import type { EngineLease } from "../host/shared-engine.ts";
import type { TranscriptReader, TranscriptTarget } from "./transcript.ts";

export interface SessionHookParts {
  readonly lease: Pick<EngineLease, "open" | "inOrder" | "memory">;
  readonly reader: TranscriptReader;
  readonly media?: MediaSource | undefined;
  readonly isCaptured: (sessionKey: string) => boolean;
  /** When given, the folding cost of what is read is estimated. */
  readonly policy?: Settings;
  readonly logger: PluginLogger;
}

/** Session ends that start a new conversation although the transcript does not record them. */
const ENDS = { idle: "idle", daily: "daily", deleted: "deleted" } as const;

export async function noteSessionEnd(parts: SessionHookParts, event: SessionEndEvent): Promise<void> {
  const { sessionId, sessionKey, reason = "unknown" } = event;
  if (sessionKey === undefined || !parts.isCaptured(sessionKey)) return;
  const { session, target } = readAddress({ sessionId, sessionKey });
  await settle(parts, session.id, async (engine) => {
    // A session without messages has nothing to end.
    if (!(await readSession(parts, engine, session, target))) return;
    const end = Object.hasOwn(ENDS, reason) ? ENDS[reason as keyof typeof ENDS] : null;
    if (end !== null) await engine.recordBoundary({ session, eventId: `end:${sessionId}`, reason: end });
  });
}

/** True when the session has rows in the archive. */
async function readSession(
  { reader, media }: SessionHookParts,
  engine: Engine,
  session: SessionRef,
  target: TranscriptTarget,
): Promise<boolean> {
  await catchUp({ engine, reader, media, target, session, moveCursor: false });
  return (await engine.readSession({ sessionId: session.id, owner: session.owner })) !== null;
}

/** A hook must never fail the event it listens to. */
async function settle(
  { lease, logger }: SessionHookParts,
  sessionId: string,
  task: (engine: Engine) => Promise<void>,
): Promise<void> {
  try {
    await lease.inOrder(sessionId, async () => await task(await lease.open()));
  } catch (error) {
    if (lease.memory.fail("sessions", error)) logger.warn(`sessions: ${String(error)}`);
  }
}

export interface KnownSession {
  readonly sessionKey: string;
  readonly sessionId: string;
  readonly updatedAt: number;
}

/** Sessions of the host, most recently used first. */
export function listHostSessions(api: Pick<PluginApi, "config" | "runtime">): KnownSession[] {
  const list = api.runtime.agent?.session?.listSessionEntries;
  if (list === undefined) return [];
  const agents = (api.config?.agents as { list?: { id?: string }[] } | undefined)?.list ?? [];
  const agentIds = new Set(["main", ...agents.flatMap(({ id }) => (typeof id === "string" ? [id] : []))]);
  return [...agentIds]
    .flatMap((agentId) => list({ agentId }))
    .flatMap(({ sessionKey, entry }) =>
      typeof entry?.sessionId === "string"
        ? [{ sessionKey, sessionId: entry.sessionId, updatedAt: entry.updatedAt ?? 0 }]
        : [],
    )
    .toSorted((a, b) => b.updatedAt - a.updatedAt);
}

/** Reads what first contact left of a session, page by page, so that a turn of it can come in between. */
async function importRest(
  { lease, reader, media, logger }: SessionHookParts,
  session: SessionRef,
  target: TranscriptTarget,
  signal: AbortSignal,
): Promise<number> {
  const { memory } = lease;
  if (memory.importing.has(session.id)) return 0;
  memory.importing.add(session.id);
  try {
    return await importOlder({
      engine: await lease.open(),
      reader,
      media,
      target,
      session,
      signal,
      inOrder: (task) => lease.inOrder(session.id, task),
      onProgress: (done, rows) => noteImport(memory, session.key, done, rows),
    });
  } catch (error) {
    if (!signal.aborted)
      logger.warn(`the history of ${session.key} is read at its next turn: ${String(error)}`);
    return 0;
  } finally {
    memory.importing.delete(session.id);
  }
}

/** The cost of folding a session, estimated from its stored rows; nothing if they cannot be read. */
async function estimateSession(
  { lease, policy }: SessionHookParts,
  session: SessionRef,
): Promise<FoldEstimate> {
  if (policy === undefined) return NO_FOLDING;
  try {
    const engine = await lease.open();
    const { items } = await engine.listConversations({
      owner: session.owner,
      sessionKey: session.key,
      limit: 1,
    });
    return estimateFolding(items, policy);
  } catch {
    // A failed estimate is not a reason to stop; other code reports problems of the archive.
    return NO_FOLDING;
  }
}

/** Reads sessions that the archive does not know, one after the other. A turn in one of them reads it itself and does not wait for this. */
export async function importSessions(
  parts: SessionHookParts,
  sessions: readonly KnownSession[],
  signal: AbortSignal,
): Promise<number> {
  const { lease } = parts;
  let imported = 0;
  const wanted = sessions.filter(({ sessionKey }) => parts.isCaptured(sessionKey));
  let { folding } = lease.memory.earlier;
  for (const [index, { sessionId, sessionKey }] of wanted.entries()) {
    if (signal.aborted) break;
    const { reader, media } = parts;
    const { session, target } = readAddress({ sessionId, sessionKey });
    await settle(parts, sessionId, async (engine) => {
      if ((await engine.readSession({ sessionId, owner: session.owner })) !== null) return;
      lease.memory.fail(
        "import",
        new Error(`history of earlier sessions is being read: ${index + 1} of ${wanted.length}`),
      );
      const read = await catchUp({ engine, reader, media, target, session, moveCursor: true });
      if (read.kind === "caught-up") imported += read.stored;
    });
    imported += await importRest(parts, session, target, signal);
    folding = addEstimates(folding, await estimateSession(parts, session));
    lease.memory.earlier = { sessions: wanted.length, read: index + 1, messages: imported, folding };
  }
  lease.memory.recover("import");
  return imported;
}

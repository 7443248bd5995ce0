/**
 * Sessions that the host created as a copy of another one. The head of such a transcript names its parent, and the copied entries keep their
 * ids: they become aliases of the stored messages, instead of being stored again.
 */

import type { CatchUpRequest } from "./store-rows.ts";
import { UNREAD } from "./reader-state.ts";
import { readNewRows, type TranscriptRow } from "./transcript-rows.ts";

/** Records in the archive that a session is a fork. True when it is one and its parent is known. For sessions the archive does not know yet. */
export async function joinFork(request: CatchUpRequest): Promise<boolean> {
  const parentSessionId = await readParent(request);
  if (parentSessionId === null) return false;
  const { engine, session } = request;
  const eventIds = await listCopied(request, parentSessionId);
  if (eventIds.length === 0) return false;
  return (await engine.fork({ session, parentSessionId, eventIds })).kind !== "unrelated";
}

/** Drops rows that the session has from its parent: only the parent can change them. */
export async function dropCopied(
  { engine, session }: CatchUpRequest,
  parentSessionId: string | null,
  rows: readonly TranscriptRow[],
): Promise<readonly TranscriptRow[]> {
  if (parentSessionId === null) return rows;
  const eventIds = rows.flatMap((row) => (row.kind === "message" ? [row.entryId] : []));
  const copied = new Set(
    await engine.knownEvents({ sessionId: parentSessionId, owner: session.owner, eventIds }),
  );
  return rows.filter((row) => row.kind !== "message" || !copied.has(row.entryId));
}

/** The first event of a transcript names its parent session, in the host's notation. */
export async function readParent({ reader, target }: CatchUpRequest): Promise<string | null> {
  const page = await reader.readRaw(target, null, 1);
  const [head] = page.kind === "page" ? page.items : [];
  if (head?.type !== "session" || typeof head.parentSession !== "string") return null;
  const [, agentId, sessionId] = /^sqlite:([^:]+):([^:]+):/.exec(head.parentSession) ?? [];
  return agentId === target.agentId && sessionId !== target.sessionId ? (sessionId ?? null) : null;
}

/** The entries at the front that the parent also has. */
async function listCopied(
  { engine, reader, target, session, turn }: CatchUpRequest,
  parentSessionId: string,
): Promise<string[]> {
  const copied: string[] = [];
  for await (const read of readNewRows(reader, target, UNREAD, turn?.last)) {
    if (read.kind !== "rows") return [];
    const eventIds = read.rows.flatMap((row) => (row.kind === "message" ? [row.entryId] : []));
    const known = new Set(
      await engine.knownEvents({ sessionId: parentSessionId, owner: session.owner, eventIds }),
    );
    const end = eventIds.findIndex((eventId) => !known.has(eventId));
    copied.push(...(end < 0 ? eventIds : eventIds.slice(0, end)));
    if (end >= 0) break;
  }
  return copied;
}

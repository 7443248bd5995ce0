/** Chooses the session for a source that is not a file of lines, and decides whether the caller wants that session at all. */

import { stat } from "node:fs/promises";

import { parseCursor } from "./cursor.ts";
import type { FileSession } from "./detect.ts";
import type { FormatName } from "../formats/names.ts";
import type { ImportTarget } from "./import-target.ts";

/** A session that is about to be stored. */
export interface ComingSession {
  readonly path: string;
  readonly sessionId: string;
  /** Its folder; undefined while its lines may still name one, null if they do not. */
  readonly folder: string | null | undefined;
}

/** Why a session must not be stored, or null. Called before anything of it is stored. */
export type ExcludeSession = (session: ComingSession) => string | null;

export interface SessionChoice {
  readonly exclude?: ExcludeSession | undefined;
  /** Session ids, session keys or both; absent: every session. */
  readonly sessionFilter?: readonly string[] | undefined;
  /** ms UTC: sources last changed before this are left out. */
  readonly since?: number | undefined;
}

/** A session that was imported in another format is another record of the same conversation, with its own lines, and so a session of its own. */
export async function chooseIdentity(
  engine: ImportTarget,
  owner: string,
  format: { readonly name: FormatName },
  found: FileSession,
): Promise<FileSession> {
  const session = await engine.readSession({ sessionId: found.id, owner });
  const stored = parseCursor(session?.cursor ?? null);
  const isOtherFormat = stored.kind === "import" && stored.format !== format.name;
  return isOtherFormat ? { ...found, id: qualify(format, found.id) } : found;
}

export function qualify(format: { readonly name: FormatName }, sessionId: string): string {
  const prefix = `${format.name}:`;
  return sessionId.startsWith(prefix) ? sessionId : `${prefix}${sessionId}`;
}

/** Why a session is left out, or null. */
export async function whyLeftOut(
  choice: SessionChoice,
  session: { readonly id: string; readonly key: string },
  path: string,
): Promise<string | null> {
  const { sessionFilter, since } = choice;
  if (sessionFilter !== undefined && sessionFilter.length > 0) {
    const names = [session.id, session.key];
    if (!sessionFilter.some((wanted) => names.includes(wanted)))
      return `session ${session.id} was not asked for`;
  }
  if (since !== undefined && (await stat(path)).mtimeMs < since)
    return "it was last changed before the given time";
  return null;
}

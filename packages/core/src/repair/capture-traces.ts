/**
 * What capture from other agents keeps of a session outside the archive: notes of hooks, prepared bundles, and the agent's own transcript.
 * The first two are ours and are removed when their session is forgotten; the transcript is the agent's, is never changed, and is reported.
 */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import type { Engine } from "../engine/engine.ts";
import { nameLocally } from "../settings/local-name.ts";

/** Below the capture folder; the hook scripts beside them contain nothing of a session. */
const FOLDERS = ["spool", "bundles"] as const;

/** Our files that name one of the sessions, in their names or contents. */
export function listCaptureFiles(databasePath: string, sessionIds: readonly string[]): string[] {
  const folder = `${resolve(nameLocally(databasePath))}.capture`;
  return FOLDERS.map((name) => join(folder, name))
    .filter((each) => existsSync(each))
    .flatMap((each) => readdirSync(each).map((name) => join(each, name)))
    .filter((path) => {
      const text = `${path}\n${readFileSync(path, "utf8")}`;
      return sessionIds.some((sessionId) => text.includes(sessionId));
    });
}

/** Existing transcripts that the conversations were imported from. */
export async function listTranscripts(engine: Engine, conversationIds: readonly number[]): Promise<string[]> {
  const wanted = new Set(conversationIds);
  const imports = await engine.listImports();
  const sources = imports
    .filter(({ conversationId }) => wanted.has(conversationId))
    .map(({ source }) => source);
  return [...new Set(sources)].filter((path) => existsSync(path)).toSorted();
}

/** The ids of the sessions of conversations. */
export async function listSessionIds(engine: Engine, conversationIds: readonly number[]): Promise<string[]> {
  const rows = await Promise.all(
    conversationIds.map((conversationId) => engine.readConversation({ conversationId })),
  );
  return rows.flatMap((row) => (row === null ? [] : [row.sessionId]));
}

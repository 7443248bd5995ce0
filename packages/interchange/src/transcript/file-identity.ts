/**
 * Finds the session of a file of lines. In this order: the session that the first line with an id names; the session that this path had before,
 * if the file's first line is the same; the file's name with a hash of its first line, a stand-in.
 *
 * Invariant: the result must not depend on how much of a file existed when it was first read. So a file whose lines name a session takes over
 * the stand-in that an import of a shorter version left, and a version too short to name one goes to the session that has all of its lines.
 */

import { createHash } from "node:crypto";
import { resolve } from "node:path";

import { parseCursor, proveCursor, type StoredCursor } from "./cursor.ts";
import { isUnfinished, readUuidName, type FileSession, type OpenTranscript, type StandIn } from "./detect.ts";
import { EventIds, nameLine } from "./event-ids.ts";
import { parseLine, type TranscriptFormat } from "../formats/format.ts";
import { chooseIdentity } from "./identity.ts";
import type { ImportTarget } from "./import-target.ts";
import { readLines } from "./lines.ts";
import { tellKnown } from "./moved-lines.ts";

export interface ChosenSession extends FileSession {
  /** The stand-in of this session. */
  readonly relabels: string | null;
}

export interface FileLook {
  readonly engine: ImportTarget;
  readonly owner: string;
  readonly format: TranscriptFormat;
  readonly transcript: OpenTranscript;
  readonly signal?: AbortSignal | undefined;
}

/** A session that has the file's first line. */
interface Candidate {
  readonly id: string;
  readonly isStandIn: boolean;
  readonly stored: Extract<StoredCursor, { kind: "import" }>;
}

export async function chooseFileSession(look: FileLook, found: FileSession): Promise<ChosenSession> {
  const { engine, owner, format } = look;
  const { standIn } = found;
  if (standIn === null) return { ...(await chooseIdentity(engine, owner, format, found)), relabels: null };
  const candidates = await listCandidates(look, standIn);
  if (found.id === standIn.id)
    return { ...found, id: (await findEarlier(look, standIn, candidates)) ?? standIn.id, relabels: null };
  const named = await chooseIdentity(engine, owner, format, found);
  if ((await engine.readSession({ sessionId: named.id, owner })) !== null)
    return { ...named, relabels: null };
  return { ...named, relabels: await findStandIn(look, standIn, candidates) };
}

/** A path as sessions remember it. */
export function hashPath(path: string): string {
  return createHash("sha256").update(resolve(path)).digest("hex").slice(0, 16);
}

/** Sessions named by lines come first: what they know, no stand-in has to. */
async function listCandidates(look: FileLook, standIn: StandIn): Promise<Candidate[]> {
  const { engine, owner, format } = look;
  const { firstLine } = standIn;
  const candidates: Candidate[] = [];
  for (const id of await listSessionsWith(look, standIn)) {
    const stored = parseCursor((await engine.readSession({ sessionId: id, owner }))?.cursor ?? null);
    if (stored.kind !== "import" || stored.format !== format.name || stored.relabelledTo !== null) continue;
    const isStandIn = id.startsWith("file:") && id.endsWith(`:${firstLine.slice(0, 12)}`);
    candidates.push({ id, isStandIn, stored });
  }
  return candidates.sort((a, b) => Number(a.isStandIn) - Number(b.isStandIn));
}

/**
 * Sessions that have the first line. Where lines never name a session, a file is known by its name alone: many talks begin with the same words,
 * so equal lines prove nothing, and to look at all of them would take longer with each.
 */
async function listSessionsWith(
  { engine, owner, format, transcript }: FileLook,
  { id, eventId }: StandIn,
): Promise<readonly string[]> {
  if (format.namesSession) return engine.findSessions({ owner, eventId });
  const found: string[] = [];
  for (const sessionId of new Set([id, readUuidName(transcript.path) ?? id]))
    if ((await engine.knownEvents({ sessionId, owner, eventIds: [eventId] })).length > 0)
      found.push(sessionId);
  return found;
}

/** The session of a file whose lines name none, if an earlier import knows it. */
async function findEarlier(
  look: FileLook,
  standIn: StandIn,
  candidates: readonly Candidate[],
): Promise<string | null> {
  const { engine, owner, transcript } = look;
  const ofPath = candidates.find((candidate) => hadPath(candidate, transcript.path, standIn));
  if (ofPath !== undefined) return ofPath.id;
  // A known stand-in keeps the session it was relabelled to, if any. Earlier versions used a UUID in the name as it is.
  const before = parseCursor((await engine.readSession({ sessionId: standIn.id, owner }))?.cursor ?? null);
  if (before.kind === "import") return before.relabelledTo;
  const uuid = readUuidName(transcript.path);
  if (uuid !== null && candidates.some(({ id }) => id === uuid)) return uuid;
  for (const candidate of candidates) {
    if (candidate.isStandIn && (await continues(look, candidate, standIn))) return candidate.id;
    if (await knowsAll(look, candidate.id)) return candidate.id;
  }
  return null;
}

/** The stand-in under which an earlier, shorter version of a file was stored. */
async function findStandIn(
  look: FileLook,
  standIn: StandIn,
  candidates: readonly Candidate[],
): Promise<string | null> {
  const { path } = look.transcript;
  const uuid = readUuidName(path);
  const standIns = candidates.filter(({ isStandIn, id }) => isStandIn || id === uuid);
  const own = standIns.find(
    (candidate) => candidate.id === standIn.id || (candidate.isStandIn && hadPath(candidate, path, standIn)),
  );
  if (own !== undefined) return own.id;
  for (const candidate of standIns) if (await continues(look, candidate, standIn)) return candidate.id;
  return null;
}

const hadPath = ({ stored }: Candidate, path: string, { firstLine }: StandIn): boolean =>
  stored.files[hashPath(path)] === firstLine;

/** True if the file begins with everything that the candidate was imported from. */
async function continues(
  { transcript, signal }: FileLook,
  { stored: { cursor } }: Candidate,
  { eventId }: StandIn,
): Promise<boolean> {
  if (cursor === null) return false;
  if (cursor.offset === 0) return cursor.openEventId === eventId;
  const { file, path, end } = transcript;
  return (await proveCursor(file, cursor, { path, end, signal })) !== null;
}

/** True if the session has stored every line of the file. */
async function knowsAll(look: FileLook, sessionId: string): Promise<boolean> {
  const { engine, owner } = look;
  for await (const isKnown of tellKnown(engine, { id: sessionId, owner }, listEventIds(look)))
    if (!isKnown) return false;
  return true;
}

/** The event ids of the lines of a file, up to one that is not finished or too long. */
export async function* listEventIds({
  format,
  transcript,
  signal,
}: Pick<FileLook, "format" | "transcript" | "signal">): AsyncGenerator<string> {
  const ids = new EventIds();
  for await (const line of readLines(transcript.file, { ...transcript, signal, stopsAtOverlong: true })) {
    if (isUnfinished(line)) return;
    const parsed = parseLine(line.bytes);
    const facts = parsed.kind === "entry" ? format.readFacts(parsed.entry, { isSubAgent: false }) : null;
    yield ids.assign(nameLine(line.bytes, facts?.id));
  }
}

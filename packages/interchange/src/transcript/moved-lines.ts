/**
 * Where lines go when a source no longer has all that it once had: a file that was cut, that lost its first lines, or that was written again by
 * its agent. Numbers of lines are positions, so after such a cut the next new line would get the number of an old one, and its place.
 *
 * Invariant: what follows the last known line of a source goes behind everything that was stored from it before.
 */
import type { SessionRef } from "@lossless/core";
import type { ImportCursor } from "./cursor.ts";
import type { ImportTarget } from "./import-target.ts";

/** Event ids that are looked up together. */
const LOOKED_UP_AT_ONCE = 512;

type EventIdList = Iterable<string> | AsyncIterable<string>;
type KnownSession = Pick<SessionRef, "id" | "owner">;

/** For each event id, in order, whether the session has stored it. */
export async function* tellKnown(
  engine: ImportTarget,
  { id: sessionId, owner }: KnownSession,
  eventIds: EventIdList,
): AsyncGenerator<boolean> {
  let asked: string[] = [];
  const look = async (): Promise<boolean[]> => {
    const known = new Set(await engine.knownEvents({ sessionId, owner, eventIds: asked }));
    return asked.map((eventId) => known.has(eventId));
  };
  for await (const eventId of eventIds) {
    asked.push(eventId);
    if (asked.length < LOOKED_UP_AT_ONCE) continue;
    yield* await look();
    asked = [];
  }
  if (asked.length > 0) yield* await look();
}

/** How many numbers of lines the session has used. */
export const countUsed = ({ lines, removedLines = 0, openEventId }: ImportCursor): number =>
  lines + removedLines + (openEventId === null ? 0 : 1);

/** What has to be added to the numbers of a source's lines when the session has used so many. */
export async function countRemoved(
  engine: ImportTarget,
  session: KnownSession,
  used: number,
  eventIds: EventIdList,
): Promise<number> {
  if (used === 0) return 0;
  let [number, lastKnown] = [0, 0];
  for await (const isKnown of tellKnown(engine, session, eventIds)) {
    number += 1;
    if (isKnown) lastKnown = number;
  }
  return Math.max(0, used - lastKnown);
}

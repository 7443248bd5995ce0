/**
 * Which message an event id names, session by session.
 *
 * Invariant: the id of the first message of every event has a row in `event_ids`, written in the transaction that stores the message.
 */
import type { Connection } from "./connection.ts";

const SELECT_SESSION = "SELECT session_ref FROM sessions WHERE owner = ? AND session_id = ?";
const SELECT_EVENT = "SELECT message_id FROM event_ids WHERE session_ref = ? AND event_id = ?";

export function findSession(connection: Connection, owner: string, sessionId: string): number | null {
  return connection.get<{ session_ref: number }>(SELECT_SESSION, owner, sessionId)?.session_ref ?? null;
}

/** The first message of an event, if it is stored. */
export function findEvent(connection: Connection, sessionRef: number, eventId: string): number | undefined {
  return connection.get<{ message_id: number }>(SELECT_EVENT, sessionRef, eventId)?.message_id;
}

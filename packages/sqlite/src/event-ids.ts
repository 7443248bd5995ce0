/**
 * Which message an event id names, session by session.
 *
 * Invariant: the id of the first message of every event has a row in `event_ids`, written in the transaction that stores the message.
 */
import { EVENT_KIND } from "@lossless/core/adapter";
import type { Connection } from "./connection.ts";

const SELECT_EVENT = "SELECT message_id FROM event_ids WHERE session_ref = ? AND event_id = ?";

/** The first message of an event, if it is stored. */
export function findEvent(connection: Connection, sessionRef: number, eventId: string): number | undefined {
  return connection.get<{ message_id: number }>(SELECT_EVENT, sessionRef, eventId)?.message_id;
}

/** Must be called inside `write`. */
export function recordEvent(
  connection: Connection,
  session_ref: number,
  event_id: string,
  message_id: number,
  kind: keyof typeof EVENT_KIND,
): void {
  connection.insert("event_ids", { session_ref, event_id, message_id, kind: EVENT_KIND[kind] });
}

/**
 * Changes that are not messages: re-labelling provisional ids, hiding and showing, boundaries. Each writes a record into the same
 * hash chain as the messages, so that `verify` can replay it.
 */
import { EVENT_KIND, HIDDEN, readCover } from "@lossless/core/adapter";
import type { Head, Heads, HiddenReason, Placement, SessionRef } from "@lossless/core/adapter";
import type { BoundaryRequest, Place, RelabelSession } from "@lossless/core/ports";
import { recordEvent } from "./event-ids.ts";
import type { Connection } from "./connection.ts";
import type { StoreContext } from "./context.ts";
import { findSession, openHeads, openPlacement } from "./placement.ts";
import { answerNow } from "./plans.ts";
import { dropVectors } from "./vectors.ts";

const SELECT_EVENT = `
  SELECT e.message_id, e.kind, m.conversation_id, m.seq, m.position, m.hidden_now
  FROM event_ids e JOIN messages m USING (message_id) WHERE e.session_ref = ? AND e.event_id = ?`;
const SET_MESSAGE_HIDDEN = "UPDATE messages SET hidden_now = ? WHERE message_id = ?";
const EVENTS_HIDDEN_FOR = `
  SELECT m.event_id FROM placements p JOIN messages m ON m.conversation_id = p.conversation_id
  WHERE p.session_ref = ?1 AND (m.hidden_now & ?2) <> 0 AND m.revises IS NULL AND (m.session_ref = ?1 OR EXISTS (
    SELECT 1 FROM event_ids e WHERE e.session_ref = ?1 AND e.event_id = m.event_id AND e.message_id = m.message_id))`;
const EVENTS_OF = `
  SELECT e.event_id, e.message_id, m.conversation_id, m.seq FROM event_ids e JOIN messages m USING (message_id)
  WHERE e.session_ref = ? ORDER BY m.conversation_id, m.seq, e.event_id`;
const COPY_PLACEMENTS = `
  INSERT INTO placements (session_ref, start_position, conversation_id, base_position)
  SELECT ?2, start_position, conversation_id, base_position FROM placements WHERE session_ref = ?1`;
const COPY_CURSOR = `
  UPDATE sessions SET (cursor, last_event) = (SELECT f.cursor, f.last_event FROM sessions f WHERE f.session_ref = ?1)
  WHERE session_ref = ?2`;
const SET_CURSOR = "UPDATE sessions SET cursor = ? WHERE session_ref = ?";
const SELECT_BOUNDARY = "SELECT conversation_id FROM boundaries WHERE session_ref = ? AND event_id = ?";
const INSERT_BOUNDARY = `
  INSERT INTO boundaries (conversation_id, session_ref, event_id, position, reason, retain_depth, shown_before, at)
  VALUES (?, ?, ?, ?, ?, ?, ?, ?)`;
const ACTIVE =
  "SELECT conversation_id AS id FROM conversations WHERE owner = ? AND session_key = ? AND archived_at IS NULL";
const SHOWN_BEFORE = `
  SELECT coalesce(sum(messages), 0) AS n FROM context_items WHERE conversation_id = ? AND start_pos < ? AND hidden = 0`;

interface EventRow {
  message_id: number;
  kind: number;
  conversation_id: number;
  seq: number;
  position: number;
  hidden_now: number;
}

/** Gives messages stored under provisional ids the host's own ids. Known new ids are left alone. */
export function relabel(
  { connection }: StoreContext,
  session: SessionRef,
  labels: readonly { from: string; to: string }[],
  now: number,
): number {
  return connection.write(() => {
    const { placement, heads } = openPlacement(connection, session, now);
    let changed = 0;
    for (const { from, to } of labels) {
      const event = connection.get<EventRow>(SELECT_EVENT, placement.sessionRef, from);
      if (!event || event.kind !== EVENT_KIND.provisional) continue;
      if (connection.get(SELECT_EVENT, placement.sessionRef, to)) continue;
      recordEvent(connection, placement.sessionRef, to, event.message_id, "alias");
      heads
        .of(event.conversation_id)
        .takeRecord(connection, "relabel", { sessionId: session.id, seq: event.seq, from, to }, now);
      changed += 1;
    }
    heads.save(now);
    return changed;
  });
}

/** Each event gets a record of its own: what an archive proves of aliases it proves of these. */
export function relabelSession(
  { connection }: StoreContext,
  { from, session, cursor, now }: RelabelSession,
): boolean {
  return connection.write(() => {
    const fromRef = findSession(connection, session.owner, from);
    if (fromRef === null || findSession(connection, session.owner, session.id) !== null) return false;
    const stored = connection.all<{
      event_id: string;
      message_id: number;
      conversation_id: number;
      seq: number;
    }>(EVENTS_OF, fromRef);
    const { placement, heads } = openPlacement(connection, session, now);
    connection.run(COPY_PLACEMENTS, fromRef, placement.sessionRef);
    connection.run(COPY_CURSOR, fromRef, placement.sessionRef);
    connection.run(SET_CURSOR, cursor, fromRef);
    for (const { event_id: eventId, message_id: messageId, conversation_id: conversationId, seq } of stored) {
      recordEvent(connection, placement.sessionRef, eventId, messageId, "alias");
      heads
        .of(conversationId)
        .takeRecord(
          connection,
          "relabel",
          { sessionId: session.id, seq, from: eventId, to: eventId, fromSession: from },
          now,
        );
    }
    heads.save(now);
    return true;
  });
}

/**
 * Hides messages for a reason, or shows them again. `exactly`: the given events, and no others of the session, are hidden for it;
 * `add`: the given ones are hidden, the others stay as they are.
 */
export function setHidden(
  { connection }: StoreContext,
  session: SessionRef,
  reason: HiddenReason,
  eventIds: readonly string[],
  now: number,
  mode: "exactly" | "add",
): number {
  return connection.write(() => {
    const sessionRef = findSession(connection, session.owner, session.id);
    if (sessionRef === null) return 0;
    const wanted = new Set(eventIds);
    const present = new Set(
      connection
        .all<{ event_id: string }>(EVENTS_HIDDEN_FOR, sessionRef, HIDDEN[reason])
        .map((row) => row.event_id),
    );
    const hide = [...wanted].filter((id) => !present.has(id));
    const show = mode === "exactly" ? [...present].filter((id) => !wanted.has(id)) : [];
    if (hide.length === 0 && show.length === 0) return 0;
    const heads = openHeads(connection);
    const changed =
      applyHidden(connection, heads, sessionRef, reason, hide, true, now) +
      applyHidden(connection, heads, sessionRef, reason, show, false, now);
    heads.save(now);
    return changed;
  });
}

function applyHidden(
  connection: Connection,
  heads: Heads,
  sessionRef: number,
  reason: HiddenReason,
  eventIds: readonly string[],
  hide: boolean,
  now: number,
): number {
  const changes: HiddenChange[] = [];
  for (const eventId of eventIds) {
    const event = connection.get<EventRow>(SELECT_EVENT, sessionRef, eventId);
    if (!event) continue;
    const before = event.hidden_now;
    const after = hide ? before | HIDDEN[reason] : before & ~HIDDEN[reason];
    if (after === before) continue;
    connection.run(SET_MESSAGE_HIDDEN, after, event.message_id);
    if (after !== 0) dropVectors(connection, event.message_id);
    const { conversation_id: conversationId, position, seq } = event;
    changes.push({ conversationId, position, seq, before, after });
  }
  hideInCover(connection, heads, changes);
  for (const [conversationId, places] of Map.groupBy(changes, (change) => change.conversationId)) {
    const seqs = places.map(({ seq }) => seq);
    heads.of(conversationId).takeRecord(connection, hide ? "hide" : "show", { reason, seqs }, now);
  }
  return changes.length;
}

interface HiddenChange extends Place {
  readonly before: number;
  readonly after: number;
}

/** Inside the caller's transaction: the cover follows what is hidden. */
function hideInCover(connection: Connection, heads: Heads, changes: readonly HiddenChange[]): void {
  const cover = answerNow({ connection }, readCover(changes, heads));
  for (const { before, after, ...place } of changes) cover.setHidden(place, before, after);
  answerNow({ connection }, cover.save());
}

/** Where a reset falls: what follows goes to a new conversation of the family, or stays behind a line in the same one. */
export function recordBoundary(
  { connection }: StoreContext,
  request: BoundaryRequest,
): { kind: "recorded" | "known"; conversationId: number } {
  const { session, eventId, reason, at } = request;
  return connection.write(() => {
    const { placement, heads } = openPlacement(connection, session, at);
    const known = connection.get<{ conversation_id: number }>(SELECT_BOUNDARY, placement.sessionRef, eventId);
    if (known) return { kind: "known", conversationId: placement.readCurrent().conversationId };
    const { head, position: wanted } = placement.place(request.position);
    const position = wanted ?? head.nextPosition();
    const shownBefore = connection.get<{ n: number }>(SHOWN_BEFORE, head.conversationId, position)?.n ?? 0;
    connection.run(
      INSERT_BOUNDARY,
      head.conversationId,
      placement.sessionRef,
      eventId,
      position,
      reason,
      request.retainDepth,
      shownBefore,
      at,
    );
    head.takeRecord(
      connection,
      "boundary",
      { sessionId: session.id, eventId, reason, position, retainDepth: request.retainDepth, shownBefore },
      at,
    );
    const next = request.position ?? position;
    const after = reason === "new" ? head : close(connection, heads, placement, request, next);
    heads.save(at);
    return { kind: "recorded", conversationId: after.conversationId };
  });
}

/**
 * Closes the conversation a session is in. A key has one active conversation: where another session has closed this one before and gone on
 * in the next, only a reset begins a further one.
 */
function close(
  connection: Connection,
  heads: Heads,
  placement: Placement,
  { session: { owner, key }, reason, at }: BoundaryRequest,
  startNextAt: number,
): Head {
  const active = connection.get<{ id: number }>(ACTIVE, owner, key)?.id;
  const isElsewhere = active !== undefined && active !== placement.readCurrent().conversationId;
  if (isElsewhere && reason === "reset") heads.of(active).archive(connection, reason, at);
  const isNextWanted = reason !== "deleted" && (reason === "reset" || !isElsewhere);
  return placement.archive(reason, isNextWanted ? startNextAt : null);
}

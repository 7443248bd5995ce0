/**
 * Changes that are not messages: relabelling provisional ids, hiding and showing, boundaries. Each writes a record into the same hash chain
 * as the messages, so that `verify` can replay it.
 */
import { HIDDEN } from "../model/message.ts";
import type { HiddenReason, SessionRef } from "../model/message.ts";
import type { BoundaryResult, BoundaryRequest, RelabelSession } from "../store/rows.ts";
import { Changes } from "./changes.ts";
import type { Head } from "./head.ts";
import { askLocked } from "./heads.ts";
import type { Heads } from "./heads.ts";
import { changeHidden } from "./hide.ts";
import { EVENT_KIND, nameEvent } from "./identity.ts";
import { describeSession, openPlacement } from "./placement.ts";
import type { Placement } from "./placement.ts";
import { flushIfLong, read, together } from "./plan.ts";
import type { Asking, Plan } from "./plan.ts";
import type { HeadRow, HideableMessage, NamedMessage } from "./reads.ts";

/** Gives messages stored under provisional ids the host's own ids. New ids that are already known are left alone. */
export function* planRelabel(
  session: SessionRef,
  labels: readonly { readonly from: string; readonly to: string }[],
  now: number,
): Plan<number> {
  const changes = new Changes();
  const ids = new Set(labels.flatMap(({ from, to }) => [from, to]));
  const { found, heads } = yield* askLocked(
    changes,
    () => together(read.sessions(session.owner, [session.id]), read.events(session, [...ids])),
    ([, events]) => events.map((event) => event.conversation_id),
  );
  const [[known], named] = found;
  const names = new Map(named.map((event) => [nameEvent(event.event_id), event]));
  let changed = 0;
  for (const { from, to } of labels) {
    const event = names.get(nameEvent(from));
    if (!known || event?.kind !== EVENT_KIND.provisional || names.has(nameEvent(to))) continue;
    addAlias(
      changes,
      heads,
      known.session_ref,
      event,
      { sessionId: session.id, seq: event.seq, from, to },
      now,
    );
    names.set(nameEvent(to), { ...event, kind: EVENT_KIND.alias });
    changed += 1;
  }
  heads.save(now);
  return changes.done(changed);
}

/** The ledger record of an alias. */
interface Relabel {
  readonly sessionId: string;
  readonly seq: number;
  readonly from: string;
  readonly to: string;
  readonly fromSession?: string;
}

function addAlias(
  changes: Changes,
  heads: Heads,
  session_ref: number,
  { message_id, conversation_id }: NamedMessage,
  record: Relabel,
  now: number,
): void {
  changes.insert("event_ids", { session_ref, event_id: record.to, message_id, kind: EVENT_KIND.alias });
  heads.of(conversation_id).takeRecord(changes, "relabel", record, now);
}

/** Each event gets a separate record: they are proven in the same way as aliases. */
export function* planRelabelSession({ from, session, cursor, now }: RelabelSession): Plan<boolean> {
  const changes = new Changes();
  const { owner, id } = session;
  const [{ placements }, [old], [taken], [session_ref = 0]] = yield* together(
    read.placements({ ...session, id: from }),
    read.sessions(owner, [from]),
    read.sessions(owner, [id]),
    read.ids("sessions", 1),
  );
  if (!old || taken) return changes.done(false);
  const { found: stored, heads } = yield* askLocked(
    changes,
    function* ask() {
      return yield* read.allEvents(old.session_ref);
    },
    (events) => [...placements, ...events].map((row) => row.conversation_id),
  );
  const { last_event } = old;
  changes.insert("sessions", { ...describeSession(session_ref, owner, id), cursor: old.cursor, last_event });
  changes.update("sessions", { session_ref: old.session_ref }, { cursor });
  for (const placement of placements) changes.insert("placements", { ...placement, session_ref });
  for (const event of stored) {
    const { seq, event_id: name } = event;
    const record = { sessionId: id, seq, from: name, to: name, fromSession: from };
    addAlias(changes, heads, session_ref, event, record, now);
    yield* flushIfLong(changes);
  }
  heads.save(now);
  return changes.done(true);
}

export interface HideRequest {
  readonly session: SessionRef;
  readonly reason: HiddenReason;
  readonly eventIds: readonly string[];
  /** `exactly`: these events of the session, and no others, are hidden for the reason; `add`: the others stay as they are. */
  readonly mode: "exactly" | "add";
  readonly now: number;
}

/** Hides messages for a reason, or shows them again. An event is the same under each of its ids. */
export function* planSetHidden({ session, reason, eventIds, mode, now }: HideRequest): Plan<number> {
  const changes = new Changes();
  const bit = HIDDEN[reason];
  const select = function* select(): Asking<{ hide: HideableMessage[]; show: HideableMessage[] }> {
    const [named, present] = yield* together(
      read.events(session, [...new Set(eventIds)]),
      read.hiddenFor(session, bit),
    );
    const wanted = new Map<number, HideableMessage>(named.map((event) => [event.message_id, event]));
    return {
      hide: inOrder([...wanted.values()].filter(({ hidden_now }) => (hidden_now & bit) === 0)),
      show: mode === "exactly" ? inOrder(present.filter(({ message_id }) => !wanted.has(message_id))) : [],
    };
  };
  const { found, heads } = yield* askLocked(changes, select, ({ hide, show }) =>
    [...hide, ...show].map((message) => message.conversation_id),
  );
  const { hide, show } = found;
  yield* changeHidden(changes, heads, [
    ...hide.map((message) => ({ message, after: message.hidden_now | bit })),
    ...show.map((message) => ({ message, after: message.hidden_now & ~bit })),
  ]);
  recordHidden(changes, heads, "hide", reason, hide, now);
  recordHidden(changes, heads, "show", reason, show, now);
  heads.save(now);
  return changes.done(hide.length + show.length);
}

const inOrder = (messages: readonly HideableMessage[]): HideableMessage[] =>
  messages.toSorted((a, b) => a.conversation_id - b.conversation_id || a.seq - b.seq);

function recordHidden(
  changes: Changes,
  heads: Heads,
  kind: "hide" | "show",
  reason: HiddenReason,
  messages: readonly HideableMessage[],
  now: number,
): void {
  for (const [id, some] of Map.groupBy(messages, (message) => message.conversation_id)) {
    const seqs = some.map(({ seq }) => seq);
    heads.of(id).takeRecord(changes, kind, { reason, seqs }, now);
  }
}

/** Records a reset: what follows goes to a new conversation of the family, or stays in the same one after a boundary. */
export function* planBoundary(request: BoundaryRequest): Plan<BoundaryResult> {
  const { session, eventId, reason, retainDepth, at } = request;
  const changes = new Changes();
  const [found, [known], active] = yield* together(
    read.placements(session),
    read.boundaries(session, [eventId]),
    read.active(session.owner, session.key),
  );
  const { placement, heads } = yield* openPlacement(changes, session, at, found, [active]);
  if (known) return changes.done({ kind: "known", conversationId: placement.readCurrent().conversationId });
  const { head, position: wanted } = placement.place(request.position);
  const { conversationId } = head;
  const position = wanted ?? head.nextPosition();
  const shownBefore = yield* read.shownBefore(conversationId, position);
  changes.insert("boundaries", {
    conversation_id: conversationId,
    session_ref: placement.sessionRef,
    event_id: eventId,
    position,
    reason,
    retain_depth: retainDepth,
    shown_before: shownBefore,
    at,
    undone_at: null,
  });
  const body = { sessionId: session.id, eventId, reason, position, retainDepth, shownBefore };
  head.takeRecord(changes, "boundary", body, at);
  const next = request.position ?? position - placement.readBase();
  const after = reason === "new" ? head : close(heads, placement, active, request, next);
  heads.save(at);
  return changes.done({ kind: "recorded", conversationId: after.conversationId });
}

/**
 * Closes a session's current conversation. A key has one active conversation: if another session has already closed this one and continued
 * in the next, only a reset begins a further one.
 */
function close(
  heads: Heads,
  placement: Placement,
  activeRow: HeadRow | null,
  { reason, at }: BoundaryRequest,
  startNextAt: number,
): Head {
  const current = placement.readCurrent();
  const active = activeRow && heads.of(activeRow.conversation_id);
  const elsewhere = active && active !== current && !active.isArchived ? active : null;
  if (reason === "reset") elsewhere?.archive(heads.writer, reason, at);
  const isNextWanted = reason !== "deleted" && (reason === "reset" || !elsewhere);
  return placement.archive(reason, isNextWanted ? startNextAt : null);
}

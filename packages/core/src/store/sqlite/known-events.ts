/**
 * Which events of a batch the session has stored before. A turn asks for each of its few events; an import asks for all of a batch at
 * once, because hundreds of questions take longer than storing some of the answers.
 *
 * Invariant: an event that the batch itself has stored is known from then on.
 */
import type { Connection } from "./connection.ts";
import { findEvent } from "./event-ids.ts";

const SELECT_EVENTS = `
  SELECT event_id, message_id FROM event_ids
  WHERE session_ref = ? AND event_id IN (SELECT value FROM json_each(?))`;

/** Up to here, asking for each is the faster way. */
const FEW_EVENTS = 16;

export class KnownEvents {
  readonly #connection: Connection;
  readonly #sessionRef: number;
  /** Null: each is asked for. */
  readonly #messageIds: Map<string, number> | null;

  constructor(connection: Connection, sessionRef: number, eventIds: readonly string[]) {
    this.#connection = connection;
    this.#sessionRef = sessionRef;
    this.#messageIds = eventIds.length <= FEW_EVENTS ? null : this.#findAll(eventIds);
  }

  /** The first message of an event, if it is stored. */
  find(eventId: string): number | undefined {
    if (this.#messageIds !== null && isPlain(eventId)) return this.#messageIds.get(eventId);
    return findEvent(this.#connection, this.#sessionRef, eventId);
  }

  note(eventId: string, messageId: number): void {
    this.#messageIds?.set(eventId, messageId);
  }

  #findAll(eventIds: readonly string[]): Map<string, number> {
    const asked = JSON.stringify(eventIds.filter(isPlain));
    return new Map(this.#connection.list<[string, number]>(SELECT_EVENTS, this.#sessionRef, asked));
  }
}

/** Other ids do not come out of JSON, or of the database, as they went in. */
const isPlain = (eventId: string): boolean => eventId.isWellFormed() && !eventId.includes("\0");

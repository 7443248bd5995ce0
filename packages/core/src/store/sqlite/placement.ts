/**
 * Which conversation an event belongs to. A session's events go to one conversation until a reset starts the next one at a
 * position; events that turn up late still find the conversation their position lies in, archived or not.
 */
import { must } from "../../model/errors.ts";
import type { ForkOrigin } from "../../model/chain.ts";
import type { SessionRef } from "../../model/message.ts";
import type { Connection } from "./connection.ts";
import { ConversationHead } from "./conversation-head.ts";
import { nextId } from "./next-id.ts";

const SELECT_SESSION = "SELECT session_ref FROM sessions WHERE owner = ? AND session_id = ?";
const INSERT_SESSION = `INSERT INTO sessions (session_ref, owner, session_id) VALUES (${nextId("sessions")}, ?, ?)`;
const SELECT_PLACEMENTS =
  "SELECT start_position, conversation_id, base_position FROM placements WHERE session_ref = ? ORDER BY start_position DESC";
const INSERT_PLACEMENT = `
  INSERT INTO placements (session_ref, start_position, conversation_id, base_position) VALUES (?, ?, ?, ?)
  ON CONFLICT DO UPDATE SET conversation_id = excluded.conversation_id, base_position = excluded.base_position`;
const SELECT_ACTIVE =
  "SELECT conversation_id FROM conversations WHERE owner = ? AND session_key = ? AND archived_at IS NULL";
const ARCHIVE =
  "UPDATE conversations SET archived_at = ?, archive_cause = ? WHERE conversation_id = ? AND archived_at IS NULL";

/** Each run of a scheduled job is a conversation of its own. */
const CRON_KEY = /^agent:[^:]+:cron:/;

interface PlacementRow {
  start_position: number;
  conversation_id: number;
  base_position: number;
}

/** Where an event goes: its conversation, and its position there. Null: behind everything. */
export interface Place {
  readonly head: ConversationHead;
  readonly position: number | null;
}

export function findSession(connection: Connection, owner: string, sessionId: string): number | null {
  return connection.get<{ session_ref: number }>(SELECT_SESSION, owner, sessionId)?.session_ref ?? null;
}

/** The placements of one session inside a write transaction; conversation heads are opened once and saved together. */
export class Placement {
  readonly sessionRef: number;
  #connection: Connection;
  #session: SessionRef;
  #now: number;
  #rows: PlacementRow[];
  #heads = new Map<number, ConversationHead>();

  constructor(connection: Connection, session: SessionRef, now: number) {
    this.#connection = connection;
    this.#session = session;
    this.#now = now;
    this.sessionRef =
      findSession(connection, session.owner, session.id) ??
      connection.run(INSERT_SESSION, session.owner, session.id);
    this.#rows = connection.all<PlacementRow>(SELECT_PLACEMENTS, this.sessionRef);
  }

  /** Where an event of the session goes; without a position of its own, behind everything in the conversation the session is in now. */
  place(position: number | null): Place {
    if (this.#rows.length === 0) this.#placeNewSession();
    const row =
      position === null
        ? this.#rows[0]
        : (this.#rows.find((candidate) => candidate.start_position <= position) ?? this.#rows.at(-1));
    const found = must(row, "a placement");
    return {
      head: this.head(found.conversation_id),
      position: position === null ? null : found.base_position + position,
    };
  }

  /** The conversation the session is in now. */
  readCurrent(): ConversationHead {
    return this.place(null).head;
  }

  head(conversationId: number): ConversationHead {
    let head = this.#heads.get(conversationId);
    if (!head) {
      head = ConversationHead.read(this.#connection, conversationId);
      this.#heads.set(conversationId, head);
    }
    return head;
  }

  /** Closes the conversation the session is in; with a position, what follows it goes to a new one. */
  archive(cause: string, startNextAt: number | null): ConversationHead {
    const current = this.readCurrent();
    this.#connection.run(ARCHIVE, this.#now, cause, current.conversationId);
    if (startNextAt === null) return current;
    const next = ConversationHead.create(this.#connection, this.#session, this.#now);
    this.#heads.set(next.conversationId, next);
    this.#addPlacement(startNextAt, next.conversationId, 0);
    return next;
  }

  /** Places a new session in a conversation of its own that starts from its parent's chain. */
  startFork(origin: ForkOrigin & { readonly position: number }): ConversationHead {
    const { owner, key } = this.#session;
    const active = this.#connection.get<{ conversation_id: number }>(SELECT_ACTIVE, owner, key);
    if (active !== undefined) this.#connection.run(ARCHIVE, this.#now, "fork", active.conversation_id);
    const head = ConversationHead.create(this.#connection, this.#session, this.#now, origin);
    this.#heads.set(head.conversationId, head);
    this.#addPlacement(0, head.conversationId, 0);
    return head;
  }

  save(): void {
    for (const head of this.#heads.values()) head.save(this.#connection, this.#now);
  }

  #placeNewSession(): void {
    const { owner, key } = this.#session;
    const active = this.#connection.get<{ conversation_id: number }>(
      SELECT_ACTIVE,
      owner,
      key,
    )?.conversation_id;
    if (active !== undefined && !CRON_KEY.test(key)) {
      return this.#addPlacement(0, active, this.head(active).lastPosition);
    }
    if (active !== undefined) this.#connection.run(ARCHIVE, this.#now, "cron-run", active);
    const head = ConversationHead.create(this.#connection, this.#session, this.#now);
    this.#heads.set(head.conversationId, head);
    this.#addPlacement(0, head.conversationId, 0);
  }

  #addPlacement(startPosition: number, conversationId: number, basePosition: number): void {
    this.#connection.run(INSERT_PLACEMENT, this.sessionRef, startPosition, conversationId, basePosition);
    this.#rows = this.#connection.all<PlacementRow>(SELECT_PLACEMENTS, this.sessionRef);
  }
}

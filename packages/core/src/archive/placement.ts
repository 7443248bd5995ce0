/**
 * Which conversation an event belongs to. A session's events go to one conversation until a reset starts the next one at a position; late
 * events still go to the conversation of their position, archived or not.
 */
import type { ForkOrigin } from "../model/chain.ts";
import { must } from "../model/errors.ts";
import type { SessionRef } from "../model/message.ts";
import type { Changes } from "./changes.ts";
import type { Head } from "./head.ts";
import { answerHeads, Heads } from "./heads.ts";
import { read, together } from "./plan.ts";
import type { Asking } from "./plan.ts";
import type { HeadRow, SessionPlacements } from "./reads.ts";
import type { Row } from "./tables.ts";

/** Each run of a scheduled job is a separate conversation. */
const CRON_KEY = /^agent:[^:]+:cron:/;

/** The placement for an event of a session; without a position, the newest. */
export const findPlacement = (
  placements: readonly Row<"placements">[],
  position: number | null,
): Row<"placements"> | undefined =>
  position === null
    ? placements[0]
    : (placements.find((candidate) => candidate.start_position <= position) ?? placements.at(-1));

/** A session of which nothing has been read yet. */
export const describeSession = (session_ref: number, owner: string, id: string): Row<"sessions"> => ({
  session_ref,
  owner,
  session_id: id,
  cursor: null,
  last_event: null,
  base_tokens: null,
});

/** Opens the placement of a session with the heads of all its conversations; others may be given. */
export function* openPlacement(
  changes: Changes,
  session: SessionRef,
  now: number,
  found: SessionPlacements,
  others: readonly (HeadRow | null)[] = [],
): Asking<{ readonly placement: Placement; readonly heads: Heads }> {
  const ids = new Set(found.placements.map((row) => row.conversation_id));
  const [rows, sessions, conversations] = yield* together(
    read.lockHeads([...ids]),
    read.ids("sessions", found.session ? 0 : 1),
    // A session that begins with a reset creates two.
    read.ids("conversations", 2),
  );
  const heads = new Heads(
    answerHeads([found.head, ...others, ...rows], { sessions, conversations }),
    changes,
  );
  return { placement: new Placement(session, now, found, heads), heads };
}

/** The placements of one session inside a write. */
export class Placement {
  readonly sessionRef: number;
  readonly #session: SessionRef;
  readonly #now: number;
  readonly #heads: Heads;
  /** The active conversation of the key, while the session has none. */
  readonly #activeId: number | null;
  #rows: readonly Row<"placements">[];

  constructor(session: SessionRef, now: number, found: SessionPlacements, heads: Heads) {
    this.#session = session;
    this.#now = now;
    this.#heads = heads;
    this.#activeId = found.head?.conversation_id ?? null;
    this.#rows = found.placements;
    this.sessionRef = found.session?.session_ref ?? this.#addSession();
  }

  /** Where an event of the session goes; without a position, after everything in the session's current conversation. */
  place(position: number | null): { readonly head: Head; readonly position: number | null } {
    if (this.#rows.length === 0) this.#placeNewSession();
    const found = must(findPlacement(this.#rows, position), "a placement");
    return {
      head: this.#heads.of(found.conversation_id),
      position: position === null ? null : found.base_position + position,
    };
  }

  /** The session's current conversation. */
  readCurrent(): Head {
    return this.place(null).head;
  }

  /** How far the session's own positions are moved in its current conversation, which other sessions may have begun. */
  readBase(): number {
    return must(findPlacement(this.#rows, null), "a placement").base_position;
  }

  /** Closes the session's current conversation; with a position of the session, what follows goes to a new one. */
  archive(cause: string, startNextAt: number | null): Head {
    const current = this.readCurrent();
    current.archive(this.#heads.writer, cause, this.#now);
    if (startNextAt === null) return current;
    const next = this.#heads.create(this.#session, this.#now);
    this.#addPlacement(startNextAt, next.conversationId, 0);
    return next;
  }

  /** Places a new session in a new conversation that starts from its parent's chain. */
  startFork(origin: ForkOrigin & { readonly position: number }): Head {
    return this.#startConversation("fork", origin);
  }

  #placeNewSession(): void {
    if (this.#activeId === null || CRON_KEY.test(this.#session.key))
      return void this.#startConversation("cron-run");
    this.#addPlacement(0, this.#activeId, this.#heads.of(this.#activeId).lastPosition);
  }

  #startConversation(
    cause: string,
    origin: (ForkOrigin & { readonly position: number }) | null = null,
  ): Head {
    if (this.#activeId !== null) this.#heads.of(this.#activeId).archive(this.#heads.writer, cause, this.#now);
    const head = this.#heads.create(this.#session, this.#now, origin);
    this.#addPlacement(0, head.conversationId, 0);
    return head;
  }

  #addSession(): number {
    const { owner, id } = this.#session;
    const session_ref = this.#heads.nextId("sessions");
    this.#heads.writer.insert("sessions", describeSession(session_ref, owner, id));
    return session_ref;
  }

  #addPlacement(startPosition: number, conversationId: number, basePosition: number): void {
    const key = { session_ref: this.sessionRef, start_position: startPosition };
    const place = { conversation_id: conversationId, base_position: basePosition };
    const others = this.#rows.filter((row) => row.start_position !== startPosition);
    if (others.length < this.#rows.length) this.#heads.writer.update("placements", key, place);
    else this.#heads.writer.insert("placements", { ...key, ...place });
    this.#rows = [...others, { ...key, ...place }].sort((a, b) => b.start_position - a.start_position);
  }
}

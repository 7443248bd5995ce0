/**
 * Finds the copies that `lcm transplant` made of messages: forgetting a message forgets its copies, too. A copy has the commitment of its
 * original, which nothing else has, because the salt is random; it is stored in a session that is named after the transplant.
 *
 * Invariant: what a copy was made from, and other copies of that, are not copies of it.
 */
import { formatMessageId } from "../model/ids.ts";
import { groupBy, Pages, readRows } from "./pages.ts";
import { read } from "./plan.ts";
import type { Asking } from "./plan.ts";
import type { ForgettableVersion } from "./reads.ts";

const PREFIX = "transplant:";

/** The session of the messages that were copied from one conversation to another. */
export const nameTransplant = (from: number, to: number): string => `${PREFIX}${from}:${to}`;

/** A first version and what identifies it. */
interface Known {
  readonly messageId: number;
  readonly commitment: string;
  /** The name of what it was copied from, in the archive where that was done; null for an original. */
  readonly copiedFrom: string | null;
}

/** Ids of the copies of these messages, and of copies of them. */
export function* findCopies(versions: readonly ForgettableVersion[]): Asking<number[]> {
  const copies = yield* readCopies();
  if (copies.length === 0) return [];
  const byId = new Map(copies.map((copy) => [copy.messageId, copy]));
  const byCommitment = groupBy(copies, "commitment");
  const firsts = versions.flatMap(({ revises, message_id }) => (revises === null ? [message_id] : []));
  const commitments = yield* readCommitments(firsts);
  const found = new Set<number>();
  const waiting: Known[] = firsts.map(
    (messageId) =>
      byId.get(messageId) ?? { messageId, commitment: commitments.get(messageId) ?? "", copiedFrom: null },
  );
  for (let from; (from = waiting.pop()) !== undefined;)
    for (const copy of byCommitment.get(from.commitment) ?? []) {
      const isOf = from.copiedFrom === null || copy.copiedFrom === formatMessageId(from.messageId);
      if (!isOf || copy.messageId === from.messageId || found.has(copy.messageId)) continue;
      found.add(copy.messageId);
      waiting.push(copy);
    }
  return [...found];
}

function* readCopies(): Asking<Known[]> {
  const order = ["session_ref"] as const;
  const sessions = new Pages("sessions", { columns: ["session_ref", "session_id"], order });
  const named = new Map<number, string>();
  for (let page; (page = yield* sessions.next()).length > 0;)
    for (const { session_ref, session_id } of page)
      if (session_id.startsWith(PREFIX))
        for (const event of yield* read.allEvents(session_ref)) named.set(event.message_id, event.event_id);
  const commitments = yield* readCommitments([...named.keys()]);
  return [...named].map(([messageId, copiedFrom]) => ({
    messageId,
    commitment: commitments.get(messageId) ?? "",
    copiedFrom,
  }));
}

function* readCommitments(keys: readonly number[]): Asking<Map<number, string>> {
  const rows = yield* readRows("messages", ["message_id", "commitment"], { column: "message_id", keys });
  return new Map(rows.map((row) => [row.message_id, Buffer.from(row.commitment).toString("hex")]));
}

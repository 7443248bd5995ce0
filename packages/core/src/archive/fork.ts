/**
 * Forks: a conversation whose chain starts from its parent's, whose copied events are aliases of the parent's messages, and whose front is
 * a list of references. The first record of its chain binds all of that, so `verify` detects a change.
 */
import { hash } from "node:crypto";
import { hashFacts } from "../model/chain.ts";
import { must } from "../model/errors.ts";
import type { ForkItem, ForkResult, ForkPoint, ForkRequest } from "../store/forks.ts";
import { Changes } from "./changes.ts";
import { EVENT_KIND, nameEvent } from "./identity.ts";
import { openPlacement } from "./placement.ts";
import { flushIfLong, read, together } from "./plan.ts";
import type { Asking, Plan } from "./plan.ts";
import type { Row } from "./tables.ts";

export function* planForkPoint({
  owner,
  parentSessionId,
  eventIds,
}: {
  readonly owner: string;
  readonly parentSessionId: string;
  readonly eventIds: readonly string[];
}): Asking<ForkPoint | null> {
  const found = yield* read.events({ owner, id: parentSessionId, key: "" }, eventIds);
  const named = new Map(found.map((event) => [nameEvent(event.event_id), event]));
  const missing = eventIds.findIndex((id) => !named.has(nameEvent(id)));
  const copied = missing === -1 ? eventIds.length : missing;
  const last = named.get(nameEvent(eventIds[copied - 1] ?? ""));
  if (copied === 0 || !last) return null;
  return { conversationId: last.conversation_id, seq: last.seq, position: last.position, copied };
}

export function* planFork(request: ForkRequest): Plan<ForkResult> {
  const { session, parentSessionId, point, now } = request;
  const changes = new Changes();
  const parent = { ...session, id: parentSessionId };
  // With its parent: a summary that the fork will show must not be removed meanwhile (`drop-summaries.ts`).
  const [, found, named, chain] = yield* together(
    read.lockHeads([point.conversationId]),
    read.placements(session),
    read.events(parent, [...new Set(request.eventIds)]),
    read.chainAt(point.conversationId, point.seq),
  );
  const { placement, heads } = yield* openPlacement(changes, session, now, found);
  if (found.session)
    return changes.done({ kind: "known", conversationId: placement.readCurrent().conversationId });
  const head = placement.startFork({ ...point, chain: must(chain, "the parent's chain") });
  const { conversationId } = head;
  const items = request.items.map((item, ordinal) => describeItem(conversationId, ordinal, item));
  for (const item of items) changes.insert("fork_items", item);
  for (const { event_id, message_id } of named) {
    const { sessionRef: session_ref } = placement;
    changes.insert("event_ids", { session_ref, event_id, message_id, kind: EVENT_KIND.alias });
    yield* flushIfLong(changes);
  }
  const body = {
    sessionId: session.id,
    parentSessionId,
    parentId: point.conversationId,
    seq: point.seq,
    position: point.position,
    names: named.length,
    namesHash: hashForkNames(named),
    itemsHash: hashForkItems(items),
  };
  head.takeRecord(changes, "fork", body, now);
  heads.save(now);
  return changes.done({ kind: "forked", conversationId });
}

const describeItem = (conversation_id: number, ordinal: number, item: ForkItem): Row<"fork_items"> => ({
  conversation_id,
  ordinal,
  kind: item.kind,
  message_id: item.messageId,
  summary_id: item.summaryId,
  first_id: item.firstId,
  last_id: item.lastId,
  start_pos: item.startPosition,
  end_pos: item.endPosition,
  tokens: item.tokens,
  messages: item.messages,
  depth: item.depth,
  earliest_at: item.earliestAt,
  latest_at: item.latestAt,
});

/** What the record of a fork binds of its shown items, in order. */
export const hashForkItems = (items: readonly Row<"fork_items">[]): string =>
  hashFacts(
    items.flatMap((item) => [
      item.ordinal,
      item.kind,
      item.message_id,
      item.summary_id,
      item.first_id,
      item.last_id,
      item.start_pos,
      item.end_pos,
      item.tokens,
      item.messages,
      item.depth,
      item.earliest_at,
      item.latest_at,
    ]),
  );

/** What it binds of its aliases, in byte order. */
export function hashForkNames(names: readonly Pick<Row<"event_ids">, "event_id" | "message_id">[]): string {
  const sorted = names
    .map(({ event_id, message_id }) => ({ name: nameEvent(event_id), message_id }))
    .sort((a, b) => Buffer.compare(Buffer.from(a.name), Buffer.from(b.name)));
  return hash("sha256", JSON.stringify(sorted.map(({ name, message_id }) => [name, message_id])));
}

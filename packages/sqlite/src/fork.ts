/**
 * Forks: a conversation whose chain starts from its parent's, whose copied events are further names of the parent's messages, and whose
 * front is a list of references. The first record of its chain binds all of that, so `verify` sees a change.
 */
import { EVENT_KIND, hashFacts, must } from "@lossless/core/adapter";
import type { ForkItem, ForkPoint, ForkRequest } from "@lossless/core/ports";
import { hash } from "node:crypto";
import type { Connection, Row } from "./connection.ts";
import type { StoreContext } from "./context.ts";
import { findSession, openPlacement } from "./placement.ts";
import type { Problems } from "./verify-problems.ts";

const EVENT = `
  SELECT e.message_id, m.conversation_id, m.seq, m.position FROM event_ids e JOIN messages m USING (message_id)
  WHERE e.session_ref = ? AND e.event_id = ?`;
const INSERT_EVENT = `
  INSERT INTO event_ids (session_ref, event_id, message_id, kind)
  SELECT ?1, e.event_id, e.message_id, ?2 FROM event_ids e WHERE e.session_ref = ?3 AND e.event_id = ?4`;
const INSERT_ITEM = `
  INSERT INTO fork_items (conversation_id, ordinal, kind, message_id, summary_id, first_id, last_id, start_pos, end_pos, tokens, messages,
                          depth, earliest_at, latest_at)
  VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`;
const ITEMS = `
  SELECT ordinal, kind, message_id, summary_id, first_id, last_id, start_pos, end_pos, tokens, messages, depth, earliest_at, latest_at
  FROM fork_items WHERE conversation_id = ? ORDER BY ordinal`;
const SHOWN_ITEMS = `
  SELECT i.* FROM fork_items i LEFT JOIN messages m ON m.message_id = i.message_id
  WHERE i.conversation_id = ? AND m.forgotten_at IS NULL ORDER BY i.ordinal`;
const NAMES = `
  SELECT e.event_id, e.message_id FROM event_ids e JOIN sessions s USING (session_ref) JOIN messages m USING (message_id)
  WHERE s.owner = ? AND s.session_id = ? AND e.kind = ${EVENT_KIND.alias} AND m.session_ref <> e.session_ref ORDER BY e.event_id`;
const CHAIN_AT = `
  SELECT chain FROM messages WHERE conversation_id = ?1 AND seq = ?2
  UNION ALL SELECT chain FROM ledger WHERE conversation_id = ?1 AND seq = ?2`;

interface EventRow {
  message_id: number;
  conversation_id: number;
  seq: number;
  position: number;
}

/** The chain's value at a seq of a conversation; null when there is none. */
export function readChainAt(connection: Connection, conversationId: number, seq: number): Uint8Array | null {
  return connection.get<{ chain: Uint8Array }>(CHAIN_AT, conversationId, seq)?.chain ?? null;
}

export function findForkPoint(
  { connection }: StoreContext,
  request: { owner: string; parentSessionId: string; eventIds: readonly string[] },
): ForkPoint | null {
  return connection.read(() => {
    const parent = findSession(connection, request.owner, request.parentSessionId);
    if (parent === null) return null;
    let last: EventRow | undefined;
    let copied = 0;
    for (const eventId of request.eventIds) {
      const event = connection.get<EventRow>(EVENT, parent, eventId);
      if (event === undefined) break;
      last = event;
      copied += 1;
    }
    if (last === undefined) return null;
    const { conversation_id: conversationId, seq, position } = last;
    return { conversationId, seq, position, copied };
  });
}

export function fork(
  { connection }: StoreContext,
  request: ForkRequest,
): { kind: "forked" | "known"; conversationId: number } {
  const { session, point, now } = request;
  return connection.write(() => {
    const parent = must(
      findSession(connection, session.owner, request.parentSessionId),
      `the session ${request.parentSessionId}`,
    );
    const isKnown = findSession(connection, session.owner, session.id) !== null;
    const { placement, heads } = openPlacement(connection, session, now);
    if (isKnown) return { kind: "known", conversationId: placement.readCurrent().conversationId };
    const chain = must(readChainAt(connection, point.conversationId, point.seq), "the parent's chain");
    const head = placement.startFork({ ...point, chain });
    for (const eventId of request.eventIds)
      connection.run(INSERT_EVENT, placement.sessionRef, EVENT_KIND.alias, parent, eventId);
    for (const [ordinal, item] of request.items.entries())
      insertItem(connection, head.conversationId, ordinal, item);
    const names = hashNames(connection, session.owner, session.id);
    const body = {
      sessionId: session.id,
      parentSessionId: request.parentSessionId,
      parentId: point.conversationId,
      seq: point.seq,
      position: point.position,
      names: names.count,
      namesHash: names.hash,
      itemsHash: hashItems(connection, head.conversationId),
    };
    head.takeRecord(connection, "fork", body, now);
    heads.save(now);
    return { kind: "forked", conversationId: head.conversationId };
  });
}

function insertItem(connection: Connection, conversationId: number, ordinal: number, item: ForkItem): void {
  connection.run(
    INSERT_ITEM,
    conversationId,
    ordinal,
    item.kind,
    item.messageId,
    item.summaryId,
    item.firstId,
    item.lastId,
    item.startPosition,
    item.endPosition,
    item.tokens,
    item.messages,
    item.depth,
    item.earliestAt,
    item.latestAt,
  );
}

export function readForkItems({ connection }: StoreContext, conversationId: number): ForkItem[] {
  return connection.read(() => connection.all(SHOWN_ITEMS, conversationId).map(toItem));
}

function toItem(row: Row): ForkItem {
  return {
    kind: row.kind as ForkItem["kind"],
    messageId: row.message_id as number | null,
    summaryId: row.summary_id as string | null,
    firstId: row.first_id as number | null,
    lastId: row.last_id as number | null,
    startPosition: row.start_pos as number,
    endPosition: row.end_pos as number,
    tokens: row.tokens as number,
    messages: row.messages as number,
    depth: row.depth as number,
    earliestAt: row.earliest_at as number | null,
    latestAt: row.latest_at as number | null,
  };
}

function hashItems(connection: Connection, conversationId: number): string {
  const rows = connection.all(ITEMS, conversationId);
  return hashFacts(rows.flatMap((row) => Object.values(row) as (string | number | null)[]));
}

function hashNames(
  connection: Connection,
  owner: string,
  sessionId: string,
): { count: number; hash: string } {
  const rows = connection.all<{ event_id: string; message_id: number }>(NAMES, owner, sessionId);
  return {
    count: rows.length,
    hash: hash("sha256", JSON.stringify(rows.map((row) => [row.event_id, row.message_id]))),
  };
}

/** Compares a fork with the record that made it. Returns how many names it gave, so that they can be counted against the table. */
export function checkFork(
  connection: Connection,
  conversation: Row,
  body: Record<string, unknown>,
  problems: Problems,
): number {
  const id = conversation.conversation_id as number;
  const name = `conversation ${id}`;
  // A fork that was brought over from another archive keeps its record and has no parent here.
  if (conversation.parent_id === null) return 0;
  if (
    conversation.parent_id !== body.parentId ||
    conversation.fork_seq !== body.seq ||
    conversation.fork_pos !== body.position
  )
    problems.add("fork", name, `${name} did not leave its parent where the ledger says`);
  if (typeof body.sessionId !== "string") {
    problems.add("ledger", name, `the record of the fork ${name} cannot be read`);
    return 0;
  }
  const names = hashNames(connection, conversation.owner as string, body.sessionId);
  if (names.count !== body.names || names.hash !== body.namesHash)
    problems.add("fork", name, `the events that ${name} shares with its parent are not those of the ledger`);
  if (hashItems(connection, id) !== body.itemsHash)
    problems.add("fork", name, `what ${name} shows of its parent is not what was chosen`);
  return names.count;
}

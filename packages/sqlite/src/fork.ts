/** What a fork shows of its parent, and whether it is what its record says. The rules are in `archive/fork.ts`. */
import { EVENT_KIND, hashForkItems, hashForkNames } from "@lossless/core/adapter";
import type { ForkItem, Row as TableRow } from "@lossless/core/ports";
import type { Connection, Row } from "./connection.ts";
import type { StoreContext } from "./context.ts";
import type { Problems } from "./verify-problems.ts";

const ITEMS = "SELECT * FROM fork_items WHERE conversation_id = ? ORDER BY ordinal";
const SHOWN_ITEMS = `
  SELECT i.* FROM fork_items i LEFT JOIN messages m ON m.message_id = i.message_id
  WHERE i.conversation_id = ? AND m.forgotten_at IS NULL ORDER BY i.ordinal`;
const NAMES = `
  SELECT e.event_id, e.message_id FROM event_ids e JOIN sessions s USING (session_ref) JOIN messages m USING (message_id)
  WHERE s.owner = ? AND s.session_id = ? AND e.kind = ${EVENT_KIND.alias} AND m.session_ref <> e.session_ref`;
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
  const names = connection.all<{ event_id: string; message_id: number }>(
    NAMES,
    conversation.owner as string,
    body.sessionId,
  );
  if (names.length !== body.names || hashForkNames(names) !== body.namesHash)
    problems.add("fork", name, `the events that ${name} shares with its parent are not those of the ledger`);
  if (hashForkItems(connection.all<TableRow<"fork_items">>(ITEMS, id)) !== body.itemsHash)
    problems.add("fork", name, `what ${name} shows of its parent is not what was chosen`);
  return names.length;
}

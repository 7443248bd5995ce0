/**
 * Removes whole conversations, with everything that belongs to them and nothing else. Code above the store decides which ones, from {@link
 * planReadTies}; the plan only checks that nothing has changed since.
 *
 * Invariants: rows are deleted before those they refer to, except for versions of one message, which refer to each other. Index entries of
 * a row are removed before the row. Files are removed after the commit, so a crash leaves at most unreferenced files.
 */
import type { ConversationTies, RemovedCounts } from "../store/repair.ts";
import { Changes } from "./changes.ts";
import { Pages, readRows } from "./pages.ts";
import { flush, flushIfLong, read } from "./plan.ts";
import type { Asking, Plan } from "./plan.ts";
import { total } from "./summary.ts";
import type { TableName } from "./tables.ts";

const OF_MESSAGES = [
  "index_pending",
  "vectors_pending",
  "message_vectors",
  "redactions",
  "sealed_values",
  "message_parts",
  "messages",
] as const;
const OF_SUMMARIES = ["summary_messages", "summary_parents"] as const;
const OF_CONVERSATIONS = ["context_items", "fork_items", "compaction_debt", "cache_usage", "ledger"] as const;
const OF_SESSIONS = ["placements", "sessions"] as const;

/** Every table that refers to removed rows. */
export const EMPTIED_TABLES: readonly TableName[] = [
  ...OF_MESSAGES,
  ...OF_SUMMARIES,
  ...OF_CONVERSATIONS,
  ...OF_SESSIONS,
  "imports",
  "boundaries",
  "summary_refs",
  "summaries",
  "large_files",
  "event_ids",
  "turns",
  "conversations",
];

const BOUNDARY_COLUMNS = ["session_ref", "event_id", "conversation_id"] as const;
const FACTS = [
  "conversation_id",
  "owner",
  "session_key",
  "message_count",
  "summary_count",
  "head_seq",
] as const;

interface Found {
  readonly ties: ConversationTies[];
  readonly sessions: ReadonlySet<number>;
}

/** Conversations ordered by id, what else in the archive depends on each, and all their sessions. */
function* look(keys: readonly number[]): Asking<Found> {
  const order = ["conversation_id"] as const;
  const rows = yield* readRows("conversations", FACTS, { column: "conversation_id", keys, order });
  const ties: ConversationTies[] = [];
  const all = new Set<number>();
  for (const row of rows) {
    const id = row.conversation_id;
    const { sessions, forgotten } = yield* lookThrough(id);
    for (const ref of sessions) all.add(ref);
    ties.push({
      conversationId: id,
      owner: row.owner,
      sessionKey: row.session_key,
      messages: row.message_count,
      summaries: row.summary_count,
      headSeq: row.head_seq,
      forgotten,
      forks: yield* listForks(id),
      sharesSessionWith: (yield* listPlaced(sessions)).filter((other) => other !== id),
    });
  }
  return { ties, sessions: all };
}

export function* planReadTies(conversationIds: readonly number[]): Asking<ConversationTies[]> {
  return (yield* look(conversationIds)).ties;
}

/** The sessions placed in a conversation, or with messages in it. */
function* lookThrough(conversation_id: number): Asking<{ sessions: ReadonlySet<number>; forgotten: number }> {
  const placed = yield* readRows("placements", ["conversation_id", "session_ref"], {
    column: "conversation_id",
    keys: [conversation_id],
  });
  const sessions = new Set(placed.map((row) => row.session_ref));
  let forgotten = 0;
  const pages = new Pages("messages", {
    columns: ["seq", "session_ref", "forgotten_at"],
    order: ["seq"],
    where: { conversation_id },
  });
  for (let page; (page = yield* pages.next()).length > 0;)
    for (const { session_ref, forgotten_at } of page) {
      sessions.add(session_ref);
      if (forgotten_at !== null) forgotten += 1;
    }
  return { sessions, forgotten };
}

/** A fork may show messages of every conversation that it descends from. */
function* listForks(conversationId: number): Asking<number[]> {
  const forks = new Set<number>();
  for (let keys = [conversationId]; keys.length > 0;) {
    const found = yield* readRows("conversations", ["conversation_id", "parent_id"], {
      column: "parent_id",
      keys,
    });
    keys = found.map((row) => row.conversation_id).filter((id) => !forks.has(id));
    for (const id of keys) forks.add(id);
  }
  return inOrder(forks);
}

function* listPlaced(sessions: ReadonlySet<number>): Asking<number[]> {
  const keys = [...sessions];
  const rows = yield* readRows("placements", ["session_ref", "conversation_id"], {
    column: "session_ref",
    keys,
  });
  return inOrder(new Set(rows.map((row) => row.conversation_id)));
}

const inOrder = (ids: ReadonlySet<number>): number[] => [...ids].sort((a, b) => a - b);

export interface Removal {
  readonly counts: RemovedCounts;
  /** Large files that are unreferenced once this is committed. */
  readonly blobs: readonly string[];
}

/** Null, without any change, if the conversations are not what the caller saw. */
export function* planRemoveConversations(expected: readonly ConversationTies[]): Plan<Removal | null> {
  const changes = new Changes();
  const ids = expected.map(({ conversationId }) => conversationId);
  yield* read.lockHeads(ids);
  const { ties, sessions } = yield* look(ids);
  if (JSON.stringify(ties) !== JSON.stringify(expected)) return changes.done(null);
  for (const conversation_id of ids) yield* removeOwn(changes, conversation_id);
  yield* removeNames(changes, [...sessions]);
  const blobs: string[] = [];
  for (const conversation_id of ids) blobs.push(...(yield* removeMessages(changes, conversation_id)));
  for (const session_ref of sessions) for (const table of OF_SESSIONS) changes.delete(table, { session_ref });
  // A fork has a higher number than its parent.
  for (const conversation_id of ids.toReversed()) {
    changes.divide();
    changes.delete("conversations", { conversation_id });
  }
  const counts = {
    conversations: expected.length,
    messages: total(expected, ({ messages }) => messages),
    summaries: total(expected, ({ summaries }) => summaries),
    files: blobs.length,
  };
  return changes.done({ counts, blobs });
}

/** Everything of a conversation except its messages and their files. */
function* removeOwn(changes: Changes, conversation_id: number): Asking<void> {
  const where = { conversation_id };
  const by = { column: "conversation_id", keys: [conversation_id] } as const;
  for (const table of OF_CONVERSATIONS) changes.delete(table, where);
  for (const { import_id } of yield* readRows("imports", ["import_id", "conversation_id"], by))
    changes.delete("imports", { import_id, conversation_id });
  for (const { session_ref, event_id } of yield* readRows("boundaries", BOUNDARY_COLUMNS, by))
    changes.delete("boundaries", { session_ref, event_id });
  const order = ["summary_id"] as const;
  const pages = new Pages("summaries", { columns: order, order, where });
  const ids: string[] = [];
  for (let page; (page = yield* pages.next()).length > 0;) ids.push(...page.map((row) => row.summary_id));
  yield* removeSummaries(changes, ids);
}

/** The event ids of sessions, and the turns they committed. */
function* removeNames(changes: Changes, sessions: readonly number[]): Asking<void> {
  for (const session_ref of sessions) changes.delete("event_ids", { session_ref });
  const turns = yield* readRows("turns", ["session_ref", "advancement_key"], {
    column: "session_ref",
    keys: sessions,
  });
  for (const { advancement_key } of turns) changes.delete("turns", { advancement_key });
  yield* flush(changes);
}

/** Returns the blobs of its large files. */
function* removeMessages(changes: Changes, conversation_id: number): Asking<string[]> {
  const pages = new Pages("messages", {
    columns: ["seq", "message_id"],
    order: ["seq"],
    where: { conversation_id },
  });
  for (let page; (page = yield* pages.next()).length > 0;) {
    for (const { message_id: messageId } of page) changes.index.push({ kind: "remove-message", messageId });
    yield* flush(changes);
    for (const { message_id } of page) for (const table of OF_MESSAGES) changes.delete(table, { message_id });
    yield* flush(changes);
  }
  const order = ["file_id"] as const;
  const files = new Pages("large_files", {
    columns: [...order, "storage_path"],
    order,
    where: { conversation_id },
  });
  const blobs: string[] = [];
  for (let page; (page = yield* files.next()).length > 0;)
    for (const { file_id, storage_path } of page) {
      changes.delete("large_files", { file_id });
      blobs.push(storage_path);
    }
  return blobs;
}

/** Removes summaries that nothing else uses, with their index entries. */
export function* removeSummaries(changes: Changes, ids: readonly string[]): Asking<void> {
  for (const summaryId of ids) changes.index.push({ kind: "remove-summary", summaryId });
  for (const summary_id of ids) {
    for (const table of OF_SUMMARIES) changes.delete(table, { summary_id });
    yield* flushIfLong(changes);
  }
  yield* flush(changes);
  for (const { summary_ref } of yield* readRows("summary_refs", ["summary_ref", "summary_id"], {
    column: "summary_id",
    keys: ids,
  }))
    changes.delete("summary_refs", { summary_ref });
  for (const summary_id of ids) changes.delete("summaries", { summary_id });
}

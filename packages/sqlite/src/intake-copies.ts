/**
 * Copies the rows an intake needs from the archive into its own file. Before a verb reads a session, a conversation or a summary,
 * everything that the archive has of it is copied: the whole conversation, its sessions, and the conversations that share a session with it
 * or that it was forked from. So every verb decides as it would in the archive, and nobody waits for it.
 *
 * Invariant: all copies are from one snapshot of the archive, that at which the intake began.
 */
import { pathToFileURL } from "node:url";
import type { MovedRow } from "@lossless/core/ports";
import type { Connection } from "./connection.ts";
import { BROUGHT, dropUnchanged, keepRows, makeNotes } from "./intake-rows.ts";
import type { BroughtTable } from "./intake-rows.ts";

const AMONG = "(SELECT value FROM json_each(?))";
const BY_SESSION: readonly BroughtTable[] = ["sessions", "placements", "event_ids"];
const BY_CONVERSATION: readonly BroughtTable[] = [
  "conversations",
  "placements",
  "messages",
  "imports",
  "ledger",
  "large_files",
  "summaries",
  "context_items",
  "boundaries",
  "fork_items",
];
const OF_MESSAGES: readonly BroughtTable[] = [
  "message_parts",
  "redactions",
  "sealed_values",
  "message_vectors",
];
const OF_SUMMARIES: readonly BroughtTable[] = ["summary_messages", "summary_parents"];
const inConversation = (column: string, table: string): string =>
  `${column} IN (SELECT ${column} FROM archive.${table} WHERE conversation_id IN ${AMONG})`;

const FIND_SESSIONS = `SELECT session_ref AS id FROM archive.sessions WHERE session_id IN ${AMONG}`;
/** By the index, which begins with the owner. */
const FIND_OWN_SESSIONS = `${FIND_SESSIONS} AND owner = ?`;
const FIND_FAMILY =
  "SELECT conversation_id AS id FROM archive.conversations WHERE owner = ? AND session_key = ?";
const FIND_ACTIVE = `${FIND_FAMILY} AND archived_at IS NULL`;
const FIND_BEGUN = `${FIND_FAMILY} AND created_at = ?`;
const FIND_ALL = "SELECT conversation_id AS id FROM archive.conversations WHERE owner = coalesce(?, owner)";
const OWNER_OF = "SELECT owner FROM main.conversations WHERE conversation_id = ?";
const FIND_WITH_SUMMARIES = `
  SELECT DISTINCT conversation_id AS id FROM archive.summaries WHERE summary_id IN ${AMONG}`;
const FIND_WITH_TURNS = `SELECT DISTINCT session_ref AS id FROM archive.turns WHERE advancement_key IN ${AMONG}`;
const SESSIONS_OF = `
  SELECT session_ref AS id FROM main.placements WHERE conversation_id IN ${AMONG}
  UNION SELECT session_ref FROM main.messages WHERE conversation_id IN ${AMONG}
  UNION SELECT session_ref FROM main.boundaries WHERE conversation_id IN ${AMONG}`;
const CONVERSATIONS_OF = `
  SELECT conversation_id AS id FROM main.placements WHERE session_ref IN ${AMONG}
  UNION SELECT m.conversation_id FROM main.event_ids e JOIN archive.messages m USING (message_id) WHERE e.session_ref IN ${AMONG}
  UNION SELECT parent_id FROM main.conversations WHERE conversation_id IN ${AMONG} AND parent_id IS NOT NULL`;

export class IntakeCopies {
  readonly #file: Connection;
  readonly #sessions = new Set<number>();
  readonly #conversations = new Set<number>();
  readonly #families = new Set<string>();

  /** Outside a transaction. Attached read-only, the archive is not locked when the file is. */
  constructor(file: Connection, archive: Connection) {
    this.#file = file;
    file.exec("PRAGMA foreign_keys = OFF");
    file.run("ATTACH ? AS archive", `${pathToFileURL(archive.path).href}?mode=ro`);
    for (const table of BROUGHT) file.exec(makeNotes(table));
  }

  takeSessions(owner: string | null, sessionIds: readonly string[]): void {
    const names = JSON.stringify([...new Set(sessionIds)]);
    const found =
      owner === null ? this.#find(FIND_SESSIONS, names) : this.#find(FIND_OWN_SESSIONS, names, owner);
    this.#take([], found);
  }

  /** The conversations of a session key: only their rows. Most of them are not changed. */
  takeFamily(owner: string, sessionKey: string): void {
    const name = JSON.stringify([owner, sessionKey]);
    if (this.#families.has(name)) return;
    this.#families.add(name);
    this.#keep("conversations", `conversation_id IN ${AMONG}`, this.#find(FIND_FAMILY, owner, sessionKey));
  }

  /** The active conversation of a session key. */
  takeActive(owner: string, sessionKey: string): void {
    this.#take(this.#find(FIND_ACTIVE, owner, sessionKey), []);
  }

  /** The conversations that another archive would identify by this. */
  takeBegun(owner: string, sessionKey: string, createdAt: number): void {
    this.#take(this.#find(FIND_BEGUN, owner, sessionKey, createdAt), []);
  }

  /** Sessions that rows of a conversation name: their owner is that of the conversation. */
  takeSessionsOf(conversationId: number, sessionIds: readonly string[]): void {
    const { owner } = this.#file.get<{ owner: string }>(OWNER_OF, conversationId) ?? { owner: null };
    this.takeSessions(owner, sessionIds);
  }

  takeAll(owner: string | null): void {
    this.#take(this.#find(FIND_ALL, owner), []);
  }

  takeSummaries(summaryIds: readonly string[]): void {
    this.#take(this.#find(FIND_WITH_SUMMARIES, JSON.stringify(summaryIds)), []);
  }

  takeTurns(keys: readonly string[]): void {
    this.#take([], this.#find(FIND_WITH_TURNS, JSON.stringify(keys)));
    this.#keep("turns", `advancement_key IN ${AMONG}`, keys);
  }

  /** When everything is stored: keeps only what has to be transferred, so that the archive is locked no longer than necessary. */
  finish(): void {
    for (const table of BROUGHT) this.#file.exec(dropUnchanged(table));
  }

  #take(conversations: readonly number[], sessions: readonly number[]): void {
    const newIn = (ids: readonly number[], known: ReadonlySet<number>): number[] =>
      ids.filter((id) => !known.has(id));
    const [some, others] = [newIn(conversations, this.#conversations), newIn(sessions, this.#sessions)];
    if (some.length === 0 && others.length === 0) return;
    for (const id of some) this.#conversations.add(id);
    for (const id of others) this.#sessions.add(id);
    for (const table of BY_SESSION) this.#keep(table, `session_ref IN ${AMONG}`, others);
    for (const table of BY_CONVERSATION) this.#keep(table, `conversation_id IN ${AMONG}`, some);
    for (const table of OF_MESSAGES) this.#keep(table, inConversation("message_id", "messages"), some);
    for (const table of OF_SUMMARIES) this.#keep(table, inConversation("summary_id", "summaries"), some);
    const [ids, refs] = [JSON.stringify(some), JSON.stringify(others)];
    this.#take(this.#find(CONVERSATIONS_OF, refs, refs, ids), this.#find(SESSIONS_OF, ids, ids, ids));
  }

  #keep(table: BroughtTable, where: string, ids: readonly (number | string)[]): void {
    if (ids.length === 0) return;
    for (const sql of keepRows(table, where)) this.#file.run(sql, JSON.stringify(ids));
  }

  #find(sql: string, ...values: (string | number | null)[]): number[] {
    return this.#file.all<{ id: number }>(sql, ...values).map(({ id }) => id);
  }
}

/** The sessions that rows name. */
export const listSessions = (rows: readonly MovedRow[]): string[] =>
  rows.flatMap((row) => {
    const { sessionId } = row.kind === "message" ? row : (JSON.parse(row.body) as { sessionId?: string });
    return sessionId ?? [];
  });

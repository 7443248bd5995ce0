/**
 * Seals: one hash for each session, conversation, summary and redacted message over rows that neither the chain nor a derivation proves: who owns a session, when a
 * conversation was archived, which session is placed where, boundaries, what a summary spans and was made from, and the vault.
 *
 * Triggers that exist only on the connections of this program note what a transaction changes, and before it commits that is sealed again.
 * So every way of writing is covered, and an edit by any other program leaves a seal that does not match. A program that was started before
 * there were seals can no longer store anything (`refuse_older_programs`): it would leave rows without one.
 */
import { hash } from "node:crypto";
import type { DatabaseSync, SQLInputValue } from "node:sqlite";
import { formatMessageId } from "@lossless/core/adapter";
import type { Connection } from "./connection.ts";
import { equalBytes } from "./verify-bytes.ts";
import type { Problems } from "./verify-problems.ts";

type Kind = "session" | "conversation" | "summary" | "redaction";

interface Sealed {
  /** Every id of the kind, in order. */
  readonly ids: string;
  /** What is sealed; the first query has the row itself. */
  readonly facts: readonly string[];
}

const SEALED: Readonly<Record<Kind, Sealed>> = {
  session: {
    ids: "SELECT session_ref AS id FROM sessions ORDER BY 1",
    facts: ["SELECT session_ref, owner, session_id FROM sessions WHERE session_ref = ?"],
  },
  conversation: {
    ids: "SELECT conversation_id AS id FROM conversations ORDER BY 1",
    facts: [
      `SELECT conversation_id, archived_at, archive_cause, parent_id, fork_seq, fork_pos FROM conversations
       WHERE conversation_id = ?`,
      `SELECT session_ref, start_position, base_position FROM placements WHERE conversation_id = ?
       ORDER BY session_ref, start_position`,
      `SELECT session_ref, event_id, position, reason, retain_depth, shown_before, at, undone_at FROM boundaries
       WHERE conversation_id = ? ORDER BY session_ref, event_id`,
    ],
  },
  summary: {
    ids: "SELECT summary_id AS id FROM summaries ORDER BY 1",
    facts: [
      `SELECT summary_id, conversation_id, kind, depth, state, start_pos, start_seq, end_pos, end_seq, messages, descendant_count, tokens,
              source_tokens, earliest_at, latest_at, hex(hash), stale, is_root, made_at_seq, created_at, published_seq, previous_id
       FROM summaries WHERE summary_id = ?`,
      "SELECT ordinal, message_id FROM summary_messages WHERE summary_id = ? ORDER BY ordinal",
      "SELECT ordinal, parent_summary_id FROM summary_parents WHERE summary_id = ? ORDER BY ordinal",
    ],
  },
  // With the key the values themselves are proven; the seal shows an edit to those without it.
  redaction: {
    ids: "SELECT message_id AS id FROM redactions ORDER BY 1",
    facts: [
      "SELECT message_id, key_id, hex(keyed), sealed FROM redactions WHERE message_id = ?",
      `SELECT ordinal, at, length, key_id, hex(nonce), hex(sealed) FROM sealed_values WHERE message_id = ?
       ORDER BY ordinal`,
    ],
  },
};
const KINDS = Object.keys(SEALED) as Kind[];

/** Which rows belong to which seal; `columns` where others of the row change all the time. */
const WATCHED: readonly { table: string; kind: Kind; id: string; columns?: string }[] = [
  { table: "sessions", kind: "session", id: "session_ref", columns: "session_ref, owner, session_id" },
  {
    table: "conversations",
    kind: "conversation",
    id: "conversation_id",
    columns: "conversation_id, archived_at, archive_cause, parent_id, fork_seq, fork_pos",
  },
  { table: "placements", kind: "conversation", id: "conversation_id" },
  { table: "boundaries", kind: "conversation", id: "conversation_id" },
  { table: "summaries", kind: "summary", id: "summary_id" },
  { table: "summary_messages", kind: "summary", id: "summary_id" },
  { table: "summary_parents", kind: "summary", id: "summary_id" },
  { table: "redactions", kind: "redaction", id: "message_id" },
  { table: "sealed_values", kind: "redaction", id: "message_id" },
];

const SET_SEAL =
  "INSERT INTO seals (kind, id, hash) VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET hash = excluded.hash";
const DROP_SEAL = "DELETE FROM seals WHERE kind = ? AND id = ?";
const SEAL = "SELECT hash FROM seals WHERE kind = ? AND id = ?";
const COUNT = "SELECT count(*) AS n FROM seals WHERE kind = ?";

/** Seals what transactions of this connection change, from now on. */
export function keepSeals(connection: Connection): void {
  const changed = new Map<Kind, Set<number | string>>(KINDS.map((kind) => [kind, new Set()]));
  connection.database.function("note_unsealed", { directOnly: false }, (kind, id) => {
    changed.get(kind as Kind)?.add(id as number | string);
    return null;
  });
  allowWrites(connection.database);
  watchSealed(connection);
  connection.onCommit({
    before: () => {
      for (const [kind, ids] of changed) for (const id of ids) seal(connection, kind, id);
    },
    ended: () => {
      for (const ids of changed.values()) ids.clear();
    },
  });
}

/** Gives a connection the function without which the schema refuses to store: only those that keep seals may. */
export function allowWrites(database: DatabaseSync): void {
  database.function("needs_newer_lossless_claw", { directOnly: false }, () => null);
}

/** Makes the triggers, also again after the connection has dropped them: a change of `temp_store` does. */
export function watchSealed(connection: Connection): void {
  for (const { table, kind, id, columns } of WATCHED) {
    const note = (row: "old" | "new"): string => `SELECT note_unsealed('${kind}', ${row}.${id});`;
    const update = columns === undefined ? "UPDATE" : `UPDATE OF ${columns}`;
    connection.exec(`
      CREATE TEMP TRIGGER IF NOT EXISTS sealed_${table}_insert AFTER INSERT ON main.${table} BEGIN ${note("new")} END;
      CREATE TEMP TRIGGER IF NOT EXISTS sealed_${table}_update AFTER ${update} ON main.${table} BEGIN ${note("old")} ${note("new")} END;
      CREATE TEMP TRIGGER IF NOT EXISTS sealed_${table}_delete AFTER DELETE ON main.${table} BEGIN ${note("old")} END;
    `);
  }
}

/** Seals everything as it is. */
export function sealAll(connection: Connection): void {
  for (const kind of KINDS)
    for (const { id } of connection.all<{ id: number | string }>(SEALED[kind].ids))
      seal(connection, kind, id);
}

function seal(connection: Connection, kind: Kind, id: number | string): void {
  const facts = hashFactsOf(connection, kind, id);
  if (facts === null) connection.run(DROP_SEAL, kind, String(id));
  else connection.run(SET_SEAL, kind, String(id), facts);
}

/** Null when there is no such row. */
function hashFactsOf(connection: Connection, kind: Kind, id: SQLInputValue): Buffer | null {
  const facts = SEALED[kind].facts.map((sql) => connection.list(sql, id));
  return facts[0]?.length === 0 ? null : hash("sha256", JSON.stringify([kind, facts]), "buffer");
}

/** Every seal matches, none is missing, and none is left of what is gone. */
export function checkSeals(connection: Connection, problems: Problems): void {
  for (const kind of KINDS) {
    const rows = connection.all<{ id: number | string }>(SEALED[kind].ids);
    for (const { id } of rows) {
      const stored = connection.get<{ hash: unknown }>(SEAL, kind, String(id))?.hash;
      const wanted = hashFactsOf(connection, kind, id);
      if (wanted === null || equalBytes(wanted, stored)) continue;
      const name = NAMES[kind](id);
      problems.add("seal", name, `${name} is not what was stored: ${DESCRIBED[kind]} was changed`);
    }
    const seals = connection.get<{ n: number }>(COUNT, kind)?.n;
    if (seals !== rows.length)
      problems.add(
        "seal",
        "archive",
        `there are ${seals} seals of kind ${kind}, counted ${rows.length} rows`,
      );
  }
}

const NAMES: Readonly<Record<Kind, (id: number | string) => string>> = {
  session: (id) => `session ${id}`,
  conversation: (id) => `conversation ${id}`,
  summary: String,
  redaction: (id) => formatMessageId(Number(id)),
};
const DESCRIBED: Readonly<Record<Kind, string>> = {
  session: "its id or owner",
  conversation: "when it was archived, its parent, a placement or a boundary",
  summary: "its span, state, a time or a source",
  redaction: "what the vault holds of it",
};

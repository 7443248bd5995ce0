/**
 * Every table of the archive, declared once: its columns, their types, and its key. The types of rows and keys are derived from it, and so
 * is every INSERT, UPDATE and DELETE of a change set, in any database.
 *
 * Invariants: a table comes after those it refers to, so that rows can be inserted in this order and deleted in reverse. The migrations of
 * an adapter make exactly what is declared here; a test compares the two.
 */

import type { ForkItem } from "../store/forks.ts";
import type { PayloadEncoding, StoredPart } from "../store/rows.ts";

export type Value = number | string | Uint8Array | null;

type ColumnType = "integer" | "real" | "text" | "blob" | "any";

export interface Column<T extends Value = Value> {
  readonly type: ColumnType;
  readonly isNullable: boolean;
  /** Never set: it only has the type of the values. */
  readonly value?: T;
}

const integer: Column<number> = { type: "integer", isNullable: false };
const real: Column<number> = { type: "real", isNullable: false };
const text: Column<string> = { type: "text", isNullable: false };
/** A text that is one of a few words. */
const oneOf = <T extends string>(): Column<T> => ({ type: "text", isNullable: false });
const blob: Column<Uint8Array> = { type: "blob", isNullable: false };
const any: Column<Value> = { type: "any", isNullable: true };

const maybe = <T extends Value>({ type }: Column<T>): Column<T | null> => ({ type, isNullable: true });

type Columns = Readonly<Record<string, Column>>;

interface Table<C extends Columns, K extends keyof C & string> {
  /** The primary key; a delete may give a prefix of it. */
  readonly key: readonly K[];
  readonly columns: C;
}

const table = <const C extends Columns, const K extends keyof C & string>(
  key: readonly K[],
  columns: C,
): Table<C, K> => ({ key, columns });

export const tables = {
  meta: table(["key"], { key: text, value: any }),
  sessions: table(["session_ref"], {
    session_ref: integer,
    owner: text,
    session_id: text,
    cursor: maybe(text),
    last_event: maybe(text),
    base_tokens: maybe(integer),
  }),
  conversations: table(["conversation_id"], {
    conversation_id: integer,
    owner: text,
    session_key: text,
    session_id: text,
    created_at: integer,
    archived_at: maybe(integer),
    archive_cause: maybe(text),
    parent_id: maybe(integer),
    fork_seq: maybe(integer),
    fork_pos: maybe(integer),
    head_seq: integer,
    head_chain: blob,
    fold_revision: integer,
    epoch_seq: integer,
    message_count: integer,
    summary_count: integer,
    shown_messages: integer,
    shown_tokens: integer,
    arrival_bytes: integer,
    last_position: integer,
    first_at: maybe(integer),
    last_at: maybe(integer),
    stored_at: maybe(integer),
    agent: maybe(text),
    project: maybe(text),
    branch: maybe(text),
    title: maybe(text),
    model: maybe(text),
    name: maybe(text),
    tags: maybe(text),
    pinned_at: maybe(integer),
    unlisted_at: maybe(integer),
  }),
  placements: table(["session_ref", "start_position"], {
    session_ref: integer,
    start_position: integer,
    conversation_id: integer,
    base_position: integer,
  }),
  turns: table(["advancement_key"], { advancement_key: text, session_ref: integer, committed_at: integer }),
  messages: table(["message_id"], {
    message_id: integer,
    conversation_id: integer,
    seq: integer,
    position: integer,
    session_ref: integer,
    event_id: text,
    revises: maybe(integer),
    newest: maybe(integer),
    role: text,
    tokens: integer,
    created_at: integer,
    hidden: integer,
    hidden_now: integer,
    arrival_bytes: integer,
    encoding: integer,
    body: blob,
    salt: blob,
    commitment: blob,
    chain: blob,
    forgotten_at: maybe(integer),
    dated: integer,
  }),
  imports: table(["import_id", "conversation_id"], {
    import_id: text,
    conversation_id: integer,
    source: text,
    at: integer,
    messages: integer,
  }),
  index_pending: table(["message_id"], { message_id: integer }),
  event_ids: table(["session_ref", "event_id"], {
    session_ref: integer,
    event_id: text,
    message_id: integer,
    kind: integer,
  }),
  ledger: table(["conversation_id", "seq"], {
    conversation_id: integer,
    seq: integer,
    kind: text,
    body: text,
    at: integer,
    chain: blob,
  }),
  large_files: table(["file_id"], {
    file_id: text,
    conversation_id: integer,
    file_name: maybe(text),
    mime_type: text,
    byte_size: integer,
    line_count: maybe(integer),
    sha256: text,
    storage_path: text,
    exploration_summary: text,
    created_at: integer,
  }),
  message_parts: table(["message_id", "ordinal"], {
    message_id: integer,
    ordinal: integer,
    type: oneOf<StoredPart["type"]>(),
    at: integer,
    length: integer,
    tool_call_id: maybe(text),
    tool_name: maybe(text),
    file_id: maybe(text),
    encoding: maybe(oneOf<PayloadEncoding>()),
  }),
  redactions: table(["message_id"], { message_id: integer, key_id: text, keyed: blob, sealed: integer }),
  sealed_values: table(["message_id", "ordinal"], {
    message_id: integer,
    ordinal: integer,
    at: integer,
    length: integer,
    key_id: text,
    nonce: blob,
    sealed: blob,
  }),
  summaries: table(["summary_id"], {
    summary_id: text,
    conversation_id: integer,
    kind: oneOf<"leaf" | "condensed">(),
    depth: integer,
    state: oneOf<"cover" | "reserve" | "prepared" | "retired">(),
    start_pos: integer,
    start_seq: integer,
    end_pos: integer,
    end_seq: integer,
    messages: integer,
    descendant_count: integer,
    tokens: integer,
    source_tokens: integer,
    earliest_at: integer,
    latest_at: integer,
    content: text,
    hash: blob,
    model: text,
    level: text,
    stale: integer,
    is_root: integer,
    made_at_seq: integer,
    created_at: integer,
    published_seq: maybe(integer),
    previous_id: maybe(text),
  }),
  summary_messages: table(["summary_id", "ordinal"], {
    summary_id: text,
    ordinal: integer,
    message_id: integer,
  }),
  summary_parents: table(["summary_id", "ordinal"], {
    summary_id: text,
    ordinal: integer,
    parent_summary_id: text,
  }),
  summary_refs: table(["summary_ref"], { summary_ref: integer, summary_id: text }),
  context_items: table(["conversation_id", "start_pos", "seq"], {
    conversation_id: integer,
    start_pos: integer,
    seq: integer,
    end_pos: integer,
    message_id: maybe(integer),
    summary_id: maybe(text),
    tokens: integer,
    messages: integer,
    depth: integer,
    hidden: integer,
  }),
  boundaries: table(["session_ref", "event_id"], {
    conversation_id: integer,
    session_ref: integer,
    event_id: text,
    position: integer,
    reason: text,
    retain_depth: integer,
    shown_before: integer,
    at: integer,
    undone_at: maybe(integer),
  }),
  fork_items: table(["conversation_id", "ordinal"], {
    conversation_id: integer,
    ordinal: integer,
    kind: oneOf<ForkItem["kind"]>(),
    message_id: maybe(integer),
    summary_id: maybe(text),
    first_id: maybe(integer),
    last_id: maybe(integer),
    start_pos: integer,
    end_pos: integer,
    tokens: integer,
    messages: integer,
    depth: integer,
    earliest_at: maybe(integer),
    latest_at: maybe(integer),
  }),
  seals: table(["kind", "id"], { kind: text, id: text, hash: blob }),
  expansion_grants: table(["grant_id"], {
    grant_id: text,
    owner: text,
    issuer_key: text,
    holder_key: text,
    conversations: text,
    summaries: text,
    max_depth: integer,
    token_cap: integer,
    tokens_used: integer,
    expires_at: integer,
    revoked_at: maybe(integer),
  }),
  token_calibration: table(["model"], { model: text, factor: real, samples: integer, updated_at: integer }),
  compaction_debt: table(["conversation_id"], {
    conversation_id: integer,
    reason: text,
    budget_tokens: integer,
    requested_at: integer,
    attempts: integer,
    next_attempt_at: integer,
    lease_holder: maybe(text),
    lease_until: maybe(integer),
    last_failure: maybe(text),
  }),
  spend: table(["spend_id"], {
    spend_id: integer,
    at: integer,
    conversation_id: maybe(integer),
    purpose: text,
    provider: text,
    model: text,
    input_tokens: integer,
    output_tokens: integer,
    duration_ms: integer,
    outcome: text,
  }),
  guards: table(["name"], { name: text, failures: integer, open_until: integer, reason: text }),
  cache_usage: table(["conversation_id"], {
    conversation_id: integer,
    requests: integer,
    prompt_tokens: integer,
    cached_tokens: integer,
    updated_at: integer,
    last_answer: maybe(text),
  }),
  vector_spaces: table(["space_id"], {
    space_id: integer,
    model: text,
    dimensions: integer,
    created_at: integer,
    filled_at: maybe(integer),
    lease_holder: maybe(text),
    lease_until: maybe(integer),
  }),
  // Its number orders the vectors of a space; its key is its message and its space.
  message_vectors: table(["message_id", "space_id"], {
    vector_id: integer,
    space_id: integer,
    message_id: integer,
    vector: blob,
  }),
  vectors_pending: table(["message_id", "space_id"], { message_id: integer, space_id: integer }),
  word_blocks: table(["block"], { block: integer, words: blob }),
} as const;

type Tables = typeof tables;
export type TableName = keyof Tables;

type ValueOf<C> = C extends Column<infer T> ? T : never;

/** A row as it is stored. */
export type Row<T extends TableName> = {
  -readonly [C in keyof Tables[T]["columns"]]: ValueOf<Tables[T]["columns"][C]>;
};

/** The key of a row. */
export type Key<T extends TableName> = Pick<Row<T>, Tables[T]["key"][number] & keyof Row<T>>;

/** In the order in which rows can be inserted. */
export const TABLE_NAMES = Object.keys(tables) as readonly TableName[];

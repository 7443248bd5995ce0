/**
 * The archive: every declared table (`archive/tables.ts`) with its key, the same constraints between rows as SQLite's schema, and the sequences.
 * Texts compare by their bytes, as on SQLite: an order that depends on a server's locale would differ between machines.
 *
 * Nothing here needs a superuser or an extension.
 */
import { TABLE_NAMES, tables } from "@lossless/core/ports";
import type { TableName } from "@lossless/core/ports";

export const version = 1;

const TYPES = {
  integer: "bigint",
  real: "double precision",
  text: 'text COLLATE "C"',
  blob: "bytea",
  any: "jsonb",
} as const;

/** Their numbers come from a sequence: nothing else assigns them, and none is assigned twice. */
export const NUMBERED: Partial<Record<TableName, string>> = {
  sessions: "session_ref",
  conversations: "conversation_id",
  messages: "message_id",
  summary_refs: "summary_ref",
  spend: "spend_id",
  vector_spaces: "space_id",
  message_vectors: "vector_id",
};

export const sequenceOf = (table: TableName): string => `${table}_ids`;

/** What a column refers to. A referenced row cannot be deleted; `cascade`: the referring rows are deleted with it. */
export const REFERENCES: Partial<Record<TableName, Readonly<Record<string, string>>>> = {
  conversations: { parent_id: "conversations" },
  placements: { session_ref: "sessions", conversation_id: "conversations" },
  turns: { session_ref: "sessions" },
  messages: {
    conversation_id: "conversations",
    session_ref: "sessions",
    revises: "messages DEFERRABLE",
    newest: "messages DEFERRABLE",
  },
  imports: { conversation_id: "conversations" },
  index_pending: { message_id: "messages ON DELETE CASCADE" },
  event_ids: { session_ref: "sessions", message_id: "messages" },
  ledger: { conversation_id: "conversations" },
  large_files: { conversation_id: "conversations" },
  message_parts: { message_id: "messages", file_id: "large_files" },
  redactions: { message_id: "messages" },
  sealed_values: { message_id: "messages" },
  summaries: { conversation_id: "conversations" },
  summary_messages: { summary_id: "summaries", message_id: "messages" },
  summary_parents: { summary_id: "summaries", parent_summary_id: "summaries" },
  summary_refs: { summary_id: "summaries ON DELETE CASCADE" },
  context_items: {
    conversation_id: "conversations",
    message_id: "messages",
    summary_id: "summaries",
  },
  boundaries: { conversation_id: "conversations", session_ref: "sessions" },
  fork_items: { conversation_id: "conversations" },
  compaction_debt: { conversation_id: "conversations" },
  cache_usage: { conversation_id: "conversations" },
  message_vectors: { space_id: "vector_spaces", message_id: "messages" },
  vectors_pending: {
    message_id: "messages ON DELETE CASCADE",
    space_id: "vector_spaces ON DELETE CASCADE",
  },
};

/**
 * In an archive with partitions, the partition key of each large table: its conversation if it has one. A query for one conversation then uses
 * one partition, and vacuuming or reindexing works on one at a time.
 */
const DIVIDED: Partial<Record<TableName, string>> = {
  messages: "conversation_id",
  ledger: "conversation_id",
  context_items: "conversation_id",
  message_parts: "message_id",
  event_ids: "session_ref",
};

/**
 * A partitioned table has no unique key without its partition column, so another table has the unique key of messages: each number belongs to
 * one message, however it was chosen, and references to a message refer to this table. Only the triggers write it, also for roles that may not;
 * they name its schema, because a role could create a temporary table of the same name that is found first. Nobody else may use their function:
 * a role could attach it to its own table and make it write, with the rights of the archive's owner, where a trigger of that role waits. A
 * number never changes: a missing key of another message would not be noticed.
 */
const MESSAGE_KEYS = "CREATE TABLE message_keys (message_id bigint PRIMARY KEY);";
const KEEP_KEYS = `
CREATE FUNCTION keep_message_keys() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $keep$
BEGIN
  IF tg_op = 'INSERT' THEN
    EXECUTE pg_catalog.format('INSERT INTO %I.message_keys (message_id) SELECT message_id FROM changed', tg_table_schema);
  ELSE
    EXECUTE pg_catalog.format('DELETE FROM %I.message_keys k USING changed c WHERE k.message_id = c.message_id', tg_table_schema);
  END IF;
  RETURN NULL;
END $keep$;
REVOKE ALL ON FUNCTION keep_message_keys() FROM PUBLIC;
CREATE FUNCTION keep_message_number() RETURNS trigger LANGUAGE plpgsql AS $keep$
BEGIN
  RAISE insufficient_privilege USING MESSAGE = 'the number of a message cannot change';
END $keep$;
CREATE TRIGGER keep_message_number BEFORE UPDATE OF message_id ON messages
  FOR EACH ROW WHEN (old.message_id <> new.message_id) EXECUTE FUNCTION keep_message_number();
CREATE TRIGGER keep_message_keys AFTER INSERT ON messages
  REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION keep_message_keys();
CREATE TRIGGER drop_message_keys AFTER DELETE ON messages
  REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION keep_message_keys();`;

/** Rows of one statement may refer to each other, and get their keys after it. */
const toKeys = (target: string): string =>
  target.replace(/^messages( DEFERRABLE$)?/, (_, deferrable = "") =>
    deferrable === "" ? "message_keys" : "message_keys DEFERRABLE INITIALLY DEFERRED",
  );

function createTable(name: TableName, partitions: number): string {
  const { columns, key } = tables[name];
  const by = partitions === 0 ? undefined : DIVIDED[name];
  const numbered = NUMBERED[name];
  const lines = Object.entries(columns).map(([column, { type, isNullable }]) => {
    const target = REFERENCES[name]?.[column];
    return [
      column,
      TYPES[type],
      isNullable ? "" : "NOT NULL",
      column === numbered ? `DEFAULT nextval('${sequenceOf(name)}')` : "",
      target === undefined ? "" : `REFERENCES ${partitions === 0 ? target : toKeys(target)}`,
    ]
      .filter((part) => part !== "")
      .join(" ");
  });
  const sequence = numbered === undefined ? "" : `CREATE SEQUENCE ${sequenceOf(name)};\n`;
  const keyed = [...new Set<string>(by === undefined ? key : [...key, by])];
  const table = `CREATE TABLE ${name} (\n  ${[...lines, `PRIMARY KEY (${keyed.join(", ")})`].join(",\n  ")}\n)`;
  return [
    `${sequence}${table}${by === undefined ? "" : ` PARTITION BY HASH (${by})`};`,
    ...(by === undefined ? [] : listPartitions(name, partitions)),
  ].join("\n");
}

const listPartitions = (name: TableName, partitions: number): string[] =>
  Array.from(
    { length: partitions },
    (_, i) =>
      `CREATE TABLE ${name}_p${i} PARTITION OF ${name} FOR VALUES WITH (MODULUS ${partitions}, REMAINDER ${i});`,
  );

const RULES = `
ALTER TABLE sessions ADD CONSTRAINT one_session UNIQUE (owner, session_id);
ALTER TABLE summary_refs ADD CONSTRAINT one_ref UNIQUE (summary_id);
ALTER TABLE vector_spaces ADD CONSTRAINT one_space UNIQUE (model);
ALTER TABLE message_vectors ADD CONSTRAINT one_vector UNIQUE (vector_id);
ALTER TABLE context_items ADD CONSTRAINT message_or_summary CHECK ((message_id IS NULL) <> (summary_id IS NULL));
ALTER TABLE summaries ADD CONSTRAINT known_kind CHECK (kind IN ('leaf', 'condensed'));
ALTER TABLE summaries ADD CONSTRAINT known_state CHECK (state IN ('cover', 'reserve', 'prepared', 'retired'));
ALTER TABLE fork_items ADD CONSTRAINT known_kind CHECK (kind IN ('message', 'stub', 'summary', 'range'));
-- What is compressed already is not tried again.
ALTER TABLE messages ALTER COLUMN body SET STORAGE EXTERNAL;
ALTER TABLE message_vectors ALTER COLUMN vector SET STORAGE EXTERNAL;

CREATE UNIQUE INDEX one_active_conversation ON conversations (owner, session_key) WHERE archived_at IS NULL;
CREATE INDEX conversations_by_family ON conversations (owner, session_key, conversation_id);
CREATE INDEX conversations_forked ON conversations (parent_id) WHERE parent_id IS NOT NULL;
CREATE INDEX placements_by_conversation ON placements (conversation_id);
CREATE UNIQUE INDEX messages_by_seq ON messages (conversation_id, seq);
CREATE INDEX messages_by_position ON messages (conversation_id, position, seq);
CREATE INDEX messages_by_time ON messages (conversation_id, created_at);
CREATE INDEX messages_by_revision ON messages (revises) WHERE revises IS NOT NULL;
CREATE INDEX messages_revised ON messages (newest) WHERE newest IS NOT NULL;
CREATE INDEX messages_hidden ON messages (conversation_id, hidden_now) WHERE hidden_now <> 0;
CREATE INDEX events_of_message ON event_ids (message_id);
CREATE INDEX files_by_conversation ON large_files (conversation_id, file_id);
CREATE INDEX parts_by_file ON message_parts (file_id) WHERE file_id IS NOT NULL;
CREATE INDEX recall_parts ON message_parts (tool_call_id) WHERE tool_name LIKE '%lcm\\_%';
CREATE INDEX summaries_by_conversation ON summaries (conversation_id, state, depth, start_pos);
CREATE INDEX stale_summaries ON summaries (conversation_id, depth, start_pos) WHERE stale = 1;
CREATE INDEX summaries_of_message ON summary_messages (message_id);
CREATE INDEX summaries_made_from ON summary_parents (parent_summary_id);
CREATE INDEX items_by_depth ON context_items (conversation_id, depth, start_pos) WHERE summary_id IS NOT NULL;
CREATE INDEX items_of_message ON context_items (message_id) WHERE message_id IS NOT NULL;
CREATE INDEX items_of_summary ON context_items (summary_id) WHERE summary_id IS NOT NULL;
CREATE INDEX boundaries_by_conversation ON boundaries (conversation_id, position);
CREATE INDEX spend_by_time ON spend (at);
CREATE INDEX vectors_of_space ON message_vectors (space_id, vector_id);
CREATE INDEX vectors_pending_of_space ON vectors_pending (space_id, message_id);`;

/** A stored message is pending for the index and for vectors from its commit on, whoever stored it. */
const PENDING = `
CREATE FUNCTION note_new_messages() RETURNS trigger LANGUAGE plpgsql AS $note$
BEGIN
  INSERT INTO index_pending (message_id) SELECT message_id FROM added WHERE forgotten_at IS NULL;
  INSERT INTO vectors_pending (message_id, space_id)
    SELECT a.message_id, s.space_id FROM added a CROSS JOIN vector_spaces s WHERE a.forgotten_at IS NULL;
  RETURN NULL;
END $note$;
CREATE TRIGGER note_new_messages AFTER INSERT ON messages
  REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION note_new_messages();

CREATE FUNCTION note_shown_message() RETURNS trigger LANGUAGE plpgsql AS $note$
BEGIN
  INSERT INTO vectors_pending (message_id, space_id)
    SELECT coalesce(new.newest, new.message_id), space_id FROM vector_spaces ON CONFLICT DO NOTHING;
  RETURN NULL;
END $note$;
CREATE TRIGGER note_shown_message AFTER UPDATE OF hidden_now ON messages
  FOR EACH ROW WHEN (old.hidden_now <> 0 AND new.hidden_now = 0) EXECUTE FUNCTION note_shown_message();`;

/** Large payloads in pieces: a piece is what one statement sends, and what PostgreSQL stores as one value. */
const BLOBS = `
CREATE TABLE blobs (
  name text COLLATE "C" NOT NULL,
  piece bigint NOT NULL,
  content bytea NOT NULL,
  PRIMARY KEY (name, piece)
);
ALTER TABLE blobs ALTER COLUMN content SET STORAGE EXTERNAL;`;

/** @param partitions number of partitions of the large tables; 0: none */
export const makeSql = (partitions: number): string =>
  [
    ...(partitions === 0 ? [] : [MESSAGE_KEYS]),
    ...TABLE_NAMES.map((name) => createTable(name, partitions)),
    RULES,
    ...(partitions === 0 ? [] : [KEEP_KEYS]),
    PENDING,
    BLOBS,
  ].join("\n");

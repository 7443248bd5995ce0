/** The documented schema as other programs expect it (generation 0.15), for databases that we write. */

export const DOCUMENTED_SCHEMA = `
CREATE TABLE conversations (
  conversation_id INTEGER PRIMARY KEY AUTOINCREMENT,
  session_id      TEXT NOT NULL,
  session_key     TEXT,
  active          INTEGER NOT NULL DEFAULT 1,
  archived_at     TEXT,
  archive_cause   TEXT,
  title           TEXT,
  bootstrapped_at TEXT,
  created_at      TEXT NOT NULL DEFAULT (datetime('now')),
  updated_at      TEXT NOT NULL DEFAULT (datetime('now'))
);
CREATE UNIQUE INDEX conversations_active_key ON conversations (session_key) WHERE session_key IS NOT NULL AND active = 1;
CREATE INDEX conversations_by_key ON conversations (session_key, active, created_at);
CREATE INDEX conversations_by_session ON conversations (session_id, active, created_at);

CREATE TABLE messages (
  message_id               INTEGER PRIMARY KEY AUTOINCREMENT,
  conversation_id          INTEGER NOT NULL REFERENCES conversations (conversation_id) ON DELETE CASCADE,
  seq                      INTEGER NOT NULL,
  role                     TEXT NOT NULL CHECK (role IN ('system', 'user', 'assistant', 'tool')),
  content                  TEXT NOT NULL,
  token_count              INTEGER NOT NULL,
  identity_hash            TEXT,
  openclaw_sender_metadata TEXT,
  transcript_entry_id      TEXT,
  stable_event_key         TEXT,
  large_content            TEXT,
  created_at               TEXT NOT NULL DEFAULT (datetime('now')),
  UNIQUE (conversation_id, seq)
);
CREATE INDEX messages_by_identity ON messages (conversation_id, identity_hash);
CREATE UNIQUE INDEX messages_by_entry ON messages (conversation_id, transcript_entry_id) WHERE transcript_entry_id IS NOT NULL;
CREATE UNIQUE INDEX messages_by_event ON messages (conversation_id, stable_event_key) WHERE stable_event_key IS NOT NULL;

CREATE TABLE message_parts (
  part_id         TEXT PRIMARY KEY,
  message_id      INTEGER NOT NULL REFERENCES messages (message_id) ON DELETE CASCADE,
  session_id      TEXT NOT NULL,
  part_type       TEXT NOT NULL CHECK (part_type IN ('text', 'reasoning', 'tool', 'patch', 'file', 'subtask', 'compaction',
                    'step_start', 'step_finish', 'snapshot', 'agent', 'retry')),
  ordinal         INTEGER NOT NULL,
  text_content    TEXT,
  is_ignored      INTEGER,
  is_synthetic    INTEGER,
  tool_call_id    TEXT,
  tool_name       TEXT,
  tool_status     TEXT,
  tool_input      TEXT,
  tool_output     TEXT,
  tool_error      TEXT,
  tool_title      TEXT,
  patch_hash      TEXT,
  patch_files     TEXT,
  file_mime       TEXT,
  file_name       TEXT,
  file_url        TEXT,
  subtask_prompt  TEXT,
  subtask_desc    TEXT,
  subtask_agent   TEXT,
  step_reason     TEXT,
  step_cost       REAL,
  step_tokens_in  INTEGER,
  step_tokens_out INTEGER,
  snapshot_hash   TEXT,
  compaction_auto INTEGER,
  metadata        TEXT,
  UNIQUE (message_id, ordinal)
);
CREATE INDEX message_parts_by_type ON message_parts (part_type);

CREATE TABLE summaries (
  summary_id                 TEXT PRIMARY KEY,
  conversation_id            INTEGER NOT NULL REFERENCES conversations (conversation_id) ON DELETE CASCADE,
  kind                       TEXT NOT NULL CHECK (kind IN ('leaf', 'condensed')),
  depth                      INTEGER NOT NULL DEFAULT 0,
  content                    TEXT NOT NULL,
  token_count                INTEGER NOT NULL,
  earliest_at                TEXT,
  latest_at                  TEXT,
  descendant_count           INTEGER NOT NULL DEFAULT 0,
  descendant_token_count     INTEGER NOT NULL DEFAULT 0,
  source_message_token_count INTEGER NOT NULL DEFAULT 0,
  file_ids                   TEXT NOT NULL DEFAULT '[]',
  model                      TEXT NOT NULL DEFAULT 'unknown',
  created_at                 TEXT NOT NULL DEFAULT (datetime('now'))
);
CREATE INDEX summaries_by_time ON summaries (conversation_id, created_at);
CREATE INDEX summaries_by_depth ON summaries (conversation_id, depth, kind);

CREATE TABLE summary_messages (
  summary_id TEXT NOT NULL REFERENCES summaries (summary_id) ON DELETE CASCADE,
  message_id INTEGER NOT NULL REFERENCES messages (message_id) ON DELETE RESTRICT,
  ordinal    INTEGER NOT NULL,
  PRIMARY KEY (summary_id, message_id)
);
CREATE INDEX summary_messages_by_message ON summary_messages (message_id);

CREATE TABLE summary_parents (
  summary_id        TEXT NOT NULL REFERENCES summaries (summary_id) ON DELETE CASCADE,
  parent_summary_id TEXT NOT NULL REFERENCES summaries (summary_id) ON DELETE RESTRICT,
  ordinal           INTEGER NOT NULL,
  PRIMARY KEY (summary_id, parent_summary_id)
);
CREATE INDEX summary_parents_by_source ON summary_parents (parent_summary_id);

CREATE TABLE context_items (
  conversation_id INTEGER NOT NULL REFERENCES conversations (conversation_id) ON DELETE CASCADE,
  ordinal         INTEGER NOT NULL,
  item_type       TEXT NOT NULL CHECK (item_type IN ('message', 'summary')),
  message_id      INTEGER REFERENCES messages (message_id) ON DELETE RESTRICT,
  summary_id      TEXT REFERENCES summaries (summary_id) ON DELETE RESTRICT,
  created_at      TEXT NOT NULL DEFAULT (datetime('now')),
  PRIMARY KEY (conversation_id, ordinal),
  CHECK ((item_type = 'message' AND message_id IS NOT NULL AND summary_id IS NULL)
      OR (item_type = 'summary' AND summary_id IS NOT NULL AND message_id IS NULL))
);

CREATE TABLE large_files (
  file_id             TEXT PRIMARY KEY,
  conversation_id     INTEGER NOT NULL REFERENCES conversations (conversation_id) ON DELETE CASCADE,
  file_name           TEXT,
  mime_type           TEXT,
  byte_size           INTEGER,
  line_count          INTEGER,
  storage_uri         TEXT NOT NULL,
  exploration_summary TEXT,
  created_at          TEXT NOT NULL DEFAULT (datetime('now'))
);
CREATE INDEX large_files_by_conversation ON large_files (conversation_id, created_at);

CREATE VIRTUAL TABLE messages_fts USING fts5 (content, tokenize = 'porter unicode61');
CREATE VIRTUAL TABLE summaries_fts USING fts5 (summary_id UNINDEXED, content, tokenize = 'porter unicode61');
CREATE VIRTUAL TABLE summaries_fts_cjk USING fts5 (summary_id UNINDEXED, content, tokenize = 'trigram');
`;

/** Fills the indexes from their tables, at the end. */
export const FILL_INDEXES = `
INSERT INTO messages_fts (rowid, content) SELECT message_id, content FROM messages;
INSERT INTO summaries_fts (summary_id, content) SELECT summary_id, content FROM summaries;
INSERT INTO summaries_fts_cjk (summary_id, content) SELECT summary_id, content FROM summaries;
`;

/** The archive: conversations, messages, their parts, the cover, the ledger, large files, and the tables for summaries. */
export const version = 1;

export const sql = `
CREATE TABLE meta (
  key   TEXT PRIMARY KEY,          -- name of an archive-wide fact
  value ANY                        -- its value
) STRICT, WITHOUT ROWID;

CREATE TABLE conversations (
  conversation_id INTEGER PRIMARY KEY,
  owner           TEXT NOT NULL,   -- the agent the rows belong to; reads are filtered by it
  session_key     TEXT NOT NULL,   -- all conversations of one owner and key are a family
  session_id      TEXT NOT NULL,   -- the host's session that wrote last
  created_at      INTEGER NOT NULL,
  archived_at     INTEGER,         -- set when a reset closed the segment; late rows are still taken
  archive_cause   TEXT,
  parent_id       INTEGER REFERENCES conversations (conversation_id), -- a fork's parent
  fork_seq        INTEGER,         -- the parent's seq and position where the fork left
  fork_pos        INTEGER,
  head_seq        INTEGER NOT NULL DEFAULT 0,  -- last seq given out, to messages and ledger alike
  head_chain      BLOB NOT NULL,   -- chain value of that seq, so that a cut end is seen
  fold_revision   INTEGER NOT NULL DEFAULT 0,  -- counts changes of the folded prefix
  epoch_seq       INTEGER NOT NULL DEFAULT 0,  -- newest seq at the last of them
  message_count   INTEGER NOT NULL DEFAULT 0,  -- all rows of messages, revisions included
  summary_count   INTEGER NOT NULL DEFAULT 0,
  shown_messages  INTEGER NOT NULL DEFAULT 0,  -- messages under items that are not hidden
  shown_tokens    INTEGER NOT NULL DEFAULT 0,  -- tokens of items that are not hidden
  arrival_bytes   INTEGER NOT NULL DEFAULT 0,  -- bytes that were handed in
  last_position   INTEGER NOT NULL DEFAULT 0,  -- highest position given out
  first_at        INTEGER,         -- earliest and latest time of a message
  last_at         INTEGER,
  stored_at       INTEGER          -- when the last row was stored
) STRICT;
CREATE UNIQUE INDEX one_active_conversation ON conversations (owner, session_key) WHERE archived_at IS NULL;
CREATE INDEX conversations_by_family ON conversations (owner, session_key, conversation_id);

CREATE TABLE sessions (
  session_ref INTEGER PRIMARY KEY,
  owner       TEXT NOT NULL,
  session_id  TEXT NOT NULL,       -- the host's session id; event ids are unique within it
  cursor      TEXT,                -- how far the host's transcript or a file was read; opaque to the store
  last_event  TEXT,                -- event id stored last with the cursor
  base_tokens INTEGER,             -- first budget of the last turn, the base of the threshold
  UNIQUE (owner, session_id)
) STRICT;

CREATE TABLE placements (
  session_ref     INTEGER NOT NULL REFERENCES sessions (session_ref),
  start_position  INTEGER NOT NULL,  -- events of the session from here on …
  conversation_id INTEGER NOT NULL REFERENCES conversations (conversation_id),  -- … belong to this conversation
  base_position   INTEGER NOT NULL,  -- added to the session's own positions: a later session comes behind an earlier one
  PRIMARY KEY (session_ref, start_position)
) STRICT, WITHOUT ROWID;

CREATE TABLE turns (
  advancement_key TEXT PRIMARY KEY,  -- the host's key of a committed turn; a known key is a repeated commit
  session_ref     INTEGER NOT NULL REFERENCES sessions (session_ref),
  committed_at    INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE messages (
  message_id      INTEGER PRIMARY KEY,  -- shown as msg_<n>
  conversation_id INTEGER NOT NULL REFERENCES conversations (conversation_id),
  seq             INTEGER NOT NULL,  -- order of arrival, never changes
  position        INTEGER NOT NULL,  -- where the message belongs
  session_ref     INTEGER NOT NULL REFERENCES sessions (session_ref),
  event_id        TEXT NOT NULL,     -- the id it arrived under
  revises         INTEGER REFERENCES messages (message_id),  -- first message of this event, when the bytes changed later
  newest          INTEGER REFERENCES messages (message_id),  -- on the first message: its newest revision
  role            TEXT NOT NULL,
  tokens          INTEGER NOT NULL,  -- estimate of the message as sent, uncalibrated
  created_at      INTEGER NOT NULL,  -- ms UTC: the message's own time, else its arrival
  hidden          INTEGER NOT NULL,  -- reasons it was hidden for when it arrived (bit mask)
  hidden_now      INTEGER NOT NULL,  -- reasons it is hidden for now: arrival and ledger together
  arrival_bytes   INTEGER NOT NULL,  -- length of what was handed in
  encoding        INTEGER NOT NULL,  -- 0 plain, else zstd with the dictionary of this version
  body            BLOB NOT NULL,     -- what was handed in, large payloads cut out
  salt            BLOB NOT NULL,     -- makes the commitment say nothing about a forgotten text
  commitment      BLOB NOT NULL,     -- SHA-256 (salt, bytes handed in)
  chain           BLOB NOT NULL,     -- link of the conversation's hash chain
  forgotten_at    INTEGER            -- body and salt are erased, the commitment stays
) STRICT;
CREATE UNIQUE INDEX messages_by_seq ON messages (conversation_id, seq);
CREATE INDEX messages_by_position ON messages (conversation_id, position, seq);
CREATE INDEX messages_hidden ON messages (conversation_id, hidden_now) WHERE hidden_now <> 0;
CREATE INDEX messages_by_revision ON messages (revises) WHERE revises IS NOT NULL;

CREATE TABLE event_ids (
  session_ref INTEGER NOT NULL REFERENCES sessions (session_ref),
  event_id    TEXT NOT NULL,
  message_id  INTEGER NOT NULL REFERENCES messages (message_id),
  kind        INTEGER NOT NULL,    -- 0 entry, 1 provisional, 2 alias
  PRIMARY KEY (session_ref, event_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE ledger (
  conversation_id INTEGER NOT NULL REFERENCES conversations (conversation_id),
  seq             INTEGER NOT NULL,  -- shares one line of numbers with messages
  kind            TEXT NOT NULL,     -- relabel, hide, boundary, …
  body            TEXT NOT NULL,     -- JSON
  at              INTEGER NOT NULL,
  chain           BLOB NOT NULL,
  PRIMARY KEY (conversation_id, seq)
) STRICT, WITHOUT ROWID;

CREATE TABLE message_parts (
  message_id   INTEGER NOT NULL REFERENCES messages (message_id),
  ordinal      INTEGER NOT NULL,
  type         TEXT NOT NULL,      -- text, reasoning, tool_call, tool_result, image, file, other; payload: bytes cut out
  at           INTEGER NOT NULL,   -- place and length in the bytes handed in
  length       INTEGER NOT NULL,
  tool_call_id TEXT,
  tool_name    TEXT,
  file_id      TEXT REFERENCES large_files (file_id),
  encoding     TEXT,               -- how the file's content becomes the cut bytes again
  PRIMARY KEY (message_id, ordinal)
) STRICT, WITHOUT ROWID;
CREATE INDEX parts_by_file ON message_parts (file_id) WHERE file_id IS NOT NULL;

CREATE TABLE large_files (
  file_id             TEXT PRIMARY KEY,
  conversation_id     INTEGER NOT NULL REFERENCES conversations (conversation_id),
  file_name           TEXT,
  mime_type           TEXT NOT NULL,
  byte_size           INTEGER NOT NULL,
  line_count          INTEGER,
  sha256              TEXT NOT NULL,
  storage_path        TEXT NOT NULL,  -- below the files folder
  exploration_summary TEXT NOT NULL,
  created_at          INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX files_by_conversation ON large_files (conversation_id, file_id);

CREATE TABLE summaries (
  summary_id       TEXT PRIMARY KEY,
  conversation_id  INTEGER NOT NULL REFERENCES conversations (conversation_id),
  kind             TEXT NOT NULL CHECK (kind IN ('leaf', 'condensed')),
  depth            INTEGER NOT NULL,
  state            TEXT NOT NULL CHECK (state IN ('cover', 'reserve', 'prepared', 'retired')),  -- cover: published
  start_pos        INTEGER NOT NULL,  -- first and last position it stands for
  start_seq        INTEGER NOT NULL,
  end_pos          INTEGER NOT NULL,
  end_seq          INTEGER NOT NULL,
  messages         INTEGER NOT NULL,  -- shown messages below it
  descendant_count INTEGER NOT NULL,  -- summaries below it
  tokens           INTEGER NOT NULL,
  source_tokens    INTEGER NOT NULL,
  earliest_at      INTEGER NOT NULL,
  latest_at        INTEGER NOT NULL,
  content          TEXT NOT NULL,
  hash             BLOB NOT NULL,     -- SHA-256 over what never changes of it
  model            TEXT NOT NULL,     -- the model that wrote it, or 'extractive'
  level            TEXT NOT NULL,     -- normal, aggressive, extractive
  stale            INTEGER NOT NULL DEFAULT 0,  -- something below changed since; it will be remade
  is_root          INTEGER NOT NULL DEFAULT 0,  -- a reserve summary over everything before the tail
  made_at_seq      INTEGER NOT NULL,  -- the conversation's newest seq when it was made
  created_at       INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX summaries_by_conversation ON summaries (conversation_id, state, depth, start_pos);

CREATE TABLE summary_messages (
  summary_id TEXT NOT NULL REFERENCES summaries (summary_id),
  ordinal    INTEGER NOT NULL,      -- order among all sources; shares one line of numbers with summary_parents
  message_id INTEGER NOT NULL REFERENCES messages (message_id),
  PRIMARY KEY (summary_id, ordinal)
) STRICT, WITHOUT ROWID;
CREATE INDEX summaries_of_message ON summary_messages (message_id);

CREATE TABLE summary_parents (
  summary_id        TEXT NOT NULL REFERENCES summaries (summary_id),
  ordinal           INTEGER NOT NULL,
  parent_summary_id TEXT NOT NULL REFERENCES summaries (summary_id),  -- a source, the older and finer one
  PRIMARY KEY (summary_id, ordinal)
) STRICT, WITHOUT ROWID;
CREATE INDEX summaries_made_from ON summary_parents (parent_summary_id);

CREATE TABLE context_items (
  conversation_id INTEGER NOT NULL REFERENCES conversations (conversation_id),
  start_pos       INTEGER NOT NULL,  -- first and last position the item stands for
  seq             INTEGER NOT NULL,  -- tie-break of equal positions: seq of the first message
  end_pos         INTEGER NOT NULL,
  message_id      INTEGER REFERENCES messages (message_id),    -- exactly one of these two
  summary_id      TEXT REFERENCES summaries (summary_id),
  tokens          INTEGER NOT NULL,
  messages        INTEGER NOT NULL,  -- shown messages it stands for
  depth           INTEGER NOT NULL,  -- -1 for a message
  hidden          INTEGER NOT NULL,  -- bit mask: 1 heartbeat, 2 unplaced, 4 branch, 8 meta, 16 forgotten, 32 pending
  PRIMARY KEY (conversation_id, start_pos, seq),
  CHECK ((message_id IS NULL) <> (summary_id IS NULL))
) STRICT, WITHOUT ROWID;

CREATE INDEX items_by_depth ON context_items (conversation_id, depth, start_pos) WHERE summary_id IS NOT NULL;

CREATE TABLE boundaries (
  conversation_id INTEGER NOT NULL REFERENCES conversations (conversation_id),
  session_ref     INTEGER NOT NULL REFERENCES sessions (session_ref),
  event_id        TEXT NOT NULL,     -- the host's reset entry; known by it
  position        INTEGER NOT NULL,
  reason          TEXT NOT NULL,     -- new, reset, idle, daily, deleted
  retain_depth    INTEGER NOT NULL,  -- summaries of at least this depth stay visible; -1 keeps all
  shown_before    INTEGER NOT NULL,  -- shown messages before it, when it was written
  at              INTEGER NOT NULL,
  undone_at       INTEGER,
  PRIMARY KEY (session_ref, event_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX boundaries_by_conversation ON boundaries (conversation_id, position);

CREATE TABLE expansion_grants (
  grant_id      TEXT PRIMARY KEY,
  owner         TEXT NOT NULL,
  issuer_key    TEXT NOT NULL,     -- session key that gave it
  holder_key    TEXT NOT NULL,     -- session key that may use it
  conversations TEXT NOT NULL,     -- JSON array of conversation ids
  summaries     TEXT NOT NULL,     -- JSON array of summary ids; empty means all of the conversations
  max_depth     INTEGER NOT NULL,
  token_cap     INTEGER NOT NULL,
  tokens_used   INTEGER NOT NULL DEFAULT 0,
  expires_at    INTEGER NOT NULL,
  revoked_at    INTEGER
) STRICT, WITHOUT ROWID;

CREATE TABLE token_calibration (
  model      TEXT PRIMARY KEY,
  factor     REAL NOT NULL,        -- real tokens per estimated token
  samples    INTEGER NOT NULL,
  updated_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
`;

/** Folding: compaction debt, the ledger of model calls, and guards that survive a restart. */
export const version = 2;

export const sql = `
CREATE TABLE compaction_debt (
  conversation_id INTEGER PRIMARY KEY REFERENCES conversations (conversation_id),
  reason          TEXT NOT NULL,     -- threshold
  budget_tokens   INTEGER NOT NULL,  -- the base the threshold was compared with
  requested_at    INTEGER NOT NULL,
  attempts        INTEGER NOT NULL DEFAULT 0,
  next_attempt_at INTEGER NOT NULL,  -- back-off: not before this
  lease_holder    TEXT,              -- the process that is paying, until the lease ends
  lease_until     INTEGER,
  last_failure    TEXT
) STRICT;

CREATE TABLE spend (
  spend_id        INTEGER PRIMARY KEY,
  at              INTEGER NOT NULL,
  conversation_id INTEGER,           -- null when the call served no single conversation
  purpose         TEXT NOT NULL,     -- leaf, condensed, reserve, ask, explore, embed
  provider        TEXT NOT NULL,
  model           TEXT NOT NULL,
  input_tokens    INTEGER NOT NULL,
  output_tokens   INTEGER NOT NULL,
  duration_ms     INTEGER NOT NULL,
  outcome         TEXT NOT NULL      -- accepted, rejected, or how it failed
) STRICT;
CREATE INDEX spend_by_time ON spend (at);

CREATE TABLE guards (
  name       TEXT PRIMARY KEY,       -- breaker:<provider>/<model>, or spend
  failures   INTEGER NOT NULL,       -- failures in a row
  open_until INTEGER NOT NULL,       -- closed again from this time on
  reason     TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE cache_usage (
  conversation_id INTEGER PRIMARY KEY REFERENCES conversations (conversation_id),
  requests        INTEGER NOT NULL,  -- what hosts reported about their provider's prompt cache
  prompt_tokens   INTEGER NOT NULL,
  cached_tokens   INTEGER NOT NULL,
  updated_at      INTEGER NOT NULL
) STRICT;
`;

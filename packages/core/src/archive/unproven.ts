/**
 * What `verify` does not prove, and why: nothing here can lose a message, change one, or change what one belongs to. A test edits every
 * column of every table and fails for one that `verify` does not notice and that is not in this list. `docs/storage.md` prints it.
 */

/** By table: the columns, or `*` for all of them. */
export const UNPROVEN: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  turns: {
    "*": "Keys that a host gives, found nowhere else in the archive. If one is lost, a turn can be committed again; that adds nothing, because its events are known.",
  },
  expansion_grants: { "*": "Short-lived permissions of sub-agents. They expire within minutes." },
  compaction_debt: { "*": "Folding that is due. A lost one is noticed at the next turn." },
  spend: { "*": "A ledger of what models cost, for caps and statistics." },
  guards: { "*": "Pauses of models that failed. They end by themselves." },
  cache_usage: { "*": "Statistics that hosts report." },
  token_calibration: { "*": "An estimate that is corrected with every answer of a model." },
  vector_spaces: { "*": "Bookkeeping of an optional index that can be filled again." },
  imports: {
    "*": "Says which import stored what. Only the removal of an import reads it, and shows first what it would remove.",
  },
  vectors_pending: {
    "*": "Messages that wait for a vector of an optional index. Filling the index again reads every message.",
  },
  word_blocks: {
    "*": "A filter for searches that can be rebuilt. Blocks that exist are checked.",
  },
  meta: {
    "*": "State of the search index and of a forget in progress. The index and the forget themselves are checked.",
  },
  sessions: {
    cursor: "How far a host's transcript was read. Reading it again adds nothing.",
    last_event: "The last event that was read. Reading it again adds nothing.",
    base_tokens: "The budget of the last turn; the next one writes it again.",
  },
  conversations: {
    session_id: "The session that wrote last, for display. The session of each message is proven.",
    stored_at: "When the last row was stored, for display. The time of each message is proven.",
    fold_revision: "A counter that only says whether the context has changed since it was last read.",
    epoch_seq:
      "The seq at the last of these changes. It moves the place where a context is cut, not what is in the archive.",
    name: "A name that a person gave.",
    tags: "Tags that a person gave.",
    pinned_at: "Lists show it first.",
    unlisted_at: "Lists leave it out. Nothing else depends on it.",
  },
  messages: {
    dated:
      "Whether the caller gave a time for a message without one in its bytes. A message with a time in its bytes is checked.",
  },
  event_ids: {
    kind: "Whether an id is provisional. The ledger proves every id that replaced one.",
  },
  message_vectors: {
    "*": "An optional index that can be filled again. Checked: a vector has the right length and belongs to a shown message.",
  },
};

export const isUnproven = (table: string, column: string): boolean =>
  UNPROVEN[table] !== undefined && ("*" in UNPROVEN[table] || column in UNPROVEN[table]);

/**
 * What `verify` does not prove, and why: nothing here can lose a message, change one, or change what one belongs to. A test edits every column of
 * every table and fails for one that `verify` does not notice and that is not in this list. `docs/storage.md` prints it.
 */

/** By table: the columns, or `*` for all of them. */
export const UNPROVEN: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  turns: {
    "*": "Keys that a host hands in and nothing else in the archive repeats. A lost one lets a turn be committed again, which adds nothing: its events are known.",
  },
  expansion_grants: { "*": "Short-lived permissions of sub-agents. They expire within minutes." },
  compaction_debt: { "*": "Folds that are owed. A lost one is noticed at the next turn." },
  spend: { "*": "A ledger of what models cost, for caps and statistics." },
  guards: { "*": "Pauses of models that failed. They end by themselves." },
  cache_usage: { "*": "Statistics that hosts report." },
  token_calibration: { "*": "An estimate that is corrected with every answer of a model." },
  vector_spaces: { "*": "Bookkeeping of an optional index that can be filled again." },
  imports: {
    "*": "Says which import stored what. Only the removal of an import reads it, and shows first what it would remove.",
  },
  vectors_pending: {
    "*": "What waits for a vector of an optional index. Filling the index again looks at every message.",
  },
  word_blocks: {
    "*": "A filter for searches that can be rebuilt. What a block spells is checked where there is one.",
  },
  meta: {
    "*": "State of the search index and of a forgetting under way; both are checked by what they describe.",
  },
  sessions: {
    cursor: "How far a host's transcript was read. Reading it again adds nothing.",
    last_event: "A hint for the same.",
    base_tokens: "The budget of the last turn; the next one writes it again.",
  },
  conversations: {
    session_id: "The session that wrote last, for display. The session of each message is proven.",
    stored_at: "When the last row was stored, for display. The time of each message is proven.",
    fold_revision: "A counter that only says whether the context changed since somebody looked.",
    epoch_seq:
      "The seq at the last of these changes. It moves the place where a context is cut, not what is in the archive.",
    name: "What a person calls it. No message says so.",
    tags: "A person's words for it.",
    pinned_at: "That lists show it first.",
    unlisted_at: "That lists leave it out. Everything else goes on with it.",
  },
  messages: {
    dated:
      "Whether a message whose bytes carry no time was given one by its caller. That a message with a time in its bytes is dated is checked.",
  },
  event_ids: {
    kind: "Whether an id is provisional. The ledger proves every id that replaced one.",
  },
  message_vectors: {
    "*": "An optional index that can be filled again. That a vector has the right length, and belongs to a shown message, is checked.",
  },
};

export const isUnproven = (table: string, column: string): boolean =>
  UNPROVEN[table] !== undefined && ("*" in UNPROVEN[table] || column in UNPROVEN[table]);

/**
 * Separates owners. Pending documents are keyed by owner first, like the index itself, and every table has a rule for the owner of a row. A role
 * of the server that was given an owner (`archive_roles`) reads and writes only the rows of that owner, whatever statement it sends. The rules
 * act only once a role was added (`roles.ts`), and never on the role that owns the tables.
 *
 * Invariants: every table has a rule, or is listed as used only by its owner. A row that belongs to another row has the same owner.
 */
import { TABLE_NAMES } from "@lossless/core/ports";
import type { TableName } from "@lossless/core/ports";

export const version = 3;

export { takeOutBookkeeping as finish } from "./0003-bookkeeping.ts";

const PENDING = `
ALTER TABLE index_pending ADD COLUMN owner text COLLATE "C";
UPDATE index_pending p SET owner = c.owner FROM messages m JOIN conversations c USING (conversation_id) WHERE m.message_id = p.message_id;
ALTER TABLE index_pending ALTER COLUMN owner SET NOT NULL;
ALTER TABLE index_pending DROP CONSTRAINT index_pending_pkey;
ALTER TABLE index_pending ADD CONSTRAINT index_pending_key PRIMARY KEY (owner, message_id);
CREATE UNIQUE INDEX index_pending_by_message ON index_pending (message_id);

ALTER TABLE index_pending_summaries ADD COLUMN owner text COLLATE "C";
UPDATE index_pending_summaries p SET owner = c.owner
  FROM summary_refs r JOIN summaries s USING (summary_id) JOIN conversations c USING (conversation_id) WHERE r.summary_ref = p.summary_ref;
ALTER TABLE index_pending_summaries ALTER COLUMN owner SET NOT NULL;
ALTER TABLE index_pending_summaries DROP CONSTRAINT index_pending_summaries_pkey;
ALTER TABLE index_pending_summaries ADD CONSTRAINT index_pending_summaries_key PRIMARY KEY (owner, summary_ref);
CREATE UNIQUE INDEX index_pending_by_summary ON index_pending_summaries (summary_ref);

CREATE OR REPLACE FUNCTION note_new_messages() RETURNS trigger LANGUAGE plpgsql AS $note$
BEGIN
  INSERT INTO index_pending (owner, message_id)
    SELECT c.owner, a.message_id FROM added a JOIN conversations c USING (conversation_id) WHERE a.forgotten_at IS NULL;
  INSERT INTO vectors_pending (message_id, space_id)
    SELECT a.message_id, s.space_id FROM added a CROSS JOIN vector_spaces s WHERE a.forgotten_at IS NULL;
  RETURN NULL;
END $note$;`;

/** Which role may use the rows of which owner. */
const ROLES = `
CREATE TABLE archive_roles (
  role text COLLATE "C" NOT NULL,
  owner text COLLATE "C" NOT NULL,
  PRIMARY KEY (role, owner)
);
CREATE POLICY own_rows ON archive_roles FOR SELECT USING (role = current_user);`;

/**
 * Whether the row of a blob or a seal belongs to another owner. That row may be written after it, or deleted before it. The function bodies are
 * not strings: their tables are resolved when the functions are created, because a role could create a temporary table of the same name that is
 * found first.
 */
export const makeFunctions = (create: string, unless: string): string => `
${create} FUNCTION is_of_others(conversation bigint, reader text) RETURNS boolean
LANGUAGE sql STABLE SECURITY DEFINER SET search_path FROM CURRENT
RETURN ${unless}EXISTS (SELECT 1 FROM conversations c WHERE c.conversation_id = conversation
  AND c.owner <> ALL (ARRAY(SELECT r.owner FROM archive_roles r WHERE r.role = reader)));
${create} FUNCTION is_seal_of_others(kind text, id text, reader text) RETURNS boolean
LANGUAGE sql STABLE SECURITY DEFINER SET search_path FROM CURRENT
RETURN ${unless}CASE kind
  WHEN 'session' THEN EXISTS (SELECT 1 FROM sessions s WHERE s.session_ref = id::bigint
    AND s.owner <> ALL (ARRAY(SELECT r.owner FROM archive_roles r WHERE r.role = reader)))
  WHEN 'conversation' THEN is_of_others(id::bigint, reader)
  WHEN 'summary' THEN is_of_others((SELECT s.conversation_id FROM summaries s WHERE s.summary_id = id), reader)
  ELSE is_of_others((SELECT m.conversation_id FROM messages m WHERE m.message_id = id::bigint), reader)
END;`;

const OWNER = "owner = ANY (ARRAY(SELECT r.owner FROM archive_roles r WHERE r.role = current_user))";
const belongs = (table: string, to: string, column: string): string =>
  `EXISTS (SELECT 1 FROM ${to} o WHERE o.${column} = ${table}.${column})`;
/** Facts about models and about the archive as a whole. */
const SHARED = "true";
/** Not used on a server. */
const NOBODY = "false";

const BY: Readonly<
  Record<TableName, "owner" | "shared" | "nobody" | "own" | readonly [to: TableName, column: string]>
> = {
  meta: "shared",
  sessions: "owner",
  conversations: "owner",
  placements: ["sessions", "session_ref"],
  turns: ["sessions", "session_ref"],
  messages: ["conversations", "conversation_id"],
  imports: ["conversations", "conversation_id"],
  index_pending: "owner",
  event_ids: ["sessions", "session_ref"],
  ledger: ["conversations", "conversation_id"],
  large_files: ["conversations", "conversation_id"],
  message_parts: ["messages", "message_id"],
  redactions: ["messages", "message_id"],
  sealed_values: ["messages", "message_id"],
  summaries: ["conversations", "conversation_id"],
  summary_messages: ["summaries", "summary_id"],
  summary_parents: ["summaries", "summary_id"],
  summary_refs: ["summaries", "summary_id"],
  context_items: ["conversations", "conversation_id"],
  boundaries: ["conversations", "conversation_id"],
  fork_items: ["conversations", "conversation_id"],
  seals: "own",
  expansion_grants: "owner",
  token_calibration: "shared",
  compaction_debt: ["conversations", "conversation_id"],
  spend: "own",
  guards: "shared",
  cache_usage: ["conversations", "conversation_id"],
  vector_spaces: "shared",
  message_vectors: ["messages", "message_id"],
  vectors_pending: ["messages", "message_id"],
  word_blocks: "nobody",
};

const OF_THEIR_OWN: Readonly<Record<string, string>> = {
  seals: "NOT is_seal_of_others(kind, id, current_user)",
  spend: `conversation_id IS NULL OR ${belongs("spend", "conversations", "conversation_id")}`,
};

function ruleOf(table: TableName): string {
  const by = BY[table];
  if (typeof by === "object") return belongs(table, ...by);
  return { owner: OWNER, shared: SHARED, nobody: NOBODY, own: OF_THEIR_OWN[table] ?? NOBODY }[by];
}

/** The owner of a row, by table. */
export const RULES: Readonly<Record<string, string>> = {
  ...Object.fromEntries(TABLE_NAMES.map((table) => [table, ruleOf(table)])),
  blobs: "NOT is_of_others(split_part(name, '/', 1)::bigint, current_user)",
  index_heads: OWNER,
  index_segments: OWNER,
  index_postings: OWNER,
  index_documents: OWNER,
  index_spellings: OWNER,
  index_pending_summaries: OWNER,
  index_gone: OWNER,
};

const POLICIES = Object.entries(RULES).map(
  ([table, rule]) => `CREATE POLICY own_rows ON ${table} USING (${rule});`,
);

export const sql = [PENDING, ROLES, makeFunctions("CREATE", ""), ...POLICIES].join("\n");

/**
 * What a role of an owner may write. Its rows may only point at its own rows: a program without rules (a worker of the role that owns the
 * tables) follows such a link, and would fold, show or index what it finds there. Numbers must come from the sequence: a number that the
 * sequence has not assigned yet would collide with its next user. Shared facts can be read, but no role changes them for others.
 *
 * Invariants: every column that points at a row with an owner is checked, by a policy or, within a table, by a trigger that runs after all rows
 * of the statement are written. The check is whether the role sees the row, never whether another owner has it: an old snapshot does not see
 * that. Every table is in `ACCESS`.
 */
import { TABLE_NAMES } from "@lossless/core/ports";
import type { TableName } from "@lossless/core/ports";
import { NUMBERED, REFERENCES, sequenceOf } from "./0001-archive.ts";
import { makeFunctions, RULES } from "./0003-owners.ts";

export const version = 4;

/** The key of a table that others refer to. */
export const KEYS: Partial<Record<TableName, string>> = {
  sessions: "session_ref",
  conversations: "conversation_id",
  messages: "message_id",
  large_files: "file_id",
  summaries: "summary_id",
  summary_refs: "summary_ref",
};

export interface Link {
  readonly table: string;
  readonly column: string;
  readonly to: TableName;
}

/** Columns that refer to a row without a foreign key. */
const UNREFERENCED: readonly Link[] = [
  { table: "summaries", column: "previous_id", to: "summaries" },
  { table: "fork_items", column: "message_id", to: "messages" },
  { table: "fork_items", column: "first_id", to: "messages" },
  { table: "fork_items", column: "last_id", to: "messages" },
  { table: "fork_items", column: "summary_id", to: "summaries" },
  { table: "spend", column: "conversation_id", to: "conversations" },
  { table: "index_pending_summaries", column: "summary_ref", to: "summary_refs" },
];

/** Every column that refers to a row with an owner. */
export const LINKS: readonly Link[] = [
  ...Object.entries(REFERENCES).flatMap(([table, columns]) =>
    Object.entries(columns).flatMap(([column, target]) => {
      const to = TABLE_NAMES.find((name) => name === target.split(" ")[0]);
      return to === undefined || KEYS[to] === undefined ? [] : [{ table, column, to }];
    }),
  ),
  ...UNREFERENCED,
];

const isSeen = ({ table, column, to }: Link): string =>
  `(${table}.${column} IS NULL OR EXISTS (SELECT 1 FROM ${to} l WHERE l.${KEYS[to]} = ${table}.${column}))`;
const seen = (to: TableName, value: string): string =>
  `EXISTS (SELECT 1 FROM ${to} l WHERE l.${KEYS[to]} = ${value})`;

/** Checks other than links: a blob by its name, a seal and a document by their kind. */
const BY_KIND: Readonly<Record<string, string>> = {
  blobs: seen("conversations", "split_part(blobs.name, '/', 1)::bigint"),
  large_files: "storage_path ~ ('^' || conversation_id || '/[^/]+$')",
  seals: `CASE kind WHEN 'session' THEN ${seen("sessions", "seals.id::bigint")} WHEN 'conversation' THEN ${seen("conversations", "seals.id::bigint")}
    WHEN 'summary' THEN ${seen("summaries", "seals.id")} ELSE ${seen("messages", "seals.id::bigint")} END`,
  index_documents: `CASE kind WHEN 'message' THEN ${seen("messages", "index_documents.id")} ELSE ${seen("summary_refs", "index_documents.id")} END`,
  // Negative values would undo what others spent, and with it the caps.
  spend: "input_tokens >= 0 AND output_tokens >= 0 AND duration_ms >= 0",
  // Marks that something was forgotten, and the server has to clear its pages.
  meta: "key = 'forgetting_open'",
};

function checkOf(table: string): string {
  const links = LINKS.filter((link) => link.table === table && link.to !== table);
  const numbered = NUMBERED[table as TableName];
  return [
    RULES[table],
    ...links.map(isSeen),
    ...(numbered === undefined
      ? []
      : [`${numbered} <= pg_sequence_last_value('${sequenceOf(table as TableName)}')`]),
    ...(BY_KIND[table] === undefined ? [] : [BY_KIND[table]]),
  ]
    .map((condition) => `(${condition})`)
    .join(" AND ");
}

/** Each role has its own rows of these, and so does everybody without such a role: they record what a program's model did. */
const OF_EACH_ROLE = ["guards", "token_calibration"] as const satisfies readonly TableName[];

/** The table with the rows of a declared one; if each role has its own rows, the declared name is a view. */
export const storedIn = (table: TableName): string =>
  OF_EACH_ROLE.some((own) => own === table) ? `${table}_by_role` : table;

const ownPartOf = (table: (typeof OF_EACH_ROLE)[number]): string => {
  const key = { guards: "name", token_calibration: "model" }[table];
  const columns = {
    guards: "name, failures, open_until, reason",
    token_calibration: "model, factor, samples, updated_at",
  }[table];
  return `
DROP POLICY own_rows ON ${table};
ALTER TABLE ${table} DISABLE ROW LEVEL SECURITY;
ALTER TABLE ${table} RENAME TO ${table}_by_role;
ALTER TABLE ${table}_by_role ADD COLUMN role text COLLATE "C" NOT NULL DEFAULT acting_role();
ALTER TABLE ${table}_by_role DROP CONSTRAINT ${table}_pkey;
ALTER TABLE ${table}_by_role ADD CONSTRAINT ${table}_key PRIMARY KEY (${key}, role);
CREATE VIEW ${table} WITH (security_barrier) AS
  SELECT ${columns} FROM ${table}_by_role WHERE role = acting_role() WITH CHECK OPTION;`;
};

/** The role that rules apply to; empty for others. */
const ACTING = `
CREATE FUNCTION acting_role() RETURNS text LANGUAGE sql STABLE
RETURN coalesce((SELECT min(r.role) FROM archive_roles r WHERE r.role = current_user), '');`;

/**
 * A caller that queries on behalf of another role gets the same answer about everything: otherwise it would learn how much belongs to whom, and
 * when it came.
 */
const ASKED = makeFunctions("CREATE OR REPLACE", "NOT pg_has_role(session_user, reader, 'MEMBER') OR ");

/**
 * Links within a table: rows of one statement may refer to each other, so they are checked after it. No name is looked up where a role could
 * create its own object that is found first.
 */
const WITHIN = [
  ...Map.groupBy(
    LINKS.filter(({ table, to }) => table === to),
    ({ table }) => table,
  ),
].map(([table, links]) => {
  const columns = links.map(({ column }) => `new.${column}`);
  return `
CREATE FUNCTION sees_${table}(ids ${table === "summaries" ? "text" : "bigint"}[]) RETURNS boolean LANGUAGE sql STABLE
RETURN NOT EXISTS (SELECT 1 FROM unnest(ids) i (id) WHERE i.id IS NOT NULL AND NOT ${seen(table as TableName, "i.id")});
CREATE FUNCTION check_links_of_${table}() RETURNS trigger LANGUAGE plpgsql AS $check$
DECLARE
  sees boolean;
BEGIN
  EXECUTE pg_catalog.format('SELECT %I.sees_${table}($1)', tg_table_schema) INTO sees USING ARRAY[${columns.join(", ")}];
  IF sees IS NOT TRUE THEN
    RAISE insufficient_privilege USING MESSAGE = 'new row violates row-level security: a link of table "${table}" points at another owner';
  END IF;
  RETURN NULL;
END $check$;
CREATE TRIGGER check_links_of_${table} AFTER INSERT OR UPDATE OF ${links.map(({ column }) => column).join(", ")} ON ${table}
  FOR EACH ROW WHEN ((${columns.map((column) => `${column} IS NOT NULL`).join(" OR ")}) AND row_security_active('${table}'::regclass))
  EXECUTE FUNCTION check_links_of_${table}();`;
});

/** The tables whose rows have rules. */
export const RULED_TABLES = Object.keys(RULES).filter((table) => !OF_EACH_ROLE.some((own) => own === table));

const POLICIES = RULED_TABLES.map(
  (table) => `ALTER POLICY own_rows ON ${table} WITH CHECK (${checkOf(table)});`,
);

export type Access = "SELECT" | "INSERT" | "UPDATE" | "DELETE";

/** What a role may do with the rows that the rules leave it: exactly what the program does when connected as one. */
export const ACCESS: Readonly<Record<string, readonly Access[]>> = {
  ...Object.fromEntries(RULED_TABLES.map((table) => [table, ["SELECT", "INSERT", "UPDATE", "DELETE"]])),
  archive_schema: ["SELECT"],
  archive_roles: ["SELECT"],
  meta: ["SELECT", "INSERT"],
  spend: ["SELECT", "INSERT"],
  vector_spaces: ["SELECT"],
  word_blocks: [],
  ...Object.fromEntries(OF_EACH_ROLE.map((table) => [table, ["SELECT", "INSERT", "UPDATE"]])),
  ...Object.fromEntries(OF_EACH_ROLE.map((table) => [`${table}_by_role`, []])),
};

export const sql = [ACTING, ASKED, ...OF_EACH_ROLE.map(ownPartOf), ...WITHIN, ...POLICIES].join("\n");

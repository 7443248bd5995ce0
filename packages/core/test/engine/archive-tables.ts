/**
 * The rows of an archive that say what a context must show, read past the engine: from a SQLite file, or by whatever runs the same queries
 * elsewhere.
 */
import { DatabaseSync } from "node:sqlite";

export interface MessageRow {
  readonly message_id: number;
  readonly conversation_id: number;
  readonly position: number;
  readonly seq: number;
  readonly hidden_now: number;
  readonly role: string;
  readonly revises: number | null;
  readonly newest: number | null;
}

export interface ItemRow {
  readonly conversation_id: number;
  readonly start_pos: number;
  readonly end_pos: number;
  readonly seq: number;
  readonly message_id: number | null;
  readonly summary_id: string | null;
  readonly depth: number;
  readonly hidden: number;
}

interface LinkRow {
  readonly above: string;
  readonly ordinal: number;
  readonly message_id: number | null;
  readonly summary_id: string | null;
}

interface BoundaryRow {
  readonly conversation_id: number;
  readonly position: number;
  readonly retain_depth: number;
}

export interface ArchiveTables {
  readonly messages: readonly MessageRow[];
  readonly items: readonly ItemRow[];
  readonly links: readonly LinkRow[];
  /** Soft ones that were not undone. */
  readonly boundaries: readonly BoundaryRow[];
  /** Versions of messages that answer a tool call. */
  readonly results: ReadonlySet<number>;
  /** Conversations that show something of the one they were copied from. */
  readonly forks: ReadonlySet<number>;
}

const MESSAGES =
  "SELECT message_id, conversation_id, position, seq, hidden_now, role, revises, newest FROM messages";
const ITEMS =
  "SELECT conversation_id, start_pos, end_pos, seq, message_id, summary_id, depth, hidden FROM context_items";
const MESSAGE_LINKS = "SELECT summary_id AS above, ordinal, message_id FROM summary_messages";
const SUMMARY_LINKS =
  "SELECT summary_id AS above, ordinal, parent_summary_id AS summary_id FROM summary_parents";
const BOUNDARIES =
  "SELECT conversation_id, position, retain_depth FROM boundaries WHERE reason = 'new' AND undone_at IS NULL";
const RESULTS =
  "SELECT DISTINCT message_id FROM message_parts WHERE type = 'tool_result' AND tool_call_id IS NOT NULL";
const FORKS = "SELECT DISTINCT conversation_id FROM fork_items";

const QUERIES = [MESSAGES, ITEMS, MESSAGE_LINKS, SUMMARY_LINKS, BOUNDARIES, RESULTS, FORKS];

type Rows = readonly object[];

export function readTables(path: string): ArchiveTables {
  using database = new DatabaseSync(path, { readOnly: true });
  return gather(QUERIES.map((sql) => database.prepare(sql).all()));
}

/** With whatever runs SQL, one query after the other. */
export async function askForTables(ask: (sql: string) => Promise<Rows>): Promise<ArchiveTables> {
  const answers: Rows[] = [];
  for (const sql of QUERIES) answers.push(await ask(sql));
  return gather(answers);
}

/** In the order of the queries. */
export function gather(answers: readonly Rows[]): ArchiveTables {
  const [messages, items, below, above, boundaries, results, forks] = answers as never as [
    MessageRow[],
    ItemRow[],
    LinkRow[],
    LinkRow[],
    BoundaryRow[],
    { message_id: number }[],
    { conversation_id: number }[],
  ];
  return {
    messages,
    items,
    links: [
      ...below.map((row) => ({ ...row, summary_id: null })),
      ...above.map((row) => ({ ...row, message_id: null })),
    ],
    boundaries,
    results: new Set(results.map(({ message_id: id }) => id)),
    forks: new Set(forks.map(({ conversation_id: id }) => id)),
  };
}

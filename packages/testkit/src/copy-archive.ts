/** Copies the rows of a SQLite archive, including their numbers, into an empty archive on a server, with nothing indexed yet. */
import { DatabaseSync } from "node:sqlite";
import { TABLE_NAMES, tables } from "@lossless/core/ports";
import type { TableName } from "@lossless/core/ports";
import pg from "pg";

const MAX_PARAMETERS = 30_000;
/** Specific to one database, or derived from the rest. */
const LEFT_OUT = ["meta", "index_pending", "vectors_pending", "word_blocks"];
const NUMBERED = {
  sessions: "session_ref",
  conversations: "conversation_id",
  messages: "message_id",
  summary_refs: "summary_ref",
} as const;

/** The server's user must be allowed to disable triggers and foreign keys: rows of one table refer to each other in any order. */
export async function copyArchive(path: string, address: string): Promise<void> {
  const source = new DatabaseSync(path, { readOnly: true });
  const target = new pg.Client(address);
  await target.connect();
  try {
    await target.query("BEGIN; SET LOCAL session_replication_role = replica");
    for (const name of TABLE_NAMES.filter((table) => !LEFT_OUT.includes(table)))
      await copyTable(source, target, name);
    await target.query(`
      INSERT INTO index_pending (owner, message_id)
        SELECT owner, message_id FROM messages JOIN conversations USING (conversation_id) WHERE forgotten_at IS NULL;
      INSERT INTO index_pending_summaries (owner, summary_ref)
        SELECT owner, summary_ref FROM summary_refs JOIN summaries USING (summary_id) JOIN conversations USING (conversation_id)`);
    for (const [table, column] of Object.entries(NUMBERED))
      await target.query(`SELECT setval('${table}_ids', (SELECT coalesce(max(${column}), 1) FROM ${table}))`);
    await target.query("COMMIT; ANALYZE");
  } finally {
    source.close();
    await target.end();
  }
}

async function copyTable(source: DatabaseSync, target: pg.Client, name: TableName): Promise<void> {
  const columns = Object.keys(tables[name].columns);
  const size = Math.floor(MAX_PARAMETERS / columns.length);
  const write = async (rows: readonly Record<string, unknown>[]): Promise<void> => {
    if (rows.length === 0) return;
    const places = rows.map(
      (_, row) => `(${columns.map((_column, i) => `$${row * columns.length + i + 1}`).join(", ")})`,
    );
    const values = rows.flatMap((row) => columns.map((column) => row[column]));
    await target.query(`INSERT INTO ${name} (${columns.join(", ")}) VALUES ${places.join(", ")}`, values);
  };
  let rows: Record<string, unknown>[] = [];
  for (const row of source.prepare(`SELECT ${columns.join(", ")} FROM ${name}`).iterate()) {
    rows.push(row);
    if (rows.length < size) continue;
    await write(rows);
    rows = [];
  }
  await write(rows);
}

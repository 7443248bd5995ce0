/** Copies the rows of an archive in SQLite, numbers and all, into an empty database on a server, with nothing indexed yet. */
import { DatabaseSync } from "node:sqlite";
import { TABLE_NAMES, tables } from "@lossless/core/ports";
import { Connection, migrate, statement } from "../src/testing.ts";

const MAX_PARAMETERS = 30_000;
/** What belongs to one database only, or follows from the rest. */
const LEFT_OUT = ["meta", "index_pending", "vectors_pending", "word_blocks"];
const NUMBERED = {
  sessions: "session_ref",
  conversations: "conversation_id",
  messages: "message_id",
  summary_refs: "summary_ref",
} as const;

export async function copyArchive(path: string, address: string): Promise<Connection> {
  const connection = new Connection({ address, readOnly: false });
  await migrate(connection, { create: true });
  const source = new DatabaseSync(path, { readOnly: true });
  await connection.write(async (sql) => {
    // Rows of one table refer to each other: checked for each, no order would do.
    await sql.get("SET LOCAL session_replication_role = replica");
    for (const name of TABLE_NAMES.filter((table) => !LEFT_OUT.includes(table))) {
      const columns = Object.keys(tables[name].columns);
      const rows = source.prepare(`SELECT ${columns.join(", ")} FROM ${name}`).all();
      const size = Math.floor(MAX_PARAMETERS / columns.length);
      for (let at = 0; at < rows.length; at += size) {
        const chunk = rows.slice(at, at + size);
        const values = chunk.flatMap((row) => columns.map((column) => toSql(row[column])));
        const places = chunk.map(
          (_, row) => `(${columns.map((_column, i) => `$${row * columns.length + i + 1}`).join(", ")})`,
        );
        await sql.change(
          `INSERT INTO ${name} (${columns.join(", ")}) VALUES ${places.join(", ")}`,
          ...values,
        );
      }
    }
    sql.post(
      statement(
        "INSERT INTO index_pending (message_id) SELECT message_id FROM messages WHERE forgotten_at IS NULL",
      ),
      statement("INSERT INTO index_pending_summaries (summary_ref) SELECT summary_ref FROM summary_refs"),
      ...Object.entries(NUMBERED).map(([table, column]) =>
        statement(`SELECT setval('${table}_ids', (SELECT coalesce(max(${column}), 1) FROM ${table}))`),
      ),
    );
  });
  source.close();
  return connection;
}

function toSql(value: unknown): number | string | Uint8Array | null {
  if (typeof value === "bigint") return Number(value);
  if (typeof value === "number" || typeof value === "string" || value instanceof Uint8Array) return value;
  return null;
}

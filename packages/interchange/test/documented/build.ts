/** Databases of the documented schema, one per generation, with the awkward rows that real ones have. */

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";

import { DOCUMENTED_SCHEMA } from "../../src/documented/schema.ts";

export type Generation = "0.1" | "0.15" | "1.0";

const FIRST_SCHEMA = `
CREATE TABLE conversations (conversation_id INTEGER PRIMARY KEY AUTOINCREMENT, session_id TEXT NOT NULL, title TEXT,
  bootstrapped_at TEXT, created_at TEXT NOT NULL, updated_at TEXT NOT NULL);
CREATE TABLE messages (message_id INTEGER PRIMARY KEY AUTOINCREMENT, conversation_id INTEGER NOT NULL, seq INTEGER NOT NULL,
  role TEXT NOT NULL, content TEXT NOT NULL, token_count INTEGER NOT NULL, created_at TEXT NOT NULL, UNIQUE (conversation_id, seq));
CREATE TABLE message_parts (part_id TEXT PRIMARY KEY, message_id INTEGER NOT NULL, session_id TEXT NOT NULL, part_type TEXT NOT NULL,
  ordinal INTEGER NOT NULL, text_content TEXT, tool_call_id TEXT, tool_name TEXT, tool_input TEXT, tool_output TEXT, metadata TEXT);
CREATE TABLE summaries (summary_id TEXT PRIMARY KEY, conversation_id INTEGER NOT NULL, kind TEXT NOT NULL, content TEXT NOT NULL,
  token_count INTEGER NOT NULL, created_at TEXT NOT NULL);
CREATE TABLE summary_messages (summary_id TEXT NOT NULL, message_id INTEGER NOT NULL, ordinal INTEGER NOT NULL, PRIMARY KEY (summary_id, message_id));
CREATE TABLE summary_parents (summary_id TEXT NOT NULL, parent_summary_id TEXT NOT NULL, ordinal INTEGER NOT NULL, PRIMARY KEY (summary_id, parent_summary_id));
CREATE TABLE context_items (conversation_id INTEGER NOT NULL, ordinal INTEGER NOT NULL, item_type TEXT NOT NULL, message_id INTEGER,
  summary_id TEXT, created_at TEXT NOT NULL, PRIMARY KEY (conversation_id, ordinal));
CREATE TABLE large_files (file_id TEXT PRIMARY KEY, conversation_id INTEGER NOT NULL, file_name TEXT, mime_type TEXT, byte_size INTEGER,
  storage_uri TEXT NOT NULL, exploration_summary TEXT, created_at TEXT NOT NULL);
`;

const LATER_TABLES = `
CREATE TABLE turn_advancements (advancement_key TEXT PRIMARY KEY, payload_hash TEXT NOT NULL);
INSERT INTO turn_advancements VALUES ('k1', 'h1'), ('k2', 'h2');
CREATE TABLE conversation_transcript_epochs (conversation_id INTEGER PRIMARY KEY, frontier TEXT);
INSERT INTO conversation_transcript_epochs VALUES (1, 'x');
`;

type Value = string | number | null;

class Builder {
  readonly database: DatabaseSync;

  constructor(path: string) {
    this.database = new DatabaseSync(path);
  }

  /** Leaves out what the generation has no column for. */
  add(table: string, row: Record<string, Value>): void {
    const known = this.database
      .prepare("SELECT name FROM pragma_table_info(?)")
      .all(table)
      .map((column) => String(column["name"]));
    const columns = Object.keys(row).filter((column) => known.includes(column));
    const sql = `INSERT INTO ${table} (${columns.join(", ")}) VALUES (${columns.map(() => "?").join(", ")})`;
    this.database.prepare(sql).run(...columns.map((column) => row[column] ?? null));
  }
}

const SECOND = "2026-03-01 10:00:00";

/** Three conversations: one with everything, an archived segment of the same family, and one that nobody folded. */
export function buildDocumented(folder: string, generation: Generation): string {
  const path = join(folder, `lcm-${generation}.db`);
  const builder = new Builder(path);
  builder.database.exec("PRAGMA journal_mode = WAL");
  builder.database.exec(generation === "0.1" ? FIRST_SCHEMA : DOCUMENTED_SCHEMA);
  if (generation === "1.0") builder.database.exec(LATER_TABLES);
  addConversations(builder);
  addMessages(builder);
  addSummaries(builder, folder);
  builder.database.close();
  return path;
}

function addConversations(builder: Builder): void {
  const key = "agent:main:telegram:42";
  const times = { created_at: SECOND, updated_at: "2026-03-02T00:00:00.000Z" };
  builder.add("conversations", {
    conversation_id: 1,
    session_id: "uuid-1",
    session_key: key,
    active: 0,
    archived_at: SECOND,
    archive_cause: "manual-reset",
    title: "old",
    ...times,
  });
  builder.add("conversations", {
    conversation_id: 2,
    session_id: "uuid-1",
    session_key: key,
    active: 1,
    title: null,
    bootstrapped_at: SECOND,
    ...times,
  });
  builder.add("conversations", {
    conversation_id: 7,
    session_id: "uuid-7",
    session_key: null,
    active: 1,
    ...times,
  });
}

function addMessages(builder: Builder): void {
  let id = 10;
  const say = (
    conversation: number,
    seq: number,
    role: string,
    content: string,
    more: Record<string, Value> = {},
  ): number => {
    // Whole seconds, and the same one for all: the order is the seq.
    builder.add("messages", {
      message_id: id,
      conversation_id: conversation,
      seq,
      role,
      content,
      token_count: content.length,
      identity_hash: `h${id}`,
      created_at: SECOND,
      ...more,
    });
    return id++;
  };
  for (let seq = 1; seq <= 6; seq += 1) say(1, seq, seq % 2 === 1 ? "user" : "assistant", `archived ${seq}`);
  for (let seq = 1; seq <= 12; seq += 1) {
    const message = say(2, seq, seq % 2 === 1 ? "user" : "assistant", `live ${seq} größer`, {
      transcript_entry_id: seq < 5 ? `entry-${seq}` : null,
    });
    const raw = { type: "text", text: `live ${seq} größer` };
    if (seq % 3 !== 0)
      part(builder, message, 0, {
        part_type: "text",
        text_content: raw.text,
        metadata: JSON.stringify({ originalRole: "user", raw }),
      });
  }
  const call = say(2, 13, "assistant", "");
  part(builder, call, 0, { part_type: "reasoning", text_content: "I should look" });
  part(builder, call, 1, {
    part_type: "tool",
    tool_call_id: "call_1",
    tool_name: "read",
    tool_input: '{"path":"a.txt"}',
  });
  const result = say(2, 14, "tool", "");
  // A tool result that was stored as a text part.
  part(builder, result, 0, {
    part_type: "text",
    text_content: "the file says yes",
    metadata: JSON.stringify({
      originalRole: "toolResult",
      toolCallId: "call_1",
      toolName: "read",
      isError: false,
    }),
  });
  say(2, 17, "system", "a gap before this one, and broken metadata");
  part(builder, id - 1, 0, { part_type: "text", text_content: "words", metadata: "{not json" });
  say(7, 1, "user", "alone, without parts");
}

function part(builder: Builder, message: number, ordinal: number, row: Record<string, Value>): void {
  builder.add("message_parts", {
    part_id: `part-${message}-${ordinal}`,
    message_id: message,
    session_id: "uuid-1",
    ordinal,
    ...row,
  });
}

function addSummaries(builder: Builder, folder: string): void {
  const summary = (
    id: string,
    conversation: number,
    kind: string,
    depth: number,
    messages: number[],
    sources: string[],
  ): void => {
    builder.add("summaries", {
      summary_id: id,
      conversation_id: conversation,
      kind,
      depth,
      content: `summary ${id} of things`,
      token_count: 11,
      earliest_at: "2026-03-01T10:00:00.000Z",
      latest_at: null,
      file_ids: '["file_00000000000000aa"]',
      model: "some/model",
      created_at: "2026-03-01T11:00:00.000Z",
    });
    messages.forEach((message, ordinal) =>
      builder.add("summary_messages", { summary_id: id, message_id: message, ordinal }),
    );
    sources.forEach((source, ordinal) =>
      builder.add("summary_parents", { summary_id: id, parent_summary_id: source, ordinal }),
    );
  };
  summary("sum_0000000000000001", 2, "leaf", 0, [16, 17, 18], []);
  summary("sum_0000000000000002", 2, "leaf", 0, [19, 20], []);
  summary("sum_0000000000000003", 2, "condensed", 1, [], ["sum_0000000000000001", "sum_0000000000000002"]);
  summary("sum_0000000000000004", 2, "leaf", 0, [21, 22, 23], []);
  // Of the same messages as another one, no longer shown.
  summary("sum_0000000000000005", 2, "leaf", 0, [18, 19], []);
  // With a gap, and shown.
  summary("sum_0000000000000006", 2, "leaf", 0, [24, 26], []);
  // Made from messages that are gone.
  summary("sum_0000000000000007", 2, "leaf", 0, [], []);
  summary("sum_0000000000000008", 1, "leaf", 0, [10, 11, 12, 13], []);
  const item = (conversation: number, ordinal: number, message: number | null, id: string | null): void =>
    builder.add("context_items", {
      conversation_id: conversation,
      ordinal,
      item_type: message === null ? "summary" : "message",
      message_id: message,
      summary_id: id,
      created_at: SECOND,
    });
  item(2, 0, null, "sum_0000000000000003");
  item(2, 1, null, "sum_0000000000000004");
  item(2, 2, null, "sum_0000000000000006");
  [25, 27, 28, 29, 30].forEach((message, index) => item(2, 3 + index, message, null));
  item(1, 0, null, "sum_0000000000000008");
  [14, 15].forEach((message, index) => item(1, 1 + index, message, null));
  item(7, 0, 31, null);
  writeFileSync(join(folder, "big.txt"), "a line of the big file\n".repeat(50));
  const file = (id: string, uri: string): void =>
    builder.add("large_files", {
      file_id: id,
      conversation_id: 2,
      file_name: "big.txt",
      mime_type: "text/plain",
      byte_size: 1150,
      storage_uri: uri,
      exploration_summary: "a text",
      created_at: SECOND,
    });
  file("file_00000000000000aa", join(folder, "big.txt"));
  file("file_00000000000000bb", join(folder, "gone.txt"));
}

/** All rows of the imported tables, with the columns that the first database has. */
export function dumpTables(path: string, columnsOf: string): Record<string, unknown[]> {
  const [database, model] = [
    new DatabaseSync(path, { readOnly: true }),
    new DatabaseSync(columnsOf, { readOnly: true }),
  ];
  const tables = [
    "conversations",
    "messages",
    "message_parts",
    "summaries",
    "summary_messages",
    "summary_parents",
    "context_items",
    "large_files",
  ];
  const dump = Object.fromEntries(
    tables.map((table) => {
      const columns = model
        .prepare("SELECT name FROM pragma_table_info(?)")
        .all(table)
        .map((column) => String(column["name"]));
      return [table, database.prepare(`SELECT ${columns.join(", ")} FROM ${table} ORDER BY 1, 2`).all()];
    }),
  );
  database.close();
  model.close();
  return dump;
}

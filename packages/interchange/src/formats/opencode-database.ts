/**
 * The database of OpenCode (`opencode.db`, since version 1.18): one row per session, message and part, with the content as JSON in `data`. A
 * message and its parts become one event, as in the storage folder of older versions: the text of `data` unchanged, then the ids that are
 * columns here, then the parts. The database is only read, from one snapshot, while OpenCode may be writing.
 *
 * Invariant: a message that is still being written is left to the next run, so that a growing answer is stored once and not as a series of
 * revisions. An unfinished message is stored once it has not changed for a while.
 */
import { isObject, type JsonObject } from "@lossless/core/formats";
import { ForeignDatabase, isSqliteFile } from "../documented/foreign-database.ts";
import type { SourceEvent } from "../transcript/session-writer.ts";
import { parseLine, readText, type ToldOrigin } from "./format.ts";
import { composeMessage } from "./opencode.ts";

/** After this time without a change, an answer that was never completed counts as cut off. */
const RESTED_MS = 60_000;

export interface DatabaseSession {
  readonly id: string;
  readonly folder: string | null;
  /** Changes with every change of the session. */
  readonly updatedAt: number;
  /** A message is still being written. */
  isOpen: boolean;
}

const TABLES =
  "SELECT count(*) AS n FROM sqlite_schema WHERE type = 'table' AND name IN ('session', 'message', 'part')";
/** Writing a part does not change the row of its message. */
const SESSIONS = `
  SELECT s.id, s.directory, max(s.time_updated, coalesce((SELECT max(time_updated) FROM message m WHERE m.session_id = s.id), 0),
                   coalesce((SELECT max(time_updated) FROM part p WHERE p.session_id = s.id), 0)) AS updated_at
  FROM session s ORDER BY s.time_created, s.id`;
const SESSION = "SELECT * FROM session WHERE id = ?";
const MESSAGES =
  "SELECT id, time_created, time_updated, data FROM message WHERE session_id = ? ORDER BY time_created, id";
const PARTS = "SELECT id, time_updated, data FROM part WHERE message_id = ? ORDER BY id";

type Row = Readonly<Record<string, unknown>>;

export function isOpenCodeDatabase(path: string): boolean {
  if (!isSqliteFile(path)) return false;
  const database = new ForeignDatabase(path);
  try {
    return Number(database.get(TABLES)?.["n"]) === 3 && hasColumn(database, "message", "data");
  } finally {
    database.close();
  }
}

const hasColumn = (database: ForeignDatabase, table: string, column: string): boolean =>
  database.get("SELECT 1 FROM pragma_table_info(?) WHERE name = ?", table, column) !== undefined;

/** A snapshot of the database. */
export class OpenCodeDatabase {
  readonly #database: ForeignDatabase;
  readonly #now: number;

  constructor(path: string, now: number) {
    this.#database = new ForeignDatabase(path);
    this.#now = now;
    this.#database.begin();
  }

  close(): void {
    this.#database.close();
  }

  listSessions(): DatabaseSession[] {
    return this.#database.all(SESSIONS).map((row) => ({
      id: textIn(row, "id"),
      folder: textIn(row, "directory") || null,
      updatedAt: numberIn(row, "updated_at"),
      isOpen: false,
    }));
  }

  /** The row of the session, hidden, then its messages in order, up to the first that is still being written. */
  *readEvents(session: DatabaseSession): Generator<SourceEvent> {
    const [row = {}] = this.#database.all(SESSION, session.id);
    const bytes = Buffer.from(JSON.stringify(dropChanging(row)));
    yield { id: `session:${session.id}`, bytes, hidden: ["meta"], entry: row as JsonObject };
    for (const message of this.#database.all(MESSAGES, session.id)) {
      const parts = this.#database.all(PARTS, textIn(message, "id"));
      session.isOpen = this.#isOpen(message, parts);
      if (session.isOpen) return;
      yield toEvent(session.id, message, parts);
    }
  }

  #isOpen(message: Row, parts: readonly Row[]): boolean {
    const parsed = parseLine(Buffer.from(textIn(message, "data")));
    if (parsed.kind !== "entry") return false;
    const { role, time } = parsed.entry;
    // A prompt is written before its parts; an answer is marked when it is complete.
    const isComplete =
      role === "assistant" ? isObject(time) && typeof time["completed"] === "number" : parts.length > 0;
    const changed = [message, ...parts].map((row) => numberIn(row, "time_updated"));
    return !isComplete && this.#now - Math.max(...changed) < RESTED_MS;
  }
}

function toEvent(sessionId: string, message: Row, parts: readonly Row[]): SourceEvent {
  const id = textIn(message, "id");
  const head = addMembers(textIn(message, "data"), { id, sessionID: sessionId });
  const bodies = parts.map((part) => addMembers(textIn(part, "data"), { id: textIn(part, "id") }));
  const parsed = parseLine(Buffer.from(textIn(message, "data")));
  return {
    id,
    bytes: composeMessage(head, bodies),
    createdAt: numberIn(message, "time_created"),
    hidden: [],
    entry: parsed.kind === "entry" ? parsed.entry : undefined,
  };
}

/** Puts the columns before the members of `data`, so that those take precedence and keep their bytes. */
function addMembers(data: string, members: Readonly<Record<string, string>>): Buffer {
  const start = data.indexOf("{") + 1;
  const isEmpty = data.slice(start).trimStart().startsWith("}");
  const added = JSON.stringify(members).slice(1, -1);
  return Buffer.from(`${data.slice(0, start)}${added}${isEmpty ? "" : ","}${data.slice(start)}`);
}

/** Columns that repeat what the messages say, and would make every turn a new version of the row. */
const CHANGING = /^(?:time_updated|cost|tokens_.*|summary_.*)$/u;

const dropChanging = (row: Row): Row =>
  Object.fromEntries(Object.entries(row).filter(([column]) => !CHANGING.test(column)));

/** Reads the row of a session, or a message. */
export function readOpenCodeOrigin(entry: JsonObject): ToldOrigin {
  const model = typeof entry["model"] === "string" ? parseLine(Buffer.from(entry["model"])) : null;
  return {
    folder: readText(entry["directory"]),
    title: readText(entry["title"]),
    model: readText(model?.kind === "entry" ? model.entry["id"] : entry["modelID"]),
  };
}

const textIn = (row: Row, column: string): string => {
  const value = row[column];
  return typeof value === "string" ? value : "";
};
const numberIn = (row: Row, column: string): number => Number(row[column] ?? 0);

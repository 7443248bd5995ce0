/**
 * Archives as earlier versions of the program left them, beside the messages that were stored in them. Each was written by a program of its
 * version (`scripts/write-archive.ts`), so that nothing about it is artificial.
 */
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { gunzipSync } from "node:zlib";
import type { Engine } from "@lossless/core";

const FOLDER = join(import.meta.dirname, "../archives");

/** Schema versions for which there is an archive with `readArchiveMessages` in it. */
export function listArchiveVersions(): number[] {
  return readdirSync(FOLDER)
    .flatMap((name) => /^schema-(\d+)\.db\.gz$/.exec(name)?.[1] ?? [])
    .map(Number)
    .toSorted((a, b) => a - b);
}

export function writeOlderArchive(version: number, path: string): void {
  unpack(`schema-${version}.db.gz`, path);
}

interface ArchiveBatch {
  readonly session: { readonly key: string; readonly id: string; readonly owner: string };
  readonly messages: readonly {
    readonly eventId: string;
    readonly message: Readonly<Record<string, unknown>>;
    readonly createdAt: number;
  }[];
}

/** The content of every one of them, in the order of storing: two sessions, then a revision of a message of the second. */
export function readArchiveMessages(): ArchiveBatch[] {
  const stored = JSON.parse(readFileSync(join(FOLDER, "messages.json"), "utf8")) as {
    session: string;
    eventId: string;
    message: Record<string, unknown>;
    createdAt: number;
    revises?: true;
  }[];
  return [...Map.groupBy(stored, ({ session, revises }) => `${session} ${revises}`).values()].map((batch) => {
    const id = batch[0]?.session ?? "";
    const messages = batch.map(({ eventId, message, createdAt }) => ({ eventId, message, createdAt }));
    return { session: { key: `agent:main:${id}`, id, owner: "main" }, messages };
  });
}

function unpack(name: string, path: string): void {
  writeFileSync(path, gunzipSync(readFileSync(join(FOLDER, name))), { mode: 0o600 });
}

/** The lines of a session of Claude Code, with books of its requests between them. */
export const readClaudeCodeLines = (): string[] =>
  readFileSync(join(FOLDER, "claude-code.jsonl"), "utf8").trimEnd().split("\n");

/** What each search mode finds in these lines, if they are the only messages, and what it should: no copies, and a prompt that waited. */
export async function searchClaudeCodeLines(engine: Engine): Promise<Record<string, string[]>> {
  const found: Record<string, string[]> = {};
  for (const mode of ["full_text", "regex"] as const)
    for (const pattern of ["Kestrel", "tide", "zeppelin", "pilot"]) {
      const { hits } = await engine.grep({ pattern, mode, scope: "messages", includeRecall: true });
      found[`${mode} ${pattern}`] = hits.map(({ id }) => id).toSorted();
    }
  return found;
}

export const CLAUDE_CODE_FOUND: Readonly<Record<string, string[]>> = {
  "full_text Kestrel": ["msg_2", "msg_7"],
  "full_text tide": ["msg_2"],
  "full_text zeppelin": [],
  "full_text pilot": ["msg_1"],
  "regex Kestrel": ["msg_2", "msg_7"],
  "regex tide": ["msg_2"],
  "regex zeppelin": [],
  "regex pilot": ["msg_1"],
};

/** Schema 21 with these lines imported: at that time the books were indexed. */
export function writeClaudeCodeArchive(path: string): void {
  unpack("schema-21-claude-code.db.gz", path);
}

/**
 * Schema 16, killed twice while it imported. 43 messages in two sessions, of which 37 wait for the index and, but for one revision, for their
 * row in `event_ids`; one vector space with vectors of the first three messages.
 */
export function writeInterruptedArchive(path: string): void {
  unpack("schema-16-interrupted-import.db.gz", path);
}

/** The same with this many further messages without a row in `event_ids`: only their own rows, so `verify` would fail. */
export function writeLongInterruptedArchive(path: string, messages: number): void {
  writeInterruptedArchive(path);
  const database = new DatabaseSync(path);
  database.exec(`
    WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < ${messages})
    INSERT INTO messages (conversation_id, seq, position, session_ref, event_id, role, tokens, created_at, hidden, hidden_now,
                          arrival_bytes, encoding, body, salt, commitment, chain)
    SELECT conversation_id, 1000 + n, 1000 + n, session_ref, 'many ' || n, role, tokens, created_at, hidden, hidden_now,
           arrival_bytes, encoding, body, salt, commitment, chain
    FROM numbers, messages WHERE message_id = 1`);
  database.close();
}

/** SQL that reverts each migration, newest first, where no row of its own is needed to look like an earlier archive. */
const TAKE_BACK: Readonly<Record<number, string>> = {
  24: "DROP INDEX message_times;",
  23: "DROP INDEX message_places;",
  22: "DROP INDEX undated_messages; ALTER TABLE messages DROP COLUMN dated; ALTER TABLE conversations DROP COLUMN unlisted_at; ALTER TABLE conversations DROP COLUMN pinned_at; ALTER TABLE conversations DROP COLUMN tags; ALTER TABLE conversations DROP COLUMN name;",
  21: "ALTER TABLE conversations DROP COLUMN model; ALTER TABLE conversations DROP COLUMN title; ALTER TABLE conversations DROP COLUMN branch; ALTER TABLE conversations DROP COLUMN project; ALTER TABLE conversations DROP COLUMN agent;",
  20: "DROP TRIGGER embed_new_message; DROP TRIGGER embed_shown_message; DROP TABLE vectors_pending;",
  19: `DROP TRIGGER index_new_message; DROP TABLE index_pending;
       INSERT INTO meta (key, value) SELECT 'index_until', max(message_id) FROM messages;`,
  18: "DROP TABLE imports;",
  17: `CREATE TABLE event_ids_behind (
         session_ref INTEGER PRIMARY KEY REFERENCES sessions (session_ref), until INTEGER NOT NULL) STRICT;`,
  16: "DROP TABLE seals; DROP TRIGGER refuse_older_programs;",
};

/** SQL that makes an archive look like one of an older schema. */
export function renderTakeBack(version: number): string {
  const newest = Object.keys(TAKE_BACK)
    .map(Number)
    .toSorted((a, b) => b - a);
  const undone = newest.filter((migration) => migration > version).map((migration) => TAKE_BACK[migration]);
  return [...undone, `PRAGMA user_version = ${version};`].join("\n");
}

/** Editing any stored byte by hand must make `verify` fail, and name the message where there is one. */
import { openEngine } from "lossless-claw";
import type { VerifyResult } from "@lossless/core";
import { buildOnce, makeTemporaryFolder } from "@lossless/testkit";
import { isSoak } from "@lossless/testkit/rounds.ts";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { describe, expect, test } from "vitest";
import { allowWrites } from "../src/seals.ts";

const session = { key: "agent:main:test", id: "session-1", owner: "main" };

/** A small archive with every kind of row: parts, a revision, a large file, hidden rows, labels, a boundary. */
async function buildArchive(folder: string): Promise<void> {
  const database = join(folder, "lcm.db");
  const engine = await openEngine({ database, thread: false });
  const call = { type: "toolCall", id: "call_1", name: "exec", arguments: { command: "ls -la" } };
  const messages = [
    { eventId: "u1", message: { role: "user", content: "please list the files of the greenhouse project" } },
    { eventId: "a1", message: { role: "assistant", content: [{ type: "text", text: "Looking." }, call] } },
    {
      eventId: "t1",
      message: {
        role: "toolResult",
        toolCallId: "call_1",
        toolName: "exec",
        content: [{ type: "text", text: "a.ts\nb.ts" }],
      },
    },
    {
      eventId: "p1",
      eventIdKind: "provisional" as const,
      message: { role: "assistant", content: "Two files." },
    },
    { eventId: "h1", message: { role: "user", content: "a heartbeat" }, hidden: ["heartbeat" as const] },
    {
      eventId: "big",
      message: { role: "user", content: `see ${"lorem ipsum dolor sit amet ".repeat(8_000)} end` },
    },
  ];
  await engine.ingest({ session, messages, turn: { advancementKey: "k1" } });
  await engine.ingest({
    session,
    messages: [{ eventId: "u1", message: { role: "user", content: "list them, please" } }],
  });
  await engine.relabel({ session, labels: [{ from: "p1", to: "entry-4" }] });
  await engine.setBranch({ session, offBranch: ["t1"] });
  await engine.recordBoundary({ session, eventId: "reset-1", reason: "new" });
  await engine.close();
}

/** Built once; each test has a copy. */
const copyArchive = buildOnce(buildArchive);

async function verifyArchive(database: string): Promise<VerifyResult> {
  const engine = await openEngine({ database, thread: false, create: false });
  try {
    return await engine.verify();
  } finally {
    await engine.close();
  }
}

async function verifyAfter(edit: (database: DatabaseSync) => void): Promise<VerifyResult> {
  using folder = makeTemporaryFolder();
  const path = copyArchive(folder.path);
  const database = new DatabaseSync(path);
  database.exec("PRAGMA foreign_keys = OFF");
  edit(database);
  database.close();
  return await verifyArchive(path);
}

/** Another value of the same kind. */
function change(value: unknown): string | number | Uint8Array {
  if (typeof value === "number") return value + 1;
  if (typeof value === "string") return `${value}x`;
  if (value instanceof Uint8Array) {
    const copy = Uint8Array.from(value);
    copy[copy.length >> 1] = (copy[copy.length >> 1] ?? 0) ^ 1;
    return copy;
  }
  return 1;
}

/** The middle one, for `verify-columns` edits the first and the last row of every table; in a soak all three, enough to meet every kind of row. */
const pickRows = <T>(rows: readonly T[]): T[] => {
  const middle = rows[rows.length >> 1];
  return [...new Set(isSoak ? [rows[0], middle, rows.at(-1)] : [middle])].filter((row) => row !== undefined);
};

const WATCHED: Record<string, string[]> = {
  messages: [
    "seq",
    "position",
    "session_ref",
    "event_id",
    "revises",
    "newest",
    "role",
    "tokens",
    "created_at",
    "hidden",
    "hidden_now",
    "arrival_bytes",
    "encoding",
    "body",
    "salt",
    "commitment",
    "chain",
    "forgotten_at",
    "conversation_id",
  ],
  message_parts: ["ordinal", "type", "at", "length", "tool_call_id", "tool_name", "file_id", "encoding"],
  event_ids: ["event_id", "message_id", "session_ref"],
  context_items: ["start_pos", "seq", "end_pos", "message_id", "tokens", "messages", "depth", "hidden"],
  ledger: ["seq", "kind", "body", "at", "chain"],
  large_files: ["file_id", "conversation_id", "byte_size", "sha256", "storage_path", "exploration_summary"],
  boundaries: ["position", "reason", "retain_depth", "shown_before", "event_id"],
  sessions: ["session_id"],
  conversations: [
    "owner",
    "session_key",
    "created_at",
    "head_seq",
    "head_chain",
    "message_count",
    "shown_messages",
    "shown_tokens",
    "arrival_bytes",
    "last_position",
    "first_at",
    "last_at",
  ],
};

describe("verify", () => {
  test("finds nothing wrong in an archive nobody touched", async () => {
    const report = await verifyAfter(() => undefined);
    expect(report).toMatchObject({
      ok: true,
      conversations: 1,
      messages: 7,
      summaries: 0,
      files: 1,
      problems: [],
    });
  });

  for (const [table, columns] of Object.entries(WATCHED)) {
    test(`notices an edit of any column of ${table}`, async () => {
      using folder = makeTemporaryFolder();
      const path = copyArchive(folder.path);
      const original = readFileSync(path);
      const unnoticed: string[] = [];
      const reading = new DatabaseSync(path, { readOnly: true });
      const rows = reading.prepare(`SELECT * FROM ${table}`).all();
      const primary = (reading.prepare(`PRAGMA table_info(${table})`).all() as { name: string; pk: number }[])
        .filter((column) => column.pk > 0)
        .map((column) => column.name);
      reading.close();
      for (const row of pickRows(rows)) {
        for (const column of columns) {
          writeFileSync(path, original);
          const database = new DatabaseSync(path);
          allowWrites(database);
          database.exec("PRAGMA foreign_keys = OFF; PRAGMA ignore_check_constraints = ON");
          const where = primary.map((name) => `${name} = ?`).join(" AND ");
          const values = primary.map((name) => row[name] as number | string);
          let edited = true;
          try {
            database
              .prepare(`UPDATE ${table} SET ${column} = ? WHERE ${where}`)
              .run(change(row[column]), ...values);
          } catch (error) {
            // A constraint of the schema already forbids this edit.
            if (!(error instanceof Error) || !/constraint/i.test(error.message)) throw error;
            edited = false;
          }
          database.close();
          if (edited && (await verifyArchive(path)).ok) unnoticed.push(`${column} of ${values.join("/")}`);
        }
      }
      expect(unnoticed).toEqual([]);
    });
  }

  test("names the message whose body was edited", async () => {
    const report = await verifyAfter((database) => {
      const row = database.prepare("SELECT body FROM messages WHERE message_id = 2").get() as {
        body: Uint8Array;
      };
      database
        .prepare("UPDATE messages SET body = ? WHERE message_id = 2")
        .run(change(row.body) as Uint8Array);
    });
    expect(report.ok).toBe(false);
    expect(report.problems.map((problem) => problem.id)).toContain("msg_2");
  });

  test.each([
    ["a message in the middle", "DELETE FROM messages WHERE message_id = 3"],
    [
      "the newest message with its traces",
      "DELETE FROM context_items WHERE message_id = 6; DELETE FROM message_parts WHERE message_id = 6; DELETE FROM event_ids WHERE message_id = 6; DELETE FROM messages WHERE message_id = 6",
    ],
    ["a ledger record", "DELETE FROM ledger WHERE kind = 'hide'"],
    ["an item of the context", "DELETE FROM context_items WHERE message_id = 1"],
    ["an event id", "DELETE FROM event_ids WHERE event_id = 'u1'"],
    ["a part", "DELETE FROM message_parts WHERE message_id = 2 AND ordinal = 1"],
    ["a boundary", "DELETE FROM boundaries"],
  ])("notices that %s was removed", async (_what, sql) => {
    expect((await verifyAfter((database) => database.exec(sql))).ok).toBe(false);
  });

  test("knows a boundary by its id as the database keeps it", async () => {
    using folder = makeTemporaryFolder();
    const database = copyArchive(folder.path);
    const engine = await openEngine({ database, thread: false });
    await engine.recordBoundary({ session, eventId: "half a character: \ud83d", reason: "new" });
    await engine.close();
    expect((await verifyArchive(database)).problems).toEqual([]);
  });

  test("notices a large file that was altered, removed, or replaced by a link", async () => {
    for (const harm of ["alter", "remove", "link"] as const) {
      using folder = makeTemporaryFolder();
      const path = copyArchive(folder.path);
      const files = folder.file("lcm-files/1");
      const file = join(files, readdirSync(files)[0] ?? "");
      const { rmSync, symlinkSync } = await import("node:fs");
      if (harm === "alter") writeFileSync(file, readFileSync(file, "utf8").replace("dolor", "Dolor"));
      else rmSync(file);
      if (harm === "link") {
        writeFileSync(folder.file("elsewhere.txt"), "lorem");
        symlinkSync(folder.file("elsewhere.txt"), file);
      }
      expect(
        (await verifyArchive(path)).problems.map((problem) => problem.code),
        harm,
      ).toContain({ alter: "file_altered", remove: "file_missing", link: "file" }[harm]);
    }
  });
});

test("notices an edit that another program made while this one goes on storing", async () => {
  using folder = makeTemporaryFolder();
  const path = copyArchive(folder.path);
  const engine = await openEngine({ database: path, thread: false });
  const store = (sessionId: string, eventId: string) =>
    engine.ingest({
      session: { ...session, key: `agent:main:${sessionId}`, id: sessionId },
      messages: [{ eventId, message: { role: "user", content: eventId } }],
    });
  try {
    await store("session-2", "one");
    const other = new DatabaseSync(path);
    allowWrites(other);
    other.exec("UPDATE conversations SET project = '/srv/elsewhere' WHERE session_id = 'session-2'");
    other.close();
    await store("session-3", "two");
    const { problems } = await engine.verify();
    expect(problems.map(({ message }) => message)).toEqual([expect.stringContaining("conversation 2")]);
  } finally {
    await engine.close();
  }
});

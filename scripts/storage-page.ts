/**
 * Renders docs/storage.md: the content of a database, table by table. Columns and their meaning come from the commented DDL of the migrations,
 * so that the page matches what the program creates; a table without a description here is an error.
 */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { UNPROVEN } from "@lossless/core/testing";

interface Column {
  readonly name: string;
  readonly type: string;
  readonly rules: readonly string[];
  readonly meaning: string;
}

interface Table {
  readonly name: string;
  readonly columns: Column[];
  readonly rules: string[];
  /** By name. */
  readonly indexes: Map<string, string>;
}

/** In the order a reader needs them. */
const GROUPS: readonly { title: string; about: string; tables: Readonly<Record<string, string>> }[] = [
  {
    title: "What was said",
    about:
      "The archive itself. Stored messages are never rewritten; only marks and counters beside them change.",
    tables: {
      conversations:
        "One row per conversation: whose it is, where its hash chain ends, and counters that `lcm verify` recounts.",
      messages:
        "One row per stored event, with the original in `body`. When an event changes later, a second row is stored: a revision.",
      message_parts:
        "Where each block of a message is in its bytes, and which bytes were cut out into files. The text itself is only in `body`.",
      large_files: "One row per payload that is stored in a file, with a description of its content.",
      ledger: "What happened to a conversation besides messages, as links of the same hash chain.",
      seals:
        "Hashes of rows that neither the chain nor a derivation proves: owners of sessions, placements, boundaries, archiving, spans and sources of summaries, the vault.",
      redactions: "One row per message that was redacted under a key: the keyed hash of what arrived.",
      sealed_values:
        "The vault: values that were redacted from messages, encrypted. The key is not in the archive.",
    },
  },
  {
    title: "Which event is which",
    about: "An event is identified by its id. Texts are never compared.",
    tables: {
      sessions: "One row per session of a host and owner. It says how far the transcript was read.",
      event_ids: "Every id of an event. Unique within a session, whichever conversation the message is in.",
      placements:
        "Which conversation a session's events belong to, by position: a reset starts the next one.",
      turns:
        "Turns that a host has committed. If the key of a turn is here, the commit is a repeat and stores nothing.",
      boundaries: "Where `/new` and `/reset` ended a part of a conversation.",
    },
  },
  {
    title: "What a model would see",
    about: "The cover, and the graph of summaries under it.",
    tables: {
      context_items:
        "The cover: items in order of position that together stand for every message exactly once. Counts and depths are stored here, so that choosing a context reads no bodies.",
      summaries: "One row per summary, in the cover or in reserve.",
      fork_items:
        "What a fork shows of its parent, chosen once. Only references: the texts belong to the parent.",
      summary_messages: "The messages a leaf summary was made from, in order.",
      summary_parents:
        "The summaries a condensed summary was made from, in order. The table's name calls these sources parents.",
    },
  },
  {
    title: "Bookkeeping",
    about: "State of the index, models and background work. None of it is needed to read a message.",
    tables: {
      index_pending:
        "Messages that are stored but not yet in the full-text index. A row is written with its message and removed when the message is indexed.",
      summary_refs: "Which row of the full-text index belongs to which summary.",
      word_blocks:
        "The distinct words of 512 messages, as their texts spell them. With these a regular expression with a literal reads only messages that can match.",
      meta: "Facts about the whole archive: which generation of the index is in use, whether it can be trusted, and the highest ids that were removed.",
      imports: "How many messages of which conversation each import stored, so that it can be removed again.",
      token_calibration: "How far the token estimate for a model is off, learned from what hosts report.",
      expansion_grants: "What a sub-agent may open.",
      vector_spaces:
        "One row per model that made vectors for search by meaning. Empty unless the settings name a model.",
      message_vectors:
        "One vector for each message and space. Only shown messages have one, in their newest revision.",
      vectors_pending:
        "Messages that may need a vector and were not yet looked at. A row is written with its message and removed when the message was looked at.",
      compaction_debt: "Folding that is owed, and the process that is doing it.",
      spend: "The ledger of model calls.",
      guards: "Circuit breakers and spend caps that survive a restart.",
      cache_usage: "What hosts reported about their provider's prompt cache.",
    },
  },
];

export function renderStorage(note: string, migrationsDir: string): string {
  const tables = readTables(migrationsDir);
  const described = new Set(GROUPS.flatMap((group) => Object.keys(group.tables)));
  const forgotten = [...tables.keys()].filter((name) => !described.has(name));
  if (forgotten.length > 0)
    throw new Error(
      `cannot render docs/storage.md: describe ${forgotten.join(", ")} in scripts/storage-page.ts`,
    );
  const sections = GROUPS.map(({ title, about, tables: names }) =>
    [
      `## ${title}`,
      about,
      ...Object.entries(names).map(([name, says]) => renderTableSection(tables.get(name), name, says)),
    ].join("\n\n"),
  );
  return `${note}\n\n${INTRO}\n\n${sections.join("\n\n")}\n\n${FILES}\n\n${renderUnproven()}\n`;
}

function renderUnproven(): string {
  const rows = Object.entries(UNPROVEN).flatMap(([table, columns]) =>
    Object.entries(columns).map(([column, why]) => {
      const name = column === "*" ? table : `${table}.${column}`;
      return `| \`${name}\` | ${escapeCell(why)} |`;
    }),
  );
  return [
    "## What verify does not prove",
    "`lcm verify` notices an edit of every column of every table, except these. An edit of these cannot lose or change a message, or change what it belongs to.",
    ["| Table or column | Why |", "|---|---|", ...rows].join("\n"),
  ].join("\n\n");
}

function renderTableSection(table: Table | undefined, name: string, says: string): string {
  if (!table) throw new Error(`cannot render docs/storage.md: no migration creates ${name}`);
  const rows = table.columns.map((column) => {
    const meaning = [column.meaning, ...column.rules].filter((text) => text !== "").join("; ");
    return `| \`${column.name}\` | ${column.type} | ${escapeCell(meaning) || "–"} |`;
  });
  const more = [...table.rules, ...table.indexes.values()].map((text) => `- ${text}`);
  return [
    `### \`${name}\``,
    says,
    ["| Column | Type | Meaning |", "|---|---|---|", ...rows].join("\n"),
    ...(more.length > 0 ? [more.join("\n")] : []),
  ].join("\n\n");
}

const escapeCell = (text: string): string => text.replaceAll("|", String.raw`\|`).replaceAll("<", "&lt;");

function readTables(migrationsDir: string): Map<string, Table> {
  const tables = new Map<string, Table>();
  const files = readdirSync(migrationsDir)
    .filter((name) => name.endsWith(".ts"))
    .sort();
  for (const file of files) {
    const sql = /export const sql = `([\s\S]*?)`/.exec(readFileSync(join(migrationsDir, file), "utf8"))?.[1];
    if (sql === undefined) throw new Error(`cannot read ${file}: it exports no sql`);
    for (const [, name = "", body = ""] of sql.matchAll(/^CREATE TABLE (\w+) \(\n([\s\S]*?)\n\)/gm)) {
      tables.set(name, parseTable(name, body));
    }
    for (const [, name = "", line = ""] of sql.matchAll(/^ALTER TABLE (\w+) ADD COLUMN (.*)$/gm)) {
      tables.get(name)?.columns.push(parseColumn(line.replace(/;/, "")));
    }
    for (const [, name = ""] of sql.matchAll(/^DROP TABLE (\w+);/gm)) tables.delete(name);
    for (const [, index = ""] of sql.matchAll(/^DROP INDEX (\w+);/gm)) {
      for (const table of tables.values()) table.indexes.delete(index);
    }
    for (const [, unique, index = "", name = "", what = ""] of sql.matchAll(
      /^CREATE (UNIQUE )?INDEX (\w+) ON (\w+) ([^;]+);/gm,
    )) {
      const columns = what.replaceAll(/\s+/g, " ").replaceAll(/(?<=\() | (?=\))/g, "");
      tables.get(name)?.indexes.set(index, `${unique ? "Unique by" : "Index on"} \`${columns}\``);
    }
  }
  return tables;
}

function parseTable(name: string, body: string): Table {
  const lines = body.split("\n").map((line) => line.trim());
  const isRule = (line: string): boolean => /^(PRIMARY KEY|UNIQUE|CHECK|FOREIGN KEY)\b/.test(line);
  const keys = lines.filter((line) => isRule(line) && !line.startsWith("CHECK"));
  return {
    name,
    columns: lines.filter((line) => line !== "" && !isRule(line)).map(parseColumn),
    rules: keys.map(
      (line) => `${line.startsWith("PRIMARY") ? "Key" : "Unique by"} \`${/\(.*\)/.exec(line)?.[0] ?? ""}\``,
    ),
    indexes: new Map(),
  };
}

function parseColumn(line: string): Column {
  const [definition = "", comment = ""] = line.split(/\s*-- /);
  const [, name = "", type = "", rest = ""] = /^(\w+)\s+(\w+)\s*(.*?),?$/.exec(definition) ?? [];
  const target = /REFERENCES (\w+)/.exec(rest)?.[1];
  const values = /CHECK \((.*)\)/.exec(rest)?.[1]?.match(/'\w+'/g) ?? [];
  const rules = [
    ...(rest.includes("PRIMARY KEY") ? ["the key"] : []),
    ...(target === undefined ? [] : [`refers to \`${target}\``]),
    ...(values.length === 0 ? [] : [`one of ${values.map((value) => value.slice(1, -1)).join(", ")}`]),
  ];
  const isOptional = !/NOT NULL|PRIMARY KEY/.test(rest);
  return { name, type: isOptional ? `${type}, may be null` : type, rules, meaning: comment.trim() };
}

const INTRO = `# Storage

An archive is one SQLite file (\`lcm.db\`) and a folder of large files beside it (\`lcm-files/\`; for \`notes.db\` it is \`notes-files/\`). Only their user can read them:
files are created with mode \`0600\`, folders with \`0700\`. This page lists the tables and columns; [ARCHITECTURE.md](../ARCHITECTURE.md) gives the reasons. An archive on
a server is described in [postgres.md](postgres.md).

- You can read the file with any SQLite tool while the program runs. Do not write to it: \`lcm verify\` would report the change.
- \`PRAGMA application_id\` is \`0x4c434d58\` ("LCMX"), and \`PRAGMA user_version\` is the version of the schema. A file with another id or a
  newer version is refused and left as it is.
- It uses write-ahead logging, \`synchronous = FULL\`, and foreign keys. Tables are \`STRICT\`. Times are whole milliseconds, UTC.
- Table names are stable. A migration may change columns.`;

const FILES = `## The full-text index

\`messages_fts_<n>\` is a contentless FTS5 table with the columns \`words\` (stems, pieces of identifiers, single glyphs), \`idents\` (whole
identifiers) and \`scope\` (one term for the conversation). Its row ids are message ids. \`n\` is the generation: \`lcm reindex\` fills the next one while
searches use the old one, then swaps them and drops the old one. A message is indexed a moment after it was stored; until then it has a row in
\`index_pending\`. The index can always be rebuilt from the messages, so damage to it is never damage to the archive.

## Bodies

\`messages.body\` is what was handed in, with large payloads cut out. \`encoding\` 0 means plain bytes. A higher number means zstd, with the
dictionary of that version. The dictionaries ship with the program (\`packages/core/src/store/body-dictionary.ts\`). Each body is compressed by itself, so one
bad byte damages one message.

## Large files

A payload of at least \`largeFileThresholdTokens\` is stored decoded, so that you can open it as a file, in
\`lcm-files/<conversation_id>/<file_id>.<ext>\`. Its row in \`message_parts\` has the type \`payload\`, the place it was cut from, and an
encoding. The encoding turns the file's content back into the cut bytes: \`json\` and \`json-ascii\` (the inside of a JSON string), \`base64\`, or \`raw\`.
\`file_id\` is \`file_\` and 16 hex digits of a hash over conversation and content, so a payload that
occurs twice in a conversation is one file.`;

/**
 * Renders docs/storage.md: what a database holds, table by table. Columns and their meaning come from the commented DDL of the
 * migrations, so that the page says what the program creates; a table that nobody has described here stops the page.
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
      "The archive itself. What was stored of a message is never rewritten; only marks and counters beside it change.",
    tables: {
      conversations:
        "One row per conversation: whose it is, where its hash chain ends, and counters that `lcm verify` recounts.",
      messages:
        "One row per stored event, with the original in `body`. A changed event is a further row, a revision.",
      message_parts:
        "Where the blocks of a message stand in its bytes, and which bytes were cut out into files. No text: that stands in `body`, once.",
      large_files: "One row per payload that lives in a file, with what is known about its content.",
      ledger: "What happened to a conversation besides messages, as links of the same hash chain.",
      seals:
        "Hashes of rows that neither the chain nor a derivation proves: owners of sessions, placements, boundaries, archiving, spans and sources of summaries, the vault.",
      redactions: "One row per message that was redacted under a key: the keyed hash of what arrived.",
      sealed_values: "The vault: what was taken out of messages, sealed. The key is not in the archive.",
    },
  },
  {
    title: "Which event is which",
    about: "Identity is an id, never a comparison of text.",
    tables: {
      sessions: "One row per session of a host and owner, with how far its transcript was read.",
      event_ids:
        "Every name an event is known by. Unique per session, whatever conversation the message lies in.",
      placements:
        "Which conversation a session's events belong to, by position: a reset starts the next one.",
      turns: "Turns a host has committed. A key that is here means a repeated commit, which stores nothing.",
      boundaries: "Where `/new` and `/reset` fell.",
    },
  },
  {
    title: "What a model would see",
    about: "The cover, and the graph of summaries under it.",
    tables: {
      context_items:
        "The cover: in the order of positions, items that together stand for every message exactly once. Counts and depths stand here, so that choosing a context reads no bodies.",
      summaries: "One row per summary, in the cover or in reserve.",
      fork_items:
        "What a conversation that began as a copy shows of its parent, chosen once. References only: the texts are the parent's.",
      summary_messages: "The messages a leaf summary was made from, in order.",
      summary_parents:
        "The summaries a condensed summary was made from, in order. The public name calls sources parents.",
    },
  },
  {
    title: "Books",
    about: "Facts about the archive and its work. None of them is needed to read a message.",
    tables: {
      index_pending:
        "Messages that are stored and not in the full-text index yet. Written with the message, removed when it is indexed.",
      summary_refs: "Which row of the full-text index is which summary.",
      word_blocks:
        "The words of 512 messages as their texts spell them, so that a regular expression with a literal reads only what can match.",
      meta: "Facts about the archive as a whole: which generation of the index is in use, and whether it can be trusted; the highest ids that were removed.",
      imports: "How many messages of which conversation each import stored, so that it can be removed again.",
      token_calibration: "How far the token estimate is off for a model, learnt from what hosts report.",
      expansion_grants: "What a sub-agent may open.",
      vector_spaces:
        "One row per model that made vectors for search by meaning. Empty unless a model is named.",
      message_vectors:
        "One vector for each message and space; only for the current version of what is shown.",
      vectors_pending:
        "Messages that may need a vector in a space and were not looked at yet. Written with the message, removed when it was looked at.",
      compaction_debt: "Folding that is owed, and who is paying.",
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
    "`lcm verify` notices an edit of every column of every table, except for these. None of them can lose a message, change one, or change what it belongs to.",
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

An archive is one SQLite file (\`lcm.db\`) and a folder of large files (\`lcm-files/\`, for \`notes.db\` \`notes-files/\`) beside it. Both are private to the user: files are created
with mode \`0600\`, folders with \`0700\`. [ARCHITECTURE.md](../ARCHITECTURE.md) says why the data is laid out like this; this page lists it.

- The file says what it is: \`PRAGMA application_id\` is \`0x4c434d58\` ("LCMX"), \`PRAGMA user_version\` is the version of the schema. A file with
  another id is refused and left as it is. So is a file with a newer version.
- Write-ahead logging, \`synchronous = FULL\`, foreign keys on. Tables are \`STRICT\`. Times are whole milliseconds, UTC.
- Read it with any SQLite tool while the program runs. Write to it with none: \`lcm verify\` will tell.
- Table names are stable. Columns may change from version to version, by a migration.`;

const FILES = `## The full-text index

\`messages_fts_<n>\` is a contentless FTS5 table with the columns \`words\` (stems, pieces of identifiers, single glyphs), \`idents\` (identifiers
whole) and \`scope\` (one term for the conversation); its row ids are message ids. \`n\` is the generation: \`lcm reindex\` fills the next one while
the old one serves, then swaps and drops the old. What it lacks has a row in \`index_pending\`, and is indexed a moment after it was
stored. The index can always be made again from the messages; damage to it is never damage to the archive.

## Bodies

\`messages.body\` is what was handed in, with large payloads cut out. \`encoding\` 0 means plain bytes; a number above means zstd, with the
dictionary of that version, which ships with the program (\`packages/core/src/store/body-dictionary.ts\`). Each body is compressed alone, so one
bad byte hits one message.

## Large files

A payload of at least \`largeFileThresholdTokens\` is stored decoded, as a person would want the file, in
\`lcm-files/<conversation_id>/<file_id>.<ext>\`. Its row in \`message_parts\` has the type \`payload\`, the place it was cut from, and an encoding that
says how the file's content becomes the cut bytes again: \`json\` and \`json-ascii\` (the inside of a JSON string), \`base64\`, or \`raw\`.
\`file_id\` is \`file_\` and 16 hex digits of a hash over conversation and content, so the same payload twice in a conversation is one file.`;

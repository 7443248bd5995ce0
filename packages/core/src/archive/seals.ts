/**
 * Seals: one hash for each session, conversation, summary and redacted message over rows that neither the chain nor a derivation proves:
 * who owns a session, when a conversation was archived and where it comes from, which session is placed where, boundaries, the span and
 * sources of a summary, and the vault. An adapter seals what a transaction changes before it commits; an edit by any other program leaves a
 * seal that does not match.
 */
import { hash } from "node:crypto";
import { ORIGIN_FIELDS } from "../model/origin.ts";
import type { Values } from "./changes.ts";
import type { TableName, Value } from "./tables.ts";

export type SealKind = "session" | "conversation" | "summary" | "redaction";

/** Rows of a table that belong to a seal. */
export interface SealedTable {
  readonly table: TableName;
  /** The column that says which seal. */
  readonly id: string;
  /** The sealed columns, in hashing order. */
  readonly columns: readonly string[];
  /** How many of them, at the end, were added after the first seals: while all of them are null, a row is sealed as before. */
  readonly added?: number;
  /** Columns that give the order of the rows of one seal. */
  readonly order: readonly string[];
  /** Set if other columns of the row change all the time. */
  readonly isPartial?: boolean;
}

/** The first table has the row itself. */
export const SEALED: Readonly<Record<SealKind, readonly [SealedTable, ...SealedTable[]]>> = {
  session: [
    {
      table: "sessions",
      id: "session_ref",
      columns: ["session_ref", "owner", "session_id"],
      order: [],
      isPartial: true,
    },
  ],
  conversation: [
    {
      table: "conversations",
      id: "conversation_id",
      columns: [
        "conversation_id",
        "archived_at",
        "archive_cause",
        "parent_id",
        "fork_seq",
        "fork_pos",
        ...ORIGIN_FIELDS,
      ],
      added: ORIGIN_FIELDS.length,
      order: [],
      isPartial: true,
    },
    {
      table: "placements",
      id: "conversation_id",
      columns: ["session_ref", "start_position", "base_position"],
      order: ["session_ref", "start_position"],
    },
    {
      table: "boundaries",
      id: "conversation_id",
      columns: [
        "session_ref",
        "event_id",
        "position",
        "reason",
        "retain_depth",
        "shown_before",
        "at",
        "undone_at",
      ],
      order: ["session_ref", "event_id"],
    },
  ],
  summary: [
    {
      table: "summaries",
      id: "summary_id",
      columns: [
        "summary_id",
        "conversation_id",
        "kind",
        "depth",
        "state",
        "start_pos",
        "start_seq",
        "end_pos",
        "end_seq",
        "messages",
        "descendant_count",
        "tokens",
        "source_tokens",
        "earliest_at",
        "latest_at",
        "hash",
        "stale",
        "is_root",
        "made_at_seq",
        "created_at",
        "published_seq",
        "previous_id",
      ],
      order: [],
    },
    {
      table: "summary_messages",
      id: "summary_id",
      columns: ["ordinal", "message_id"],
      order: ["ordinal"],
    },
    {
      table: "summary_parents",
      id: "summary_id",
      columns: ["ordinal", "parent_summary_id"],
      order: ["ordinal"],
    },
  ],
  // With the key the values themselves are proven; without it the seal reveals an edit.
  redaction: [
    {
      table: "redactions",
      id: "message_id",
      columns: ["message_id", "key_id", "keyed", "sealed"],
      order: [],
    },
    {
      table: "sealed_values",
      id: "message_id",
      columns: ["ordinal", "at", "length", "key_id", "nonce", "sealed"],
      order: ["ordinal"],
    },
  ],
};

export const SEAL_KINDS = Object.keys(SEALED) as readonly SealKind[];

/** The values of one row, in the order of the sealed columns. */
export type SealedRow = readonly Value[];

/** The hash over the rows of a seal, table by table. */
export const hashSeal = (kind: SealKind, facts: readonly (readonly SealedRow[])[]): Buffer =>
  hash(
    "sha256",
    JSON.stringify([
      kind,
      facts.map((rows, at) => rows.map((row) => dropUnset(row, SEALED[kind][at]?.added ?? 0).map(spell))),
    ]),
    "buffer",
  );

/** An upgrade that adds columns must not seal rows again: it would accept an earlier edit as genuine. */
const dropUnset = (row: SealedRow, added: number): SealedRow =>
  added > 0 && row.slice(-added).every((value) => value === null) ? row.slice(0, -added) : row;

const spell = (value: Value): number | string | null =>
  value instanceof Uint8Array ? Buffer.from(value).toString("hex").toUpperCase() : value;

export const pickSealed = ({ columns }: SealedTable, row: Values): SealedRow =>
  columns.map((column) => row[column] ?? null);

/**
 * How far the transcript of a session was read, and which turns had to be stored without their entry ids. It is stored in the archive as the
 * session's cursor, so that it changes in the same transaction as the rows it describes. It is opaque to the archive; only this file writes and
 * reads it.
 */

import type { AgentMessage } from "../host/host.ts";

/** Where reading continues. Both cursors always point at the same place of the transcript. */
export interface ReaderState {
  readonly visible: string | null;
  readonly raw: string | null;
  /** Position of the last row before that place; rows outside the branch are placed directly after it. */
  readonly position: number;
  /** Rows before those read at first contact; null when none are left to read. */
  readonly older?: OlderRows | null;
  /** Turns stored under provisional ids, oldest first, whose rows still need the ids of the transcript. */
  readonly unnamed: readonly UnnamedTurn[];
}

/** The older part of a long history: read in the background, and shown as one line until then. */
export interface OlderRows {
  /** Rows with lower positions. */
  readonly before: number;
  /** The number of rows, to report progress. */
  readonly rows: number;
  /** Of these: messages that the context will show, and their times. */
  readonly messages: number;
  readonly firstAt: number | null;
  readonly lastAt: number | null;
}

/** A turn of which only the first and last entry id are known. */
export interface UnnamedTurn {
  readonly advancementKey: string;
  readonly firstEntryId: string;
  readonly lastEntryId: string;
  /** The rows between the ends, in order. */
  readonly rows: readonly UnnamedRow[];
}

export interface UnnamedRow {
  readonly eventId: string;
  readonly role: string;
  /** Keys that distinguish this message from others of its role. */
  readonly marks: readonly string[];
}

export const UNREAD: ReaderState = { visible: null, raw: null, position: 0, unnamed: [] };

const FORMAT = 1;

export function writeReaderState(state: ReaderState): string {
  return JSON.stringify({ format: FORMAT, ...state });
}

/** A state that cannot be parsed only costs a read from the start. */
export function parseReaderState(text: string | null): ReaderState {
  if (text === null) return UNREAD;
  try {
    const state = JSON.parse(text) as ReaderState & { format: number };
    const { format, visible, raw, position, unnamed, older = null } = state;
    return format === FORMAT && Array.isArray(unnamed)
      ? { visible, raw, position, unnamed, older: older ?? undefined }
      : UNREAD;
  } catch {
    return UNREAD;
  }
}

/** Ids for a turn's messages when the transcript could not be read: the ends are known, the rest is numbered. */
export function nameTurnRows(
  turn: { advancementKey: string; firstEntryId: string; lastEntryId: string },
  count: number,
): string[] {
  return Array.from({ length: count }, (_, index) => {
    if (index === 0) return turn.firstEntryId;
    return index === count - 1 ? turn.lastEntryId : `turn:${turn.advancementKey}:${index}`;
  });
}

/** The identity of a message: keys that the host or the provider gave it. Never its text, because equal texts are all kept. */
export function readMarks(message: AgentMessage): string[] {
  const marks: string[] = [];
  for (const field of ["idempotencyKey", "responseId", "toolCallId", "timestamp"]) {
    const value = message[field];
    if (typeof value === "string" || typeof value === "number") marks.push(`${field}:${value}`);
  }
  return marks;
}

export interface NamedRow {
  readonly entryId: string;
  readonly message: AgentMessage;
}

/**
 * Finds the entries of a turn's unnamed rows among the entries between its ends: by order and role if both sides agree throughout, else by their
 * marks, each entry after the one before.
 */
export function matchUnnamedRows(
  unnamed: readonly UnnamedRow[],
  entries: readonly NamedRow[],
): { from: string; to: string }[] {
  const agrees =
    unnamed.length === entries.length &&
    unnamed.every((row, index) => row.role === entries[index]!.message.role);
  if (agrees) return unnamed.map((row, index) => ({ from: row.eventId, to: entries[index]!.entryId }));
  const labels: { from: string; to: string }[] = [];
  let next = 0;
  for (const row of unnamed) {
    const at = entries.findIndex(
      (entry, index) =>
        index >= next &&
        entry.message.role === row.role &&
        readMarks(entry.message).some((mark) => row.marks.includes(mark)),
    );
    if (at < 0) continue;
    labels.push({ from: row.eventId, to: entries[at]!.entryId });
    next = at + 1;
  }
  return labels;
}

/**
 * Calls that a real host made to a context engine, as they were recorded, and a transcript made of the rows they tell of. The recordings
 * live beside the project and are never part of it.
 */

import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { findSharedData } from "@lossless/testkit/shared-data.ts";
import type {
  AgentMessage,
  AssembleParams,
  CommitTurnParams,
  CompactParams,
  SessionParams,
} from "../src/host/host.ts";
import type { RawEvent, TranscriptPage, TranscriptReader, VisibleEntry } from "../src/capture/transcript.ts";

export type RecordedCall =
  | { readonly name: "bootstrap"; readonly params: SessionParams }
  | { readonly name: "assemble"; readonly params: AssembleParams }
  | { readonly name: "commitTurn"; readonly params: CommitTurnParams }
  | { readonly name: "compact"; readonly params: CompactParams };

const CALLS = new Set(["bootstrap", "assemble", "commitTurn", "compact"]);

/** All recorded calls in the order they were made; null, with a line that says so, when there are none here. */
export function readRecordedCalls(): RecordedCall[] | null {
  const data = findSharedData();
  const folder = data === null ? null : join(data, "..", "reference", "openclaw-evidence");
  if (folder === null || !existsSync(folder)) {
    process.stderr.write("recorded calls of a host not found: tests that need them are skipped\n");
    return null;
  }
  return readdirSync(folder)
    .filter((name) => name.endsWith(".jsonl"))
    .flatMap((name) => readFileSync(join(folder, name), "utf8").split("\n"))
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line, revive) as { t: number; ev: string; data: unknown })
    .filter((record) => CALLS.has(record.ev))
    .toSorted((a, b) => a.t - b.t)
    .map((record) => ({ name: record.ev, params: record.data }) as RecordedCall);
}

/** The recorder wrote what JSON cannot hold as marks. */
function revive(_key: string, value: unknown): unknown {
  if (value === "[undefined]" || value === "[Function]" || value === "[Object]") return undefined;
  const set = (value as { $set?: unknown[] } | null)?.$set;
  return Array.isArray(set) ? new Set(set) : value;
}

export interface RecordedRow {
  readonly entryId: string;
  /** Number among the visible messages, from one. */
  readonly seq: number;
  readonly message: AgentMessage;
}

/** The rows of a turn, with the ids that are known and, between the ends, with ids that the transcript could have given. */
function listTurnRows({ admission, terminal, messages }: CommitTurnParams): RecordedRow[] {
  return messages.map((message, index) => {
    const seq = admission.activeMessagePosition + 1 + index;
    if (index === 0) return { entryId: admission.entryId, seq, message };
    if (index === messages.length - 1)
      return { entryId: terminal.entryId, seq: terminal.activeMessagePosition + 1, message };
    return { entryId: `${admission.entryId}+${index}`, seq, message };
  });
}

/** Transcripts of several sessions, as far as the turns that were told of so far. */
export class RecordedTranscripts {
  isReadable = true;
  readonly sessions = new Map<string, RecordedRow[]>();

  add(turn: CommitTurnParams): void {
    const rows = this.sessions.get(turn.sessionId) ?? [];
    const known = new Set(rows.map((row) => row.entryId));
    this.sessions.set(turn.sessionId, [
      ...rows,
      ...listTurnRows(turn).filter((row) => !known.has(row.entryId)),
    ]);
  }

  readonly reader: TranscriptReader = {
    readVisible: async ({ sessionId }, cursor, limit) =>
      this.#read<VisibleEntry>(sessionId, cursor, limit, ({ entryId, seq }) => ({ entryId, seq })),
    readRaw: async ({ sessionId }, cursor, limit) =>
      this.#read<RawEvent>(sessionId, cursor, limit, ({ entryId, message }) => ({
        type: "message",
        id: entryId,
        message,
      })),
  };

  #read<Item>(
    sessionId: string,
    cursor: string | null,
    limit: number,
    show: (row: RecordedRow) => Item,
  ): TranscriptPage<Item> {
    if (!this.isReadable) return { kind: "unavailable", reason: "told to fail" };
    const rows = this.sessions.get(sessionId);
    if (rows === undefined) return { kind: "missing" };
    const start = Number(cursor ?? 0);
    const items = rows.slice(start, start + limit).map(show);
    const end = start + items.length;
    return { kind: "page", items, cursor: String(end), hasMore: end < rows.length };
  }
}

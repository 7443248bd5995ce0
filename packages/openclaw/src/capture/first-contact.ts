/**
 * A long session that the archive does not know yet. Its newest rows are stored at once, so that the current turn has a context; the older ones
 * follow in the background, page by page, hidden until all are stored, so that the front of the context changes once and not with every page.
 * Until then they are one fixed line. The session's cursor records the progress: a crash only means that known rows are read again.
 */

import type { Engine, SessionRef } from "@lossless/core";
import {
  parseReaderState,
  UNREAD,
  writeReaderState,
  type OlderRows,
  type ReaderState,
} from "./reader-state.ts";
import {
  AGENT,
  attachMedia,
  dropKnown,
  recordReset,
  storeBatch,
  toArrival,
  type CatchUpRequest,
} from "./store-rows.ts";
import { readNewRows, type MessageRow, type ResetRow, type TranscriptRow } from "./transcript-rows.ts";

/** A history of at most this many rows is stored as a whole. */
const SHORT_ROWS = 600;
/** Rows that are stored at first contact: several times a fresh tail. */
const TAIL_ROWS = 300;

interface Scan {
  /** The newest rows, none of them before the last reset. */
  readonly tail: readonly MessageRow[];
  readonly resets: readonly ResetRow[];
  readonly older: OlderRows;
  readonly end: ReaderState;
}

/** Stores the newest rows of a long transcript. False when the transcript is short or cannot be read: then it is read as usual. */
export async function makeFirstContact(request: CatchUpRequest): Promise<boolean> {
  const scan = await scanTranscript(request);
  if (scan === null) return false;
  const { engine, session } = request;
  // Boundaries decide which conversation a row belongs to, so they are stored before any rows.
  for (const reset of scan.resets) await recordReset(request, reset);
  const rows = await attachMedia(request, scan.tail, scan.tail, false);
  await engine.ingest({
    session,
    messages: rows.flatMap((row) => (row.kind === "message" ? [toArrival(row)] : [])),
    cursor: { value: writeReaderState({ ...scan.end, older: scan.older }) },
    isHistory: true,
    origin: { agent: AGENT },
  });
  return true;
}

/** Reads all of a transcript and keeps its end. Null when that is not necessary. */
async function scanTranscript({ reader, target, turn }: CatchUpRequest): Promise<Scan | null> {
  const resets: ResetRow[] = [];
  const counts = new OlderCount();
  let kept: MessageRow[] = [];
  let rows = 0;
  for await (const read of readNewRows(reader, target, UNREAD, turn?.last)) {
    if (read.kind !== "rows") return null;
    for (const row of read.rows) {
      rows += 1;
      if (row.kind === "message") kept.push(row);
      else {
        resets.push(row);
        counts.startAnew(kept);
        kept = [];
      }
    }
    if (kept.length > 2 * TAIL_ROWS) counts.add(kept.splice(0, kept.length - TAIL_ROWS));
    if (read.end === null) continue;
    if (rows <= SHORT_ROWS) return null;
    counts.add(kept.splice(0, Math.max(0, kept.length - TAIL_ROWS)));
    const before = kept[0]?.position ?? read.end.state.position + 1;
    return { tail: kept, resets, older: counts.describe(before), end: read.end.state };
  }
  return null;
}

/** Counts rows that are left for later; shown ones only since the last reset, because earlier ones are not in the context. */
class OlderCount {
  #rows = 0;
  #messages = 0;
  #firstAt: number | null = null;
  #lastAt: number | null = null;

  add(rows: readonly MessageRow[]): void {
    this.#rows += rows.length;
    for (const { hidden, createdAt = null } of rows) {
      if (hidden.length > 0) continue;
      this.#messages += 1;
      this.#firstAt ??= createdAt;
      this.#lastAt = createdAt ?? this.#lastAt;
    }
  }

  startAnew(rows: readonly MessageRow[]): void {
    this.#rows += rows.length;
    this.#messages = 0;
    this.#firstAt = null;
    this.#lastAt = null;
  }

  describe(before: number): OlderRows {
    return {
      before,
      rows: this.#rows,
      messages: this.#messages,
      firstAt: this.#firstAt,
      lastAt: this.#lastAt,
    };
  }
}

export type OlderRequest = Omit<CatchUpRequest, "moveCursor" | "turn" | "situation"> & {
  /** Runs a task of the session in its queue; turns of the chat come in between. */
  readonly inOrder: <T>(task: () => Promise<T>) => Promise<T>;
  readonly onProgress: (done: number, rows: number) => void;
  readonly signal?: AbortSignal | undefined;
};

/** What is left to read of a session's history; null when everything is read. */
export async function readOlder(engine: Engine, session: SessionRef): Promise<OlderRows | null> {
  const known = await engine.readSession({ sessionId: session.id, owner: session.owner });
  return parseReaderState(known?.cursor ?? null).older ?? null;
}

/** Stores the older rows, oldest first, and shows them all when they are complete. Returns how many were new. */
export async function importOlder(request: OlderRequest): Promise<number> {
  const { engine, reader, target, session, inOrder, onProgress, signal } = request;
  const older = await readOlder(engine, session);
  if (older === null) return 0;
  const asked: CatchUpRequest = { ...request, moveCursor: false };
  let stored = 0;
  let done = 0;
  for await (const read of readNewRows(reader, target, UNREAD)) {
    if (signal?.aborted === true) return stored;
    if (read.kind !== "rows") throw new Error(`the older history cannot be read now (${read.kind})`);
    const batch = read.rows.filter((row) => row.position < older.before);
    stored += await inOrder(() => storePending(asked, batch));
    done += batch.length;
    onProgress(done, older.rows);
    if (batch.length < read.rows.length) break;
  }
  await inOrder(() => finish(engine, session));
  return stored;
}

async function storePending(request: CatchUpRequest, rows: readonly TranscriptRow[]): Promise<number> {
  const pending = rows.flatMap((row): TranscriptRow[] =>
    row.kind === "message" ? [{ ...row, hidden: [...row.hidden, "pending"] }] : [],
  );
  const fresh = await dropKnown(request, await attachMedia(request, pending, pending, true));
  return await storeBatch(request, fresh);
}

async function finish(engine: Engine, session: SessionRef): Promise<void> {
  await engine.showPending({ session });
  const known = await engine.readSession({ sessionId: session.id, owner: session.owner });
  const { older: _read, ...state } = parseReaderState(known?.cursor ?? null);
  await engine.ingest({ session, messages: [], cursor: { value: writeReaderState(state) } });
}

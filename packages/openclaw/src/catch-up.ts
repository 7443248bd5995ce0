/**
 * Brings the archive up to date with a session's transcript: reads what is new, names the rows that were stored without their ids, and
 * stores the rest, with boundaries at their places. Everything is known by its entry id, so reading the same rows again adds nothing;
 * the cursor moves in the transaction of the last rows, so a crash in between only means reading them again.
 */

import type { Arrival, Engine, IngestRequest, SessionRef } from "@lossless/core";
import { POSITION_STEP } from "@lossless/core";
import { matchUnnamedRows, parseReaderState, writeReaderState, type ReaderState } from "./reader-state.ts";
import type { TranscriptReader, TranscriptTarget } from "./transcript.ts";
import {
  readNewRows,
  restartState,
  type EntryPlace,
  type MessageRow,
  type ResetRow,
  type TranscriptRow,
} from "./transcript-rows.ts";

export interface CatchUpRequest {
  readonly engine: Engine;
  readonly reader: TranscriptReader;
  readonly target: TranscriptTarget;
  readonly session: SessionRef;
  /** False for reads that are only asked for; they store rows and leave the cursor. */
  readonly moveCursor: boolean;
  readonly turn?: CatchUpTurn;
  /** What the turn was for; given, the engine watches the threshold of the conversation. */
  readonly situation?: TurnSituation;
}

/** A turn to be recorded with its last row. */
export interface CatchUpTurn {
  readonly advancementKey: string;
  readonly first: EntryPlace;
  readonly last: EntryPlace;
  /** Nothing but a sign of life: kept, and left out of the context. */
  readonly isHeartbeat?: boolean;
}

export type TurnSituation = Pick<IngestRequest, "budgetTokens" | "model" | "contextWindow">;

export type CatchUpResult =
  | {
      readonly kind: "caught-up";
      readonly stored: number;
      readonly turn: "none" | "committed" | "duplicate" | "unseen";
    }
  | { readonly kind: "missing" }
  | { readonly kind: "unavailable"; readonly reason: string };

export async function catchUp(request: CatchUpRequest): Promise<CatchUpResult> {
  const known = await request.engine.readSession({
    sessionId: request.session.id,
    owner: request.session.owner,
  });
  const start = parseReaderState(known?.cursor ?? null);
  const read = await readAndStore(request, start, false);
  if (read.kind !== "restart") return read;
  const again = await readAndStore(request, restartState(start), true);
  return again.kind === "restart" ? { kind: "unavailable", reason: again.reason } : again;
}

async function readAndStore(
  request: CatchUpRequest,
  start: ReaderState,
  fromStart: boolean,
): Promise<CatchUpResult | { kind: "restart"; reason: string }> {
  const { engine, reader, session, target, turn } = request;
  const waiting: TranscriptRow[] = [];
  const offBranch: string[] = [];
  let stored = 0;
  for await (const read of readNewRows(reader, target, start, turn?.last)) {
    if (read.kind === "fenced")
      return { kind: "caught-up", stored, turn: turn === undefined ? "none" : "unseen" };
    if (read.kind !== "rows") return read;
    const left = read.rows
      .filter((row) => row.kind === "message" && isOffBranch(row))
      .map((row) => row.entryId);
    // A row that was stored while it was on the branch has to be hidden, which takes a look at the whole transcript.
    if (!fromStart && (await findKnown(request, left)).size > 0) {
      return { kind: "restart", reason: "stored rows have left the branch" };
    }
    offBranch.push(...left);
    waiting.push(...read.rows);
    // Turns that wait for names are matched as wholes, so their rows must not be stored piece by piece.
    if (read.end === null && start.unnamed.length > 0) continue;
    const rows = waiting.splice(0);
    if (read.end === null) {
      stored += await storeBatch(request, rows, fromStart);
      continue;
    }
    const named = await nameRows(request, rows, read.end.state);
    const outcome = await storeLastBatch(request, named.rows, {
      fromStart,
      start,
      state: named.state,
      sawLimit: read.end.sawLimit,
    });
    if (fromStart) await engine.setBranch({ session, offBranch });
    return { kind: "caught-up", stored: stored + outcome.stored, turn: outcome.turn };
  }
  return { kind: "unavailable", reason: "the transcript ended without an end" };
}

/** Gives rows stored under provisional ids the ids of their entries, and takes those entries out of what is to be stored. */
async function nameRows(
  { engine, session }: CatchUpRequest,
  rows: readonly TranscriptRow[],
  state: ReaderState,
): Promise<{ rows: TranscriptRow[]; state: ReaderState }> {
  let left = [...rows];
  const still = [];
  for (const turn of state.unnamed) {
    const first = left.findIndex((row) => row.entryId === turn.firstEntryId);
    const last = left.findIndex((row) => row.entryId === turn.lastEntryId);
    if (first < 0 || last < first) {
      still.push(turn);
      continue;
    }
    const between = left
      .slice(first + 1, last)
      .filter((row): row is MessageRow => row.kind === "message" && !isOffBranch(row));
    const labels = matchUnnamedRows(turn.rows, between);
    if (labels.length > 0) await engine.relabel({ session, labels });
    const named = new Set(labels.map((label) => label.to));
    const partnerless = new Set(between.map((row) => row.entryId).filter((entryId) => !named.has(entryId)));
    left = left
      .filter((row) => !named.has(row.entryId))
      .map((row) =>
        row.kind === "message" && partnerless.has(row.entryId)
          ? { ...row, hidden: [...row.hidden, "unplaced"] }
          : row,
      );
  }
  return { rows: left, state: { ...state, unnamed: still } };
}

async function storeBatch(
  request: CatchUpRequest,
  rows: readonly TranscriptRow[],
  fromStart: boolean,
): Promise<number> {
  const { engine, session } = request;
  const fresh = fromStart ? await dropKnown(request, rows) : rows;
  let stored = 0;
  for (const { messages, reset } of splitAtResets(fresh)) {
    if (messages.length > 0)
      stored += countStored(await engine.ingest({ session, messages: messages.map(toArrival) }));
    if (reset !== undefined) await recordReset(request, reset);
  }
  return stored;
}

interface LastBatch {
  readonly fromStart: boolean;
  readonly start: ReaderState;
  /** The state after these rows. */
  readonly state: ReaderState;
  readonly sawLimit: boolean;
}

/** The rows behind the last reset go with the advancement key and the new cursor, in one transaction. */
async function storeLastBatch(
  request: CatchUpRequest,
  rows: readonly TranscriptRow[],
  { fromStart, start, state, sawLimit }: LastBatch,
): Promise<{ stored: number; turn: "none" | "committed" | "duplicate" | "unseen" }> {
  const { engine, session, turn } = request;
  const lastReset = rows.findLastIndex((row) => row.kind === "reset");
  let stored = await storeBatch(request, rows.slice(0, lastReset + 1), fromStart);
  const closing = fromStart ? await dropKnown(request, rows.slice(lastReset + 1)) : rows.slice(lastReset + 1);
  const messages = closing.filter((row) => row.kind === "message").map((row) => hideHeartbeat(row, turn));
  const commits =
    turn !== undefined && (sawLimit || (await findKnown(request, [turn.last.entryId])).size > 0);
  const cursor = writeReaderState(state);
  const moves = request.moveCursor && cursor !== writeReaderState(start);
  if (messages.length === 0 && !commits && !moves)
    return { stored, turn: turn === undefined ? "none" : "unseen" };
  const result = await engine.ingest({
    session,
    messages: messages.map(toArrival),
    ...(commits ? { turn: { advancementKey: turn.advancementKey }, ...request.situation } : {}),
    ...(moves ? { cursor: { value: cursor } } : {}),
  });
  stored += countStored(result);
  if (commits) return { stored, turn: result.duplicateTurn ? "duplicate" : "committed" };
  return { stored, turn: turn === undefined ? "none" : "unseen" };
}

function hideHeartbeat(row: MessageRow, turn: CatchUpTurn | undefined): MessageRow {
  if (turn?.isHeartbeat !== true || row.position < turn.first.seq * POSITION_STEP) return row;
  return { ...row, hidden: [...row.hidden, "heartbeat"] };
}

/** After a read from the start most rows are stored; only the others are worth preparing. Resets are cheap and know themselves. */
async function dropKnown(
  request: CatchUpRequest,
  rows: readonly TranscriptRow[],
): Promise<readonly TranscriptRow[]> {
  const known = await findKnown(
    request,
    rows.filter((row) => row.kind === "message").map((row) => row.entryId),
  );
  return rows.filter((row) => row.kind !== "message" || !known.has(row.entryId));
}

async function findKnown(
  { engine, session }: CatchUpRequest,
  eventIds: readonly string[],
): Promise<Set<string>> {
  if (eventIds.length === 0) return new Set();
  return new Set(await engine.knownEvents({ sessionId: session.id, owner: session.owner, eventIds }));
}

interface Segment {
  readonly messages: MessageRow[];
  /** The reset that ends the segment; the last segment has none. */
  reset?: ResetRow;
}

function splitAtResets(rows: readonly TranscriptRow[]): Segment[] {
  const segments: Segment[] = [{ messages: [] }];
  for (const row of rows) {
    const open = segments.at(-1)!;
    if (row.kind === "message") open.messages.push(row);
    else {
      open.reset = row;
      segments.push({ messages: [] });
    }
  }
  return segments;
}

async function recordReset({ engine, session }: CatchUpRequest, reset: ResetRow): Promise<void> {
  const { entryId: eventId, reason, position, at } = reset;
  await engine.recordBoundary({ session, eventId, reason, position, ...(at === undefined ? {} : { at }) });
}

function toArrival(row: MessageRow): Arrival {
  return {
    eventId: row.entryId,
    eventIdKind: "entry",
    message: row.message,
    position: row.position,
    ...(row.createdAt === undefined ? {} : { createdAt: row.createdAt }),
    ...(row.hidden.length === 0 ? {} : { hidden: row.hidden }),
  };
}

function isOffBranch(row: MessageRow): boolean {
  return row.hidden.includes("branch");
}

function countStored(result: { results: readonly { outcome: string }[] }): number {
  return result.results.filter((message) => message.outcome === "stored" || message.outcome === "revision")
    .length;
}

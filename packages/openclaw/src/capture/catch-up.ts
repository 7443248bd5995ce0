/**
 * Brings the archive up to date with a session's transcript: reads new rows, adds the ids of rows that were stored without them, and stores the
 * rest, with boundaries in place. Everything is identified by its entry id, so reading the same rows again adds nothing; the cursor moves in the
 * transaction of the last rows, so a crash in between only means reading them again. After a rewrite of the transcript everything is read again;
 * a row that changed is stored as a revision.
 */

import { POSITION_STEP } from "@lossless/core";
import { dropCopied, joinFork, readParent } from "./fork.ts";
import { makeFirstContact } from "./first-contact.ts";
import {
  matchUnnamedRows,
  parseReaderState,
  writeReaderState,
  type ReaderState,
  type UnnamedTurn,
} from "./reader-state.ts";
import {
  AGENT,
  attachMedia,
  countStored,
  findKnown,
  isOffBranch,
  storeBatch,
  toArrival,
  type CatchUpRequest,
  type CatchUpTurn,
} from "./store-rows.ts";
import { readNewRows, restartState, type MessageRow, type TranscriptRow } from "./transcript-rows.ts";

export type CatchUpResult =
  | {
      readonly kind: "caught-up";
      readonly stored: number;
      readonly turn: "none" | "committed" | "duplicate" | "unseen";
    }
  | { readonly kind: "missing" }
  | { readonly kind: "unavailable"; readonly reason: string };

export async function catchUp(request: CatchUpRequest): Promise<CatchUpResult> {
  const sessionId = request.session.id;
  const { owner } = request.session;
  let known = await request.engine.readSession({ sessionId, owner });
  if (
    known === null &&
    ((await joinFork(request)) || (request.moveCursor && (await makeFirstContact(request))))
  )
    known = await request.engine.readSession({ sessionId, owner });
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
  const parent = fromStart ? await readParent(request) : null;
  let stored = 0;
  for await (const read of readNewRows(reader, target, start, turn?.last)) {
    if (read.kind === "fenced")
      return { kind: "caught-up", stored, turn: turn === undefined ? "none" : "unseen" };
    if (read.kind !== "rows") return read;
    const left = read.rows
      .filter((row) => row.kind === "message" && isOffBranch(row))
      .map((row) => row.entryId);
    // A row that was stored while it was on the branch has to be hidden, which requires reading the whole transcript.
    if (!fromStart && (await findKnown(request, left)).size > 0) {
      return { kind: "restart", reason: "stored rows have left the branch" };
    }
    offBranch.push(...left);
    waiting.push(...read.rows);
    // Turns without ids are matched as a whole, so their rows must not be stored piece by piece.
    if (read.end === null && start.unnamed.length > 0) continue;
    const rows = waiting.splice(0);
    if (read.end === null) {
      const own = await dropCopied(request, parent, rows);
      stored += await storeBatch(request, await attachMedia(request, rows, own, fromStart));
      continue;
    }
    const named = await nameRows(request, rows, read.end.state);
    const own = await dropCopied(request, parent, named.rows);
    const whole = await attachMedia(request, rows, own, fromStart);
    const outcome = await storeLastBatch(request, whole, {
      start,
      state: named.state,
      sawLimit: read.end.sawLimit,
    });
    if (fromStart) {
      await engine.setBranch({ session, offBranch });
      // The whole transcript was read, so nothing is pending.
      await engine.showPending({ session });
    }
    return { kind: "caught-up", stored: stored + outcome.stored, turn: outcome.turn };
  }
  return { kind: "unavailable", reason: "the transcript ended without an end" };
}

/** Gives rows stored under provisional ids the ids of their entries, and removes those entries from the rows to store. */
async function nameRows(
  { engine, session }: CatchUpRequest,
  rows: readonly TranscriptRow[],
  state: ReaderState,
): Promise<{ rows: TranscriptRow[]; state: ReaderState }> {
  let left = [...rows];
  const still = [];
  for (const turn of state.unnamed) {
    const pairs = pairUnnamed(turn, left);
    if (pairs === null) {
      still.push(turn);
      continue;
    }
    const { between, labels } = pairs;
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

/** Which rows of the transcript a turn without ids stands for; null when the rows do not hold the whole turn. */
export function pairUnnamed(
  turn: UnnamedTurn,
  rows: readonly TranscriptRow[],
): { readonly between: readonly MessageRow[]; readonly labels: ReturnType<typeof matchUnnamedRows> } | null {
  const first = rows.findIndex((row) => row.entryId === turn.firstEntryId);
  const last = rows.findIndex((row) => row.entryId === turn.lastEntryId);
  if (first < 0 || last < first) return null;
  const between = rows
    .slice(first + 1, last)
    .filter((row): row is MessageRow => row.kind === "message" && !isOffBranch(row));
  return { between, labels: matchUnnamedRows(turn.rows, between) };
}

interface LastBatch {
  readonly start: ReaderState;
  /** The state after these rows. */
  readonly state: ReaderState;
  readonly sawLimit: boolean;
}

/** The rows after the last reset are stored with the advancement key and the new cursor, in one transaction. */
async function storeLastBatch(
  request: CatchUpRequest,
  rows: readonly TranscriptRow[],
  { start, state, sawLimit }: LastBatch,
): Promise<{ stored: number; turn: "none" | "committed" | "duplicate" | "unseen" }> {
  const { engine, session, turn } = request;
  const lastReset = rows.findLastIndex((row) => row.kind === "reset");
  let stored = await storeBatch(request, rows.slice(0, lastReset + 1));
  const closing = rows.slice(lastReset + 1);
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
    ...(commits
      ? { turn: { advancementKey: turn.advancementKey }, ...request.situation }
      : { isHistory: request.moveCursor }),
    origin: { agent: AGENT, model: request.situation?.model?.model },
    cursor: moves ? { value: cursor } : undefined,
  });
  stored += countStored(result);
  if (commits) return { stored, turn: result.duplicateTurn ? "duplicate" : "committed" };
  return { stored, turn: turn === undefined ? "none" : "unseen" };
}

function hideHeartbeat(row: MessageRow, turn: CatchUpTurn | undefined): MessageRow {
  if (turn?.isHeartbeat !== true || row.position < turn.first.seq * POSITION_STEP) return row;
  return { ...row, hidden: [...row.hidden, "heartbeat"] };
}

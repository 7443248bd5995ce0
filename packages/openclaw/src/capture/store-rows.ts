/**
 * Stores rows of a transcript: messages by their entry ids, the files they name after them, boundaries in place. Rows that are already stored
 * add nothing; a changed one adds a revision.
 */

import type { Arrival, Engine, IngestRequest, SessionRef } from "@lossless/core";
import { listMediaReferences, nameAttachment, readAttachments, type MediaSource } from "./media.ts";
import type { TranscriptReader, TranscriptTarget } from "./transcript.ts";
import type { NumberedEntry, MessageRow, ResetRow, TranscriptRow } from "./transcript-rows.ts";

/** The agent in the origin of this host's conversations. */
export const AGENT = "openclaw";

export interface CatchUpRequest {
  readonly engine: Engine;
  readonly reader: TranscriptReader;
  readonly target: TranscriptTarget;
  readonly session: SessionRef;
  /** False for reads outside turns: they store rows and leave the cursor. */
  readonly moveCursor: boolean;
  readonly turn?: CatchUpTurn;
  /** The source of files that messages name; without one, only the names are kept. */
  readonly media?: MediaSource | undefined;
  /** The model and room of the turn; when given, the engine watches the threshold of the conversation. */
  readonly situation?: TurnSituation;
}

/** A turn to be recorded with its last row. */
export interface CatchUpTurn {
  readonly advancementKey: string;
  readonly first: NumberedEntry;
  readonly last: NumberedEntry;
  /** Only a sign of life: stored, and left out of the context. */
  readonly isHeartbeat?: boolean;
}

export type TurnSituation = Pick<IngestRequest, "budgetTokens" | "model" | "contextWindow">;

/** Adds the files that messages name after them. For rows that already have their ids, only the files are left to store. */
export async function attachMedia(
  request: CatchUpRequest,
  read: readonly TranscriptRow[],
  left: readonly TranscriptRow[],
  fromStart: boolean,
): Promise<TranscriptRow[]> {
  const { media } = request;
  if (media === undefined) return [...left];
  const naming = read.filter(
    (row): row is MessageRow => row.kind === "message" && listMediaReferences(row.message).length > 0,
  );
  if (naming.length === 0) return [...left];
  const known = fromStart
    ? await findKnown(
        request,
        naming.map((row) => nameAttachment(row.entryId, 0)),
      )
    : new Set<string>();
  const attached = new Map<string, MessageRow[]>();
  for (const row of naming)
    if (!known.has(nameAttachment(row.entryId, 0)))
      attached.set(row.entryId, await readAttachments(row, media));
  const whole = left.flatMap((row) => {
    const own = attached.get(row.entryId) ?? [];
    attached.delete(row.entryId);
    return [row, ...own];
  });
  // Positions are given, so it does not matter that these come later.
  return [...[...attached.values()].flat(), ...whole];
}

export async function storeBatch(request: CatchUpRequest, rows: readonly TranscriptRow[]): Promise<number> {
  const { engine, session } = request;
  let stored = 0;
  for (const { messages, reset } of splitAtResets(rows)) {
    if (messages.length > 0)
      stored += countStored(
        await engine.ingest({ session, messages: messages.map(toArrival), isHistory: true }),
      );
    if (reset !== undefined) await recordReset(request, reset);
  }
  return stored;
}

/** Drops rows that are already stored. Resets are cheap and idempotent. */
export async function dropKnown(
  request: CatchUpRequest,
  rows: readonly TranscriptRow[],
): Promise<readonly TranscriptRow[]> {
  const known = await findKnown(
    request,
    rows.filter((row) => row.kind === "message").map((row) => row.entryId),
  );
  return rows.filter((row) => row.kind !== "message" || !known.has(row.entryId));
}

export async function findKnown(
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

export async function recordReset({ engine, session }: CatchUpRequest, reset: ResetRow): Promise<void> {
  const { entryId: eventId, reason, position, at } = reset;
  await engine.recordBoundary({ session, eventId, reason, position, at });
}

export function toArrival(row: MessageRow): Arrival {
  return {
    eventId: row.entryId,
    eventIdKind: "entry",
    message: row.message,
    position: row.position,
    createdAt: row.createdAt,
    hidden: row.hidden.length === 0 ? undefined : row.hidden,
  };
}

export function isOffBranch(row: MessageRow): boolean {
  return row.hidden.includes("branch");
}

export function countStored(result: { results: readonly { outcome: string }[] }): number {
  return result.results.filter((message) => message.outcome === "stored" || message.outcome === "revision")
    .length;
}

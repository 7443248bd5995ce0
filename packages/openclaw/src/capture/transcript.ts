/**
 * The host's transcript, read in pages through its own reader. Two views of one transcript: the visible messages of the active branch with their
 * numbers, and the raw events in the order they were written, which also hold resets and rows that left the branch. The host ships this module
 * without types, so its results are checked here and nowhere else.
 *
 * Reading never changes the transcript. Cursors are opaque and belong to the view that gave them.
 */

import type { AgentMessage } from "../host/host.ts";

export interface TranscriptTarget {
  readonly agentId: string;
  readonly sessionKey: string;
  readonly sessionId: string;
  readonly storePath?: string;
}

/** A message of the active branch. `seq` is its number there, from one. */
export interface VisibleEntry {
  readonly entryId: string;
  readonly seq: number;
}

/** An event as it was written. A few of the host's own events have no `id`. */
export interface RawEvent {
  readonly type: string;
  readonly id?: string;
  readonly timestamp?: string;
  readonly message?: AgentMessage;
  readonly reason?: string;
  readonly [field: string]: unknown;
}

export type TranscriptPage<Item> =
  | {
      readonly kind: "page";
      readonly items: readonly Item[];
      readonly cursor: string;
      readonly hasMore: boolean;
    }
  /** The cursor no longer fits the transcript; read from the start. */
  | { readonly kind: "restart"; readonly reason: string }
  /** The cursor is after the row that the current turn starts with: everything that may be read has been read. */
  | { readonly kind: "fenced" }
  /** This session has no transcript. */
  | { readonly kind: "missing" }
  | { readonly kind: "unavailable"; readonly reason: string };

export type ReadPage<Item> = (
  target: TranscriptTarget,
  cursor: string | null,
  limit: number,
) => Promise<TranscriptPage<Item>>;

export interface TranscriptReader {
  readonly readVisible: ReadPage<VisibleEntry>;
  readonly readRaw: ReadPage<RawEvent>;
}

type HostRead = (params: Record<string, unknown>) => Promise<unknown>;

interface HostAnswer {
  readonly kind: string;
  readonly cursor?: string;
  readonly reason?: string;
  readonly entries?: readonly VisibleEntry[];
  readonly events?: readonly { readonly event: RawEvent }[];
  readonly hasMore?: boolean;
  /** The size of the next row, when it alone is larger than a page. */
  readonly requiredBytes?: number;
}

/** The reader of the host this plugin runs in. It never throws: failures are results, because no turn may fail with them. */
export function createHostReader(): TranscriptReader {
  return {
    readVisible: (target, cursor, limit) =>
      answered(async () => {
        const { readSessionTranscriptVisibleMessageDelta: read } = await loadReaders();
        return toPage(await ask(read, { ...target, maxMessages: limit }, cursor), readEntries);
      }),
    readRaw: (target, cursor, limit) =>
      answered(async () => {
        const { readSessionTranscriptRawDelta: read } = await loadReaders();
        return toPage(await ask(read, { ...target, maxEvents: limit }, cursor), readEvents);
      }),
  };
}

function loadReaders(): Promise<typeof import("openclaw/plugin-sdk/session-transcript-runtime")> {
  return import("openclaw/plugin-sdk/session-transcript-runtime");
}

async function answered<Item>(read: () => Promise<TranscriptPage<Item>>): Promise<TranscriptPage<Item>> {
  try {
    return await read();
  } catch (error) {
    if (error instanceof Error && error.name === "SessionTranscriptReadFenceError") return { kind: "fenced" };
    return { kind: "unavailable", reason: String(error) };
  }
}

async function ask(
  read: HostRead,
  params: Record<string, unknown>,
  cursor: string | null,
): Promise<HostAnswer> {
  const withCursor = cursor === null ? params : { ...params, cursor };
  const answer = (await read(withCursor)) as HostAnswer;
  if (answer.kind !== "page" || answer.requiredBytes === undefined) return answer;
  return (await read({ ...withCursor, maxBytes: answer.requiredBytes })) as HostAnswer;
}

function readEntries({ entries = [] }: HostAnswer): VisibleEntry[] {
  return entries.map(({ entryId, seq }) => ({ entryId, seq }));
}

function readEvents({ events = [] }: HostAnswer): RawEvent[] {
  return events.map(({ event }) => event);
}

function toPage<Item>(
  answer: HostAnswer,
  readItems: (answer: HostAnswer) => readonly Item[],
): TranscriptPage<Item> {
  switch (answer.kind) {
    case "page":
      if (typeof answer.cursor !== "string")
        return { kind: "unavailable", reason: "the host's page has no cursor" };
      return {
        kind: "page",
        items: readItems(answer),
        cursor: answer.cursor,
        hasMore: answer.hasMore === true,
      };
    case "reset":
      return { kind: "restart", reason: answer.reason ?? "unknown" };
    case "missing":
      return { kind: "missing" };
    default:
      return { kind: "unavailable", reason: answer.reason ?? answer.kind };
  }
}

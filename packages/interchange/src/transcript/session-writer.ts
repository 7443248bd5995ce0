/**
 * Stores the events of one session in batches and counts the outcomes: for sources that are not lines, and so have no cursor. Their events are
 * named by id or by content, so that storing them again adds nothing.
 */

import { POSITION_STEP } from "@lossless/core";
import type { Arrival, HiddenReason, SessionRef } from "@lossless/core";
import type { ImportMark, JsonObject } from "@lossless/core/formats";

import { parseCursor, renderCursor, START } from "./cursor.ts";
import { EventIds, nameLine } from "./event-ids.ts";
import type { TranscriptFormat } from "../formats/format.ts";
import type { FormatName } from "../formats/names.ts";
import type { ImportTarget } from "./import-target.ts";
import { countRemoved, countUsed } from "./moved-lines.ts";
import { OriginReader } from "./origin-reader.ts";
import { createAbortError } from "./lines.ts";

const BATCH_EVENTS = 500;
const BATCH_BYTES = 2 * 1024 * 1024;

export interface SourceEvent {
  /** In their own buffer. */
  readonly bytes: Uint8Array;
  readonly id?: string | undefined;
  readonly createdAt?: number | undefined;
  readonly hidden: readonly HiddenReason[];
  /** The parsed bytes, if they name the session's origin. */
  readonly entry?: JsonObject | undefined;
}

export interface WrittenCounts {
  imported: number;
  skipped: number;
  revisions: number;
}

export class SessionWriter {
  readonly counts: WrittenCounts = { imported: 0, skipped: 0, revisions: 0 };
  conversationId: number | null = null;
  /** Why the settings prevent storing this session. */
  refusal: string | null = null;
  readonly #target: ImportTarget;
  readonly #session: SessionRef;
  readonly #format: FormatName;
  readonly #path: string;
  readonly #mark: ImportMark;
  readonly #signal: AbortSignal | undefined;
  readonly #ids = new EventIds();
  readonly #origin: OriginReader;
  #pending: Arrival[] = [];
  #pendingBytes = 0;
  /** Numbers of places that the session has used, by events that may be gone since. */
  #used = 0;
  #placed = 0;
  #lastTime: number | null = null;

  constructor(options: {
    target: ImportTarget;
    session: SessionRef;
    format: FormatName;
    path: string;
    mark: ImportMark;
    signal?: AbortSignal | undefined;
    /** Reads the origin of the session from an event. */
    readOrigin?: TranscriptFormat["readOrigin"];
  }) {
    this.#target = options.target;
    this.#session = options.session;
    this.#format = options.format;
    this.#path = options.path;
    this.#mark = options.mark;
    this.#signal = options.signal;
    this.#origin = new OriginReader({ name: options.format, readOrigin: options.readOrigin }, options.path);
  }

  /** Before the first event: what is new goes behind what was stored before, also if the source has fewer events by now. */
  async resume(readAll: () => Iterable<SourceEvent> | AsyncIterable<SourceEvent>): Promise<void> {
    const { id: sessionId, owner } = this.#session;
    const stored = parseCursor((await this.#target.readSession({ sessionId, owner }))?.cursor ?? null);
    if (stored.kind !== "import" || stored.cursor === null) return;
    this.#used = countUsed(stored.cursor);
    this.#placed = await countRemoved(this.#target, this.#session, this.#used, listEventIds(readAll()));
  }

  /** The next event of the session, in order. */
  async add(event: SourceEvent): Promise<void> {
    this.#placed += 1;
    this.#used = Math.max(this.#used, this.#placed);
    if (event.entry !== undefined) this.#origin.note(event.entry);
    this.#lastTime = event.createdAt ?? this.#lastTime;
    this.#pending.push({
      eventId: this.#ids.assign(nameLine(event.bytes, event.id)),
      bytes: event.bytes,
      position: this.#placed * POSITION_STEP,
      hidden: event.hidden,
      createdAt: this.#lastTime ?? undefined,
      isUndated: event.createdAt === undefined,
    });
    this.#pendingBytes += event.bytes.byteLength;
    if (this.#pending.length >= BATCH_EVENTS || this.#pendingBytes >= BATCH_BYTES) await this.flush();
  }

  async flush(): Promise<void> {
    if (this.#pending.length === 0 || this.refusal !== null) return;
    if (this.#signal?.aborted) throw createAbortError(this.#path);
    const messages = this.#pending;
    [this.#pending, this.#pendingBytes] = [[], 0];
    const { conversationId, results, skipped } = await this.#target.ingest({
      session: this.#session,
      messages,
      cursor: { value: renderCursor(this.#format, { ...START, lines: this.#used }) },
      import: this.#mark,
      origin: this.#origin.take(),
    });
    this.refusal = skipped ?? null;
    if (this.refusal === null) this.conversationId = conversationId;
    for (const { outcome } of results) {
      if (outcome === "stored") this.counts.imported += 1;
      else if (outcome === "revision") this.counts.revisions += 1;
      else this.counts.skipped += 1;
    }
  }
}

async function* listEventIds(
  events: Iterable<SourceEvent> | AsyncIterable<SourceEvent>,
): AsyncGenerator<string> {
  const ids = new EventIds();
  for await (const { bytes, id } of events) yield ids.assign(nameLine(bytes, id));
}

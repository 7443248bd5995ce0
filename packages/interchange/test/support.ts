/** Shared by the tests of the importers: a target in memory, temporary files, the real transcripts. */

import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

import { findSharedData, type Random } from "@lossless/testkit";

import type { Arrival, HiddenReason, IngestedMessage, SessionRef } from "@lossless/core";
import type { ImportTarget } from "../src/transcript/import.ts";

const SHARED_DATA = findSharedData();

interface MemoryEvent {
  readonly eventId: string;
  readonly versions: Uint8Array[];
  readonly position: number;
  readonly createdAt: number | undefined;
  readonly arrivedHidden: readonly HiddenReason[];
  isOffBranch: boolean;
}

interface MemorySession {
  readonly conversationId: number;
  readonly key: string;
  cursor: string | null;
  readonly events: Map<string, MemoryEvent>;
}

/** Keeps what an engine would keep, and counts the calls. */
export class MemoryTarget implements ImportTarget {
  readonly sessions = new Map<string, MemorySession>();
  readonly calls = { ingest: 0, knownEvents: 0, setBranch: 0, messages: 0 };
  /** Called before each batch is stored; throwing stands for a store that fails. */
  beforeIngest: (batch: number) => void | Promise<void> = () => {};

  /** The last batch of each sequence. */
  readonly #sequences = new Map<string, ReturnType<ImportTarget["ingest"]>>();

  async ingest(request: Parameters<ImportTarget["ingest"]>[0]): ReturnType<ImportTarget["ingest"]> {
    const { sequence } = request;
    const before = sequence === undefined ? undefined : this.#sequences.get(sequence);
    const stored = (before ?? Promise.resolve()).then(() => this.#store(request));
    if (sequence !== undefined) this.#sequences.set(sequence, stored);
    return stored;
  }

  async #store(request: Parameters<ImportTarget["ingest"]>[0]): ReturnType<ImportTarget["ingest"]> {
    this.calls.ingest += 1;
    this.calls.messages += request.messages.length;
    await this.beforeIngest(this.calls.ingest);
    const session = this.#open(request.session);
    const results = request.messages.map((arrival) => storeArrival(session, arrival));
    if (request.cursor) session.cursor = request.cursor.value;
    return { conversationId: session.conversationId, results };
  }

  async readSession({ sessionId }: { sessionId: string }): Promise<MemorySession | null> {
    return this.sessions.get(sessionId) ?? null;
  }

  async knownEvents({
    sessionId,
    eventIds,
  }: {
    sessionId: string;
    eventIds: readonly string[];
  }): Promise<string[]> {
    this.calls.knownEvents += 1;
    return eventIds.filter((eventId) => this.sessions.get(sessionId)?.events.has(eventId));
  }

  async findSessions({ eventId }: { eventId: string }): Promise<string[]> {
    return [...this.sessions].filter(([, session]) => session.events.has(eventId)).map(([id]) => id);
  }

  async relabelSession({
    from,
    session,
    cursor,
  }: Parameters<ImportTarget["relabelSession"]>[0]): Promise<boolean> {
    const old = this.sessions.get(from);
    if (old === undefined || this.sessions.has(session.id)) return false;
    this.sessions.set(session.id, { ...old });
    old.cursor = cursor;
    return true;
  }

  async setBranch(request: {
    session: SessionRef;
    offBranch: readonly string[];
  }): Promise<{ changed: number }> {
    this.calls.setBranch += 1;
    const off = new Set(request.offBranch);
    let changed = 0;
    for (const event of this.#open(request.session).events.values()) {
      if (event.isOffBranch !== off.has(event.eventId)) changed += 1;
      event.isOffBranch = off.has(event.eventId);
    }
    return { changed };
  }

  /** The events of one session by position, as text. */
  list(sessionId: string): { eventId: string; text: string; hidden: string; versions: number }[] {
    const events = [...(this.sessions.get(sessionId)?.events.values() ?? [])];
    events.sort((a, b) => a.position - b.position);
    return events.map((event) => {
      const reasons = new Set<string>(event.arrivedHidden.filter((reason) => reason !== "branch"));
      if (event.isOffBranch) reasons.add("branch");
      const hidden = [...reasons].sort().join("+");
      const text = Buffer.from(event.versions.at(-1) ?? []).toString("latin1");
      return { eventId: event.eventId, text, hidden, versions: event.versions.length };
    });
  }

  #open(ref: SessionRef): MemorySession {
    let session = this.sessions.get(ref.id);
    if (session === undefined) {
      session = { conversationId: this.sessions.size + 1, key: ref.key, cursor: null, events: new Map() };
      this.sessions.set(ref.id, session);
    }
    return session;
  }
}

function storeArrival(session: MemorySession, arrival: Arrival): IngestedMessage {
  const eventId = arrival.eventId ?? "";
  const bytes = arrival.bytes ?? new Uint8Array();
  const known = session.events.get(eventId);
  const base = { messageId: session.events.size + 1, eventId, seq: session.events.size + 1 };
  if (known?.versions.some((version) => Buffer.compare(version, bytes) === 0))
    return { ...base, outcome: "known" };
  if (known) {
    known.versions.push(bytes);
    return { ...base, outcome: "revision" };
  }
  session.events.set(eventId, {
    eventId,
    versions: [bytes],
    position: arrival.position ?? 0,
    createdAt: arrival.createdAt,
    arrivedHidden: arrival.hidden ?? [],
    isOffBranch: arrival.hidden?.includes("branch") ?? false,
  });
  return { ...base, outcome: "stored" };
}

const IMPORTED = /^(?:claude-code(?:-more)?|pi-v3-derived|pi)\/|^other-agents\/(?:openclaw__|pi__|claude__)/u;

/** The real transcripts in the formats that are imported; empty where the shared data is absent. */
export function listRealTranscripts(): string[] {
  return listTranscriptFiles().filter((path) => IMPORTED.test(relativeName(path)));
}

/** The real files of other agents, which an importer must refuse. */
export function listForeignTranscripts(): string[] {
  return listTranscriptFiles().filter((path) => !IMPORTED.test(relativeName(path)));
}

function listTranscriptFiles(): string[] {
  if (SHARED_DATA === null) return [];
  const entries = readdirSync(join(SHARED_DATA, "transcripts"), { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile());
  return files.map((entry) => join(entry.parentPath, entry.name)).sort();
}

function relativeName(path: string): string {
  return path.slice(join(SHARED_DATA ?? "", "transcripts").length + 1);
}

/** The lines an import must store, byte for byte (as latin1 text): all, but for a last one that is not finished. */
export function splitLines(bytes: Buffer): string[] {
  const lines = bytes.toString("latin1").split("\n");
  if (lines.at(-1) === "") lines.pop();
  return lines;
}

export function readLatin1Lines(path: string): string[] {
  return splitLines(readFileSync(path));
}

/** Places to cut `size` bytes at, in order, the last one at the end. */
export function cutRandomly(size: number, pieces: number, random: Random): number[] {
  const cuts = Array.from({ length: pieces - 1 }, () => random.below(size));
  return [...new Set([...cuts, size])].sort((a, b) => a - b);
}

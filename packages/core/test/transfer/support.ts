/** Shared by the tests of the importers: a target in memory, temporary files, the real transcripts, seeded chance. */

import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

import { onTestFinished } from "vitest";

import type { Arrival, HiddenReason, IngestedMessage, SessionRef } from "../../src/model/message.ts";
import type { ImportTarget } from "../../src/transfer/import.ts";

const ROOT = resolve(dirname(fileURLToPath(import.meta.url)), "../../../..");
const SHARED_DATA = process.env["LCM_SHARED_DATA"] ?? join(ROOT, "../shared/data");

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

  async ingest(request: {
    session: SessionRef;
    messages: readonly Arrival[];
    cursor?: { value: string };
  }): Promise<{
    conversationId: number;
    results: IngestedMessage[];
    skipped?: string | null;
  }> {
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

/** A directory that is gone after the test. */
export function makeTemporaryDirectory(): string {
  const directory = mkdtempSync(join(tmpdir(), "lcm-transfer-"));
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }));
  return directory;
}

/** The real transcripts in the formats that are imported; empty where the shared data is absent. */
export function listRealTranscripts(): string[] {
  const root = join(SHARED_DATA, "transcripts");
  if (statSync(root, { throwIfNoEntry: false }) === undefined) return [];
  const wanted = /^(?:claude-code|pi-v3-derived|pi)\/|^other-agents\/(?:openclaw__|pi__|claude__)/u;
  const files = readdirSync(root, { recursive: true, encoding: "utf8" }).filter((file) =>
    file.endsWith(".jsonl"),
  );
  return files
    .filter((file) => wanted.test(file))
    .sort()
    .map((file) => join(root, file));
}

/** The real files of other agents, which an importer must refuse. */
export function listForeignTranscripts(): string[] {
  const root = join(SHARED_DATA, "transcripts");
  if (statSync(root, { throwIfNoEntry: false }) === undefined) return [];
  const foreign = /^(?:codex|tau-bench|swe-agent|gemini-cli)\/|^other-agents\/(?!openclaw__|pi__|claude__)/u;
  const files = readdirSync(root, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  const paths = files.map((entry) => join(entry.parentPath, entry.name));
  return paths.filter((path) => foreign.test(path.slice(root.length + 1))).sort();
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

/** Numbers in [0, 1) that a seed repeats. */
export function createChance(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** Places to cut `size` bytes at, in order, the last one at the end. */
export function cutRandomly(size: number, pieces: number, chance: () => number): number[] {
  const cuts = Array.from({ length: pieces - 1 }, () => Math.floor(chance() * size));
  return [...new Set([...cuts, size])].sort((a, b) => a - b);
}

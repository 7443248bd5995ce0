/**
 * A transcript that behaves as the host's does: a tree of events in the order they were written, an active branch that can move, cursors
 * that stop fitting when it does, a fence before the current turn. Built by tests, read through the plugin's reader port.
 */

import type { AgentMessage, CommitTurnParams, EntryAnchor } from "../src/host/host.ts";
import type { RawEvent, TranscriptPage, TranscriptReader, VisibleEntry } from "../src/capture/transcript.ts";

export const SESSION_KEY = "agent:main:test";
export const SESSION_ID = "session-1";

export class FakeTranscript {
  readonly events: (RawEvent & { id: string; parentId: string | null })[] = [];
  /** While set, reads fail. */
  broken = false;
  /** Reads do not go beyond the row with this id while it is set. */
  fence: string | null = null;
  /** Rows per page, so that small transcripts have many pages. */
  pageSize = Infinity;
  reads = 0;
  #leaf: string | null = null;
  #generation = 1;

  /** A transcript that begins as a copy of another one, up to an entry, as the host makes it. */
  static fork(parent: FakeTranscript, upTo: string, parentSessionId = SESSION_ID): FakeTranscript {
    const child = new FakeTranscript();
    child.events.push({
      type: "session",
      id: "head",
      parentId: null,
      parentSession: `sqlite:main:${parentSessionId}:/store.sqlite`,
    });
    const end = parent.events.findIndex((event) => event.id === upTo);
    child.events.push(...parent.events.slice(0, end + 1).filter((event) => event.type !== "session"));
    child.#leaf = upTo;
    return child;
  }

  /** Names of the session this transcript belongs to. */
  sessionId = SESSION_ID;
  sessionKey = SESSION_KEY;

  /** Writes a message behind the active leaf. */
  say(role: string, content: unknown, fields: Record<string, unknown> = {}): string {
    const number = this.events.length + 1;
    const prefix = this.sessionId === SESSION_ID ? "" : `${this.sessionId}-`;
    return this.#append("message", `${prefix}e${number}`, {
      message: { role, content, timestamp: number, ...fields },
    });
  }

  note(content: string): string {
    return this.#append("custom_message", `n${this.events.length + 1}`, {
      customType: "note",
      content,
      display: true,
    });
  }

  /** Writes an event of the host that is no message. */
  mark(type: string): string {
    return this.#append(type, `m${this.events.length + 1}`, {});
  }

  reset(reason: "new" | "reset"): string {
    return this.#append("reset", `r${this.events.length + 1}`, { reason });
  }

  /** Makes an earlier entry the leaf: what came after it leaves the branch. */
  moveLeaf(entryId: string): void {
    this.events.push({
      type: "leaf",
      id: `l${this.events.length + 1}`,
      parentId: entryId,
      targetId: entryId,
    });
    this.#leaf = entryId;
  }

  /** Ends every cursor, as a rewrite of the transcript does. */
  rewrite(): void {
    this.#generation += 1;
  }

  /** Changes what an entry says and leaves its id, as an edit in the host does. */
  edit(entryId: string, content: unknown): void {
    const index = this.events.findIndex((event) => event.id === entryId);
    const event = this.events[index]!;
    this.events[index] = { ...event, message: { ...event.message!, content } };
    this.rewrite();
  }

  /** What the host hands over for the turn between two rows, both included. */
  turn(firstId: string, lastId: string, advancementKey = `turn-${firstId}`): CommitTurnParams {
    const branch = this.#branch();
    const ids = branch.map((event) => event.id);
    const rows = branch.slice(ids.indexOf(firstId), ids.indexOf(lastId) + 1);
    return {
      sessionId: this.sessionId,
      sessionKey: this.sessionKey,
      advancementKey,
      admission: this.#anchor(firstId),
      terminal: this.#anchor(lastId),
      messages: rows.map((event) => event.message!),
    };
  }

  /** Ids of message rows that are not on the active branch. */
  get offBranch(): string[] {
    const branch = new Set(this.#branch().map((event) => event.id));
    return this.messages.map((row) => row.id).filter((id) => !branch.has(id));
  }

  get messages(): { id: string; message: AgentMessage }[] {
    return this.events
      .filter((event) => event.type === "message")
      .map((event) => ({ id: event.id, message: event.message! }));
  }

  readonly reader: TranscriptReader = {
    readVisible: async (_target, cursor, limit) =>
      this.#read(cursor, limit, this.#visible(), (entry) => entry.entryId),
    readRaw: async (_target, cursor, limit) =>
      this.#read(cursor, limit, this.#rawUpToFence(), (event) => event.id!),
  };

  #append(type: string, id: string, fields: Record<string, unknown>): string {
    this.events.push({
      type,
      id,
      parentId: this.#leaf,
      timestamp: new Date(this.events.length + 1).toISOString(),
      ...fields,
    });
    this.#leaf = id;
    return id;
  }

  /** Messages of the active branch, oldest first. */
  #branch(): { id: string; message?: AgentMessage }[] {
    const byId = new Map(this.events.map((event) => [event.id, event]));
    const branch = [];
    for (let at = this.#leaf; at !== null; at = byId.get(at)!.parentId) branch.push(byId.get(at)!);
    return branch.reverse().filter((event) => event.type === "message");
  }

  #visible(): VisibleEntry[] {
    const entries = this.#branch().map((event, index) => ({ entryId: event.id, seq: index + 1 }));
    const end = this.fence === null ? -1 : entries.findIndex((entry) => entry.entryId === this.fence);
    return end < 0 ? entries : entries.slice(0, end);
  }

  #rawUpToFence(): RawEvent[] {
    const end = this.fence === null ? -1 : this.events.findIndex((event) => event.id === this.fence);
    return end < 0 ? this.events : this.events.slice(0, end);
  }

  #anchor(entryId: string): EntryAnchor {
    const activeMessagePosition = this.#branch().findIndex((event) => event.id === entryId);
    return {
      agentId: "main",
      sessionId: this.sessionId,
      sessionKey: this.sessionKey,
      entryId,
      activeMessagePosition,
    };
  }

  #read<Item>(
    cursor: string | null,
    limit: number,
    all: readonly Item[],
    idOf: (item: Item) => string,
  ): TranscriptPage<Item> {
    this.reads += 1;
    if (this.broken) return { kind: "unavailable", reason: "told to fail" };
    if (this.events.length === 0) return { kind: "missing" };
    const [generation, after, count] =
      cursor === null ? [this.#generation, null, 0] : (JSON.parse(cursor) as [number, string | null, number]);
    if (generation !== this.#generation) return { kind: "restart", reason: "generation_mismatch" };
    const start = after === null ? 0 : all.findIndex((item) => idOf(item) === after) + 1;
    if (after !== null && start === 0)
      return this.fence === null ? { kind: "restart", reason: "anchor_missing" } : { kind: "fenced" };
    if (start !== count) return { kind: "restart", reason: "anchor_moved" };
    const items = all.slice(start, start + Math.min(limit, this.pageSize));
    const last = items.at(-1);
    const next =
      last === undefined ? [generation, after, count] : [generation, idOf(last), start + items.length];
    return { kind: "page", items, cursor: JSON.stringify(next), hasMore: start + items.length < all.length };
  }
}

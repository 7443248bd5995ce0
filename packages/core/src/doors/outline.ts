/**
 * The outline of a conversation: of every message its id, place, role, size and time, in order, for code that needs all of them: the timeline,
 * the turns, the messages under a summary. Kept in memory in columns, about fifty bytes per message, and extended as the conversation grows. It
 * is loaded in slices. Each caller continues where others stopped; background callers may pause between two slices.
 */
import type { Engine } from "../engine/engine.ts";
import type { Scope } from "../engine/conversations.ts";
import type { ConversationRow, Outline } from "../store/rows.ts";

/** A message in a list of many: enough to name it. */
export interface OutlineRow {
  readonly messageId: number;
  readonly seq: number;
  readonly position: number;
  readonly role: string;
  /** What it adds to the conversation: nothing when it is hidden or revises an earlier one. */
  readonly tokens: number;
  readonly createdAt: number;
}

/** Short, so that interactive requests get their turn in between. */
const SLICE = 5_000;
/** Conversations that are cached at a time. */
const KEPT = 8;

/** An outline whose end is not loaded yet. */
interface Growing {
  readonly parts: Outline[];
  /** The slice that is being loaded. */
  reading: Promise<void> | null;
  whole: Outline | null;
}

export class Outlines {
  readonly #engine: Engine;
  readonly #scope: Scope;
  readonly #kept = new Map<number, Outline>();
  readonly #growing = new Map<number, Growing>();

  constructor(engine: Engine, scope: Scope) {
    this.#engine = engine;
    this.#scope = scope;
  }

  async read(conversation: ConversationRow, pause: () => Promise<void> = goOn): Promise<Outline> {
    const { conversationId, messages } = conversation;
    const known = this.#kept.get(conversationId);
    if (known?.messageIds.length === messages) return known;
    const grown = await this.#grow(conversationId, known, pause);
    // Late rows belong in the middle: then everything is reloaded.
    const isShort = grown.messageIds.length < messages && known !== undefined;
    return isShort ? this.#grow(conversationId, undefined, pause) : grown;
  }

  /** Of several callers, one loads each slice. */
  async #grow(
    conversationId: number,
    known: Outline | undefined,
    pause: () => Promise<void>,
  ): Promise<Outline> {
    const begun: Growing = { parts: known ? [known] : [], reading: null, whole: null };
    const growing = this.#growing.get(conversationId) ?? begun;
    this.#growing.set(conversationId, growing);
    for (;;) {
      await pause();
      if (growing.whole) return growing.whole;
      growing.reading ??= this.#readSlice(conversationId, growing).finally(() => {
        growing.reading = null;
      });
      await growing.reading;
    }
  }

  async #readSlice(conversationId: number, growing: Growing): Promise<void> {
    const last = growing.parts.at(-1);
    const after = last && ([last.positions.at(-1) ?? -1, last.seqs.at(-1) ?? -1] as const);
    const request = { ...this.#scope, conversationId, limit: SLICE, after: after ?? null };
    const slice = await this.#engine.readOutline(request);
    if (slice.messageIds.length > 0) growing.parts.push(slice);
    if (slice.messageIds.length < SLICE) this.#keep(conversationId, growing);
  }

  #keep(conversationId: number, growing: Growing): void {
    growing.whole = joinOutlines(growing.parts);
    this.#growing.delete(conversationId);
    this.#kept.delete(conversationId);
    this.#kept.set(conversationId, growing.whole);
    const [oldest] = this.#kept.keys();
    if (this.#kept.size > KEPT && oldest !== undefined) this.#kept.delete(oldest);
  }
}

const goOn = (): Promise<void> => Promise.resolve();

export function joinOutlines(parts: readonly Outline[]): Outline {
  const roleNames = [...new Set(parts.flatMap((part) => part.roleNames))];
  const length = parts.reduce((sum, { messageIds }) => sum + messageIds.length, 0);
  const join = (column: (part: Outline) => Float64Array): Float64Array => {
    const joined = new Float64Array(length);
    let at = 0;
    for (const part of parts) {
      joined.set(column(part), at);
      at += column(part).length;
    }
    return joined;
  };
  const roles = new Uint16Array(length);
  let at = 0;
  for (const part of parts) {
    const numbers = part.roleNames.map((name) => roleNames.indexOf(name));
    for (const role of part.roles) roles[at++] = numbers[role] ?? 0;
  }
  return {
    messageIds: join(({ messageIds }) => messageIds),
    seqs: join(({ seqs }) => seqs),
    positions: join(({ positions }) => positions),
    tokens: join(({ tokens }) => tokens),
    createdAts: join(({ createdAts }) => createdAts),
    roles,
    roleNames,
  };
}

export function rowAt(outline: Outline, index: number): OutlineRow {
  const at = (column: Float64Array): number => column[index] ?? 0;
  return {
    messageId: at(outline.messageIds),
    seq: at(outline.seqs),
    position: at(outline.positions),
    role: outline.roleNames[outline.roles[index] ?? 0] ?? "",
    tokens: at(outline.tokens),
    createdAt: at(outline.createdAts),
  };
}

/** In a sorted column: the first index with this value or a greater one. */
export function findFrom(column: Float64Array, value: number): number {
  let low = 0;
  let high = column.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((column[middle] ?? 0) < value) low = middle + 1;
    else high = middle;
  }
  return low;
}

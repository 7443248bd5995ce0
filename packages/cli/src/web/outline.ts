/**
 * The outline of a conversation: of every message its id, place, role, size and time, in order, for what looks at all of them: the timeline,
 * the turns, the messages under a summary. Kept in memory, some fifty bytes a message, and extended as the conversation grows.
 */
import type { Engine, Scope } from "@lossless/core/engine.ts";
import type { ConversationRow, Outline } from "@lossless/core/store/store.ts";
import type { OutlineRow } from "./answers.ts";

/** Short, so that what somebody waits for gets its turn in between. */
const PAGE = 10_000;
/** Conversations that are remembered at a time. */
const KEPT = 8;

interface Kept {
  rows: OutlineRow[];
  /** The place of the last row. */
  cursor: readonly [position: number, seq: number] | null;
}

export class Outlines {
  readonly #engine: Engine;
  readonly #scope: Scope;
  readonly #kept = new Map<number, Kept>();
  readonly #building = new Map<number, Promise<readonly OutlineRow[]>>();

  constructor(engine: Engine, scope: Scope) {
    this.#engine = engine;
    this.#scope = scope;
  }

  /** Of several callers one does the work. */
  read(conversation: ConversationRow): Promise<readonly OutlineRow[]> {
    const { conversationId } = conversation;
    const running = this.#building.get(conversationId);
    if (running) return running;
    const work = this.#extend(conversation).finally(() => this.#building.delete(conversationId));
    this.#building.set(conversationId, work);
    return work;
  }

  async #extend({ conversationId, messages }: ConversationRow): Promise<readonly OutlineRow[]> {
    const known = this.#kept.get(conversationId) ?? { rows: [], cursor: null };
    if (known.rows.length === messages) return known.rows;
    let grown = await this.#readOn(conversationId, known);
    // Late rows have their place in the middle: then everything is read again.
    if (grown.rows.length < messages && known.cursor !== null) {
      grown = await this.#readOn(conversationId, { rows: [], cursor: null });
    }
    this.#kept.delete(conversationId);
    this.#kept.set(conversationId, grown);
    const [oldest] = this.#kept.keys();
    if (this.#kept.size > KEPT && oldest !== undefined) this.#kept.delete(oldest);
    return grown.rows;
  }

  async #readOn(conversationId: number, { rows, cursor }: Kept): Promise<Kept> {
    const all = [...rows];
    let after = cursor;
    for (;;) {
      const page = await this.#engine.readOutline({ ...this.#scope, conversationId, limit: PAGE, after });
      appendRows(all, page);
      const last = all.at(-1);
      if (last) after = [last.position, last.seq];
      if (page.messageIds.length < PAGE) return { rows: all, cursor: after };
    }
  }
}

function appendRows(rows: OutlineRow[], page: Outline): void {
  const at = (column: Float64Array | Uint16Array, index: number): number => column[index] ?? 0;
  for (let i = 0; i < page.messageIds.length; i++) {
    rows.push({
      messageId: at(page.messageIds, i),
      seq: at(page.seqs, i),
      position: at(page.positions, i),
      role: page.roleNames[at(page.roles, i)] ?? "",
      tokens: at(page.tokens, i),
      createdAt: at(page.createdAts, i),
    });
  }
}

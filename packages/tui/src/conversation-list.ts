/**
 * The conversations that match a filter, in the chosen order, loaded page by page while scrolling. Conversations that do not match are not kept, so
 * that a filter can go through any number.
 */
import type { ConversationOrder, HeadedConversation, Engine, Scope } from "@lossless/core";

const PAGE = 200;
/** Nobody scrolls through more rows than this; the filter finds the rest. */
const MAX_ROWS = 20_000;

export class ConversationList {
  readonly #engine: Engine;
  readonly #scope: Scope;
  readonly filter: string;
  readonly order: ConversationOrder;
  rows: HeadedConversation[] = [];
  #next: string | null = null;
  #isBegun = false;

  constructor(engine: Engine, scope: Scope, filter: string, order: ConversationOrder) {
    this.order = order;
    this.#engine = engine;
    this.#scope = scope;
    this.filter = filter.trim().toLowerCase();
  }

  get isWhole(): boolean {
    return this.#isBegun && this.#next === null;
  }

  /** Loads until there are this many rows, or all. */
  async readUpTo(count: number): Promise<void> {
    while (!this.isWhole && this.rows.length < Math.min(count, MAX_ROWS)) {
      const page = await this.#engine.listConversations({
        ...this.#scope,
        limit: PAGE,
        after: this.#next,
        order: this.order,
        unlisted: false,
      });
      this.#isBegun = true;
      this.#next = page.next;
      for (const row of page.items) if (matchesFilter(row, this.filter)) this.rows.push(row);
    }
  }
}

/** Every word of the filter occurs somewhere in the row. */
export function matchesFilter(row: HeadedConversation, filter: string): boolean {
  if (filter === "") return true;
  const { heading, project, agent, branch, model, tags } = row;
  const state = row.archivedAt === null ? "active" : "archived";
  const ids = [row.conversationId, row.sessionKey, row.sessionId, row.owner];
  const text = [heading, project, agent, branch, model, ...tags, state, ...ids].join(" ").toLowerCase();
  return filter.split(/\s+/).every((word) => text.includes(word));
}

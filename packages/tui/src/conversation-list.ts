/**
 * The conversations that match a filter, newest first, read page by page as one scrolls. What does not match is not kept, so that a filter
 * may look through any number of conversations.
 */
import type { HeadedConversation, Engine, Scope } from "@lossless/core";

const PAGE = 200;
/** More rows than this nobody scrolls through; the filter finds the rest. */
const MAX_ROWS = 20_000;

export class ConversationList {
  readonly #engine: Engine;
  readonly #scope: Scope;
  readonly filter: string;
  rows: HeadedConversation[] = [];
  #next: string | null = null;
  #isBegun = false;

  constructor(engine: Engine, scope: Scope, filter: string) {
    this.#engine = engine;
    this.#scope = scope;
    this.filter = filter.trim().toLowerCase();
  }

  get isWhole(): boolean {
    return this.#isBegun && this.#next === null;
  }

  /** Reads on until there are so many rows, or all. */
  async readUpTo(count: number): Promise<void> {
    while (!this.isWhole && this.rows.length < Math.min(count, MAX_ROWS)) {
      const page = await this.#engine.listConversations({
        ...this.#scope,
        limit: PAGE,
        after: this.#next,
        order: "newest",
        unlisted: false,
      });
      this.#isBegun = true;
      this.#next = page.next;
      for (const row of page.items) if (matchesFilter(row, this.filter)) this.rows.push(row);
    }
  }
}

/** Every word of the filter stands somewhere in what the row shows. */
export function matchesFilter(row: HeadedConversation, filter: string): boolean {
  if (filter === "") return true;
  const { heading, project, agent, branch, model, tags } = row;
  const state = row.archivedAt === null ? "active" : "archived";
  const ids = [row.conversationId, row.sessionKey, row.sessionId, row.owner];
  const text = [heading, project, agent, branch, model, ...tags, state, ...ids].join(" ").toLowerCase();
  return filter.split(/\s+/).every((word) => text.includes(word));
}

/** Messages by page: by number, by key, the page that contains one, or the one that ends with the newest. */
import { EngineError } from "@lossless/core";
import type { ConversationRow, Engine, Scope } from "@lossless/core";
import type { MessageJson, MessagePage } from "./api-types.ts";
import { toMessageJson, toUnreadable } from "./message-json.ts";
import { ANY_ID, readNumber } from "./query.ts";

/** Longer parts are cut in a page. */
const PAGE_CHARS = 6_000;
const MAX_MESSAGES = 200;

export class MessagePages {
  readonly #engine: Engine;
  readonly #scope: Scope;

  constructor(engine: Engine, scope: Scope) {
    this.#engine = engine;
    this.#scope = scope;
  }

  async read(conversation: ConversationRow, query: URLSearchParams): Promise<MessagePage> {
    const { conversationId, messages: total } = conversation;
    const limit = readNumber(query, "limit", { least: 1, most: MAX_MESSAGES, otherwise: 50 });
    if (query.has("after") || query.get("from") === "start") {
      const page = await this.#engine.listMessages({
        ...this.#scope,
        conversationId,
        limit,
        after: query.get("after"),
      });
      const items = await this.#readMessages(page.items.map(({ messageId }) => messageId));
      return { total, at: null, items, next: page.next };
    }
    const at = await this.#chooseStart(conversation, query, limit);
    const ids = await this.#engine.listMessageIds({ ...this.#scope, conversationId, at, limit });
    return { total, at, items: await this.#readMessages(ids), next: null };
  }

  /** Pages that contain a message begin at a multiple of their length, like consecutive pages. */
  async #chooseStart(
    { conversationId, messages }: ConversationRow,
    query: URLSearchParams,
    limit: number,
  ): Promise<number> {
    if (query.get("from") === "end") return Math.max(0, messages - limit);
    if (!query.has("around"))
      return readNumber(query, "at", { least: 0, most: Number.MAX_SAFE_INTEGER, otherwise: 0 });
    const messageId = readNumber(query, "around", ANY_ID);
    const found = await this.#engine.locateMessage({ ...this.#scope, messageId });
    if (found?.conversationId === conversationId) return Math.floor(found.number / limit) * limit;
    throw new EngineError("not_found", `cannot find msg_${messageId} in conversation ${conversationId}`);
  }

  async #readMessages(ids: readonly number[]): Promise<MessageJson[]> {
    const all = await Promise.all(ids.map((messageId) => this.#readShort(messageId)));
    return all.flatMap((message) => message ?? []);
  }

  /** An unreadable message reports why, and the others are still shown. */
  async #readShort(messageId: number): Promise<MessageJson | null> {
    try {
      const message = await this.#engine.readMessage({ ...this.#scope, messageId });
      return message && toMessageJson(message, PAGE_CHARS);
    } catch (error) {
      return toUnreadable(messageId, error instanceof Error ? error.message : String(error));
    }
  }
}

/**
 * The summary graphs of the conversations that were looked at last, without texts. Reading one of thousands of summaries takes longer than a
 * key may take, so it is read ahead while a conversation is on the screen, and read again only when its summaries have changed.
 */
import type { HeadedConversation, Engine, Scope } from "@lossless/core";
import { buildNodes, type GraphNode } from "./graph-lines.ts";

export type Nodes = ReadonlyMap<string, GraphNode>;

const KEPT = 4;

export class GraphBook {
  readonly #engine: Engine;
  readonly #scope: Scope;
  readonly #kept = new Map<number, { readonly version: string; readonly nodes: Promise<Nodes> }>();

  constructor(engine: Engine, scope: Scope) {
    this.#engine = engine;
    this.#scope = scope;
  }

  /** The graph as it is now. */
  async read(conversationId: number): Promise<Nodes> {
    const row = await this.#engine.readConversation({ ...this.#scope, conversationId });
    return row === null ? new Map() : this.#readAt(row);
  }

  /** Reads it for later; what fails is told when it is asked for. */
  prepare(row: HeadedConversation): void {
    if (row.summaries > 0) this.#readAt(row).catch(() => undefined);
  }

  #readAt({ conversationId, foldRevision, summaries }: HeadedConversation): Promise<Nodes> {
    const version = `${foldRevision}:${summaries}`;
    const known = this.#kept.get(conversationId);
    if (known?.version === version) return known.nodes;
    const nodes = this.#engine.readGraph({ ...this.#scope, conversationId }).then(buildNodes);
    this.#kept.delete(conversationId);
    this.#kept.set(conversationId, { version, nodes });
    nodes.catch(() => this.#kept.delete(conversationId));
    const [oldest] = this.#kept.keys();
    if (this.#kept.size > KEPT && oldest !== undefined) this.#kept.delete(oldest);
    return nodes;
  }

  /** After a change that no version tells of, such as a text that gave way to another. */
  forget(): void {
    this.#kept.clear();
  }
}

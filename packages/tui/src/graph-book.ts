/**
 * A cache of the summary graphs of recently viewed conversations, without texts. Loading thousands of summaries takes longer than a key may
 * take, so a graph is loaded in advance while a conversation is on the screen, and reloaded only when its summaries have changed.
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

  /** The current graph. */
  async read(conversationId: number): Promise<Nodes> {
    const row = await this.#engine.readConversation({ ...this.#scope, conversationId });
    return row === null ? new Map() : this.#readAt(row);
  }

  /** Loads it in advance; a failure is reported when it is read. */
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

  /** For a change that no version shows, such as a replaced text. */
  forget(): void {
    this.#kept.clear();
  }
}

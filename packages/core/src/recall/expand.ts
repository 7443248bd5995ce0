/**
 * Walks from summaries down to the original words, breadth first, within a token limit. Text is verbatim; what exceeds the cap is named,
 * with the call that gets it.
 */
import type { NextStep } from "../model/next-step.ts";
import { EngineError } from "../model/errors.ts";
import { formatMessageId } from "../model/ids.ts";
import { estimateTextTokens } from "../text/tokens.ts";
import type { SummaryNode } from "../store/folding.ts";
import type { Store } from "../store/store.ts";
import { cutMessage, readReference, readScope, readSummary } from "./describe.ts";
import type { DescribedMessage } from "./describe.ts";
import type { Reach, ScopeRequest } from "./reach.ts";

export interface ExpandRequest extends ScopeRequest {
  readonly summaryIds?: readonly string[];
  /** Instead of ids: the summaries found by full text. */
  readonly query?: string;
  /** How many steps down; 3 when absent. */
  readonly maxDepth?: number;
  readonly tokenCap?: number;
  /** False: only the summaries below, without the messages. */
  readonly includeMessages?: boolean;
}

export interface ExpandedSummary {
  readonly id: string;
  readonly conversationId: number;
  readonly kind: "leaf" | "condensed";
  readonly depth: number;
  readonly tokens: number;
  readonly earliestAt: number;
  readonly latestAt: number;
  readonly parentIds: readonly string[];
  readonly sourceMessageIds: readonly string[];
  /** Null if the cap was used up before it. */
  readonly content: string | null;
}

export interface ExpandResult {
  readonly summaries: ExpandedSummary[];
  readonly messages: DescribedMessage[];
  readonly citedIds: string[];
  readonly totalTokens: number;
  readonly truncated: boolean;
  /** What was not reached: ids, and how to get them. */
  readonly left: {
    readonly summaryIds: string[];
    readonly messageIds: string[];
    /** How to read what was left out. */
    readonly step: NextStep | null;
  };
}

export const DEFAULT_EXPAND_DEPTH = 3;
/** Frame of a message or summary in the output. */
const FRAME_TOKENS = 12;

export async function expand(
  store: Store,
  request: Omit<ExpandRequest, "query">,
  reach: Reach,
  options: {
    readonly tokenCap: number;
    readonly maxDepth: number;
    /** Messages that come first, the best first; the others follow in the order of the conversation. */
    readonly firstIds?: readonly number[];
  },
): Promise<ExpandResult> {
  const walk = new Walk(store, reach, options.tokenCap, options.firstIds ?? []);
  const ids = (request.summaryIds ?? []).map((text) => toSummaryId(text, reach));
  await walk.run(ids, options.maxDepth, request.includeMessages ?? true);
  return walk.answer();
}

function toSummaryId(text: string, { grant }: Reach): string {
  const reference = readReference(text);
  if (reference.kind === "summary") return reference.id;
  throw new EngineError("usage", `cannot expand ${text}: only summaries are expanded`, {
    step: grant === null ? { kind: "open_ids", ids: [text] } : undefined,
    hint: "pass ids that begin with sum_",
  });
}

class Walk {
  #store: Store;
  #ranks: ReadonlyMap<number, number>;
  #reach: Reach;
  #room: number;
  #cap: number;
  #summaries: ExpandedSummary[] = [];
  #messages: DescribedMessage[] = [];
  #leftSummaries: string[] = [];
  #left: LeftMessage[] = [];
  #isCut = false;

  constructor(store: Store, reach: Reach, tokenCap: number, firstIds: readonly number[]) {
    this.#store = store;
    this.#ranks = new Map(firstIds.map((id, rank) => [id, rank]));
    this.#reach = reach;
    this.#room = tokenCap;
    this.#cap = tokenCap;
  }

  async run(roots: readonly string[], maxDepth: number, includeMessages: boolean): Promise<void> {
    const seen = new Set<string>();
    let level = [...new Set(roots)];
    for (let depth = 0; level.length > 0; depth++) {
      const below: string[] = [];
      const leaves: SummaryNode[] = [];
      for (const id of level) {
        if (seen.has(id)) continue;
        seen.add(id);
        const node = await readSummary(this.#store, this.#reach, id);
        // The caller already has the text of the root itself; it asked for what is below.
        const isShown = depth > 0 && this.#pay(node.tokens);
        this.#summaries.push(toExpanded(node, isShown || depth === 0 ? node.content : null));
        if (depth > 0 && !isShown) this.#leftSummaries.push(id);
        below.push(...node.sourceIds);
        if (node.messageIds.length > 0) leaves.push(node);
      }
      if (includeMessages) await this.#addMessages(leaves);
      if (depth + 1 > maxDepth) {
        this.#leftSummaries.push(...below.filter((id) => !seen.has(id)));
        return;
      }
      level = below;
    }
  }

  async #addMessages(leaves: readonly SummaryNode[]): Promise<void> {
    const below = leaves.flatMap(({ messageIds, conversationId, summaryId }) =>
      messageIds.map((messageId) => ({ messageId, conversationId, summaryId })),
    );
    const ranked = below.filter(({ messageId }) => this.#ranks.has(messageId));
    const rankOf = ({ messageId }: { messageId: number }): number => this.#ranks.get(messageId) ?? 0;
    const order = new Set([...ranked.toSorted((a, b) => rankOf(a) - rankOf(b)), ...below]);
    for (const next of order) {
      if (this.#room <= FRAME_TOKENS || !(await this.#addMessage(next.messageId))) break;
      order.delete(next);
    }
    // In conversation order, so that the rest can be named as a range.
    for (const { messageId, conversationId, summaryId } of below.filter((one) => order.has(one)))
      this.#left.push({ id: formatMessageId(messageId), conversationId, summaryId });
  }

  /** Adds a message; false when it had to be cut, and with it everything after it. */
  async #addMessage(messageId: number): Promise<boolean> {
    const [text] = await this.#store.readTexts([messageId], readScope(this.#reach));
    if (!text) return true;
    const message = cutMessage(text, 0, this.#room - FRAME_TOKENS);
    this.#messages.push(message);
    this.#room -= estimateTextTokens(message.text) + FRAME_TOKENS;
    if (message.textLeft === 0) return true;
    this.#isCut = true;
    this.#room = 0;
    return false;
  }

  #pay(tokens: number): boolean {
    const cost = tokens + FRAME_TOKENS;
    if (cost > this.#room) return false;
    this.#room -= cost;
    return true;
  }

  /** A sub-agent can open only summaries: it is given the first of those that were not fully read. */
  #next(summaryIds: readonly string[]): NextStep | null {
    if (this.#reach.grant === null) return stepFor(summaryIds, this.#left);
    const id = this.#left[0]?.summaryId ?? summaryIds[0];
    return id === undefined ? null : { kind: "expand_granted", ids: [id] };
  }

  answer(): ExpandResult {
    const summaryIds = [...new Set(this.#leftSummaries)];
    const messageIds = [...new Set(this.#left.map(({ id }) => id))];
    const truncated = this.#isCut || summaryIds.length + messageIds.length > 0;
    return {
      summaries: this.#summaries,
      messages: this.#messages,
      citedIds: [...this.#summaries.map(({ id }) => id), ...this.#messages.map(({ id }) => id)],
      totalTokens: Math.min(this.#cap, this.#cap - this.#room),
      truncated,
      left: { summaryIds, messageIds, step: this.#next(summaryIds) },
    };
  }
}

interface LeftMessage {
  readonly id: string;
  readonly conversationId: number;
  readonly summaryId: string;
}

/** A range is within one conversation, so each conversation gets a separate one. */
function stepFor(summaryIds: readonly string[], left: readonly LeftMessage[]): NextStep | null {
  const ranges = [...Map.groupBy(left, ({ conversationId }) => conversationId).values()].map((messages) => {
    const [first, last] = [messages[0]?.id, messages.at(-1)?.id];
    return first === last ? `${first}` : `${first}..${last}`;
  });
  if (ranges.length > 0) return { kind: "open_ids", ids: ranges };
  const [summary] = summaryIds;
  return summary === undefined ? null : { kind: "open_ids", ids: [summary] };
}

function toExpanded(node: SummaryNode, content: string | null): ExpandedSummary {
  const { summaryId, conversationId, kind, depth, tokens, earliestAt, latestAt, sourceIds } = node;
  return {
    id: summaryId,
    conversationId,
    kind,
    depth,
    tokens,
    earliestAt,
    latestAt,
    parentIds: sourceIds,
    sourceMessageIds: node.messageIds.map(formatMessageId),
    content,
  };
}

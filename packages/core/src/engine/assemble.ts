/** The engine's verb for assembling a context for a budget. Read-only: it neither writes nor waits for folding, and calls no model. */
import { assembleContext } from "../assemble/assemble.ts";
import type { AssembledContext } from "../assemble/assemble.ts";
import { listStretches } from "../assemble/choose.ts";
import type { ChosenItem } from "../assemble/choose.ts";
import { isStoredAsRange, toForkItems } from "../assemble/fork-front.ts";
import type { Provider } from "../assemble/grammars.ts";
import { EngineError } from "../model/errors.ts";
import { isSubagentKey } from "../settings/session-patterns.ts";
import { estimateSentTokens } from "../text/tokens.ts";
import { buildCue } from "../recall/cue.ts";
import type { ForkItem } from "../store/forks.ts";
import type { ConversationRow } from "../store/store.ts";
import { findConversation } from "./conversations.ts";
import type { ConversationChoice } from "./conversations.ts";
import { makePolicy, readFactor } from "./fold-policy.ts";
import type { ModelSituation } from "./fold-policy.ts";
import type { EngineState } from "./state.ts";

export interface AssembleRequest extends ModelSituation {
  readonly budgetTokens: number;
  /** Whose grammar the messages must satisfy; every provider's when absent. */
  readonly provider?: Provider;
  /** A position: the context as if the conversation ended before it, with today's fold. */
  readonly endBefore?: number;
  /** The user's question. With `recallCue`, a few cited lines about it end the context. */
  readonly prompt?: string;
  /** Also run every provider's rules on the context: see `grammars` of the result. */
  readonly checkGrammars?: boolean;
}

export async function assemble(
  engine: EngineState,
  request: ConversationChoice & AssembleRequest,
): Promise<AssembledContext | null> {
  const conversation = await findConversation(engine, request);
  if (!conversation) return null;
  const { store, settings } = engine;
  const cue =
    request.prompt === undefined || !settings.recallCue
      ? undefined
      : await buildCue(store, conversation, request.prompt, settings);
  return assembleConversation(engine, conversation, { ...request, cue });
}

async function assembleConversation(
  engine: EngineState,
  conversation: ConversationRow,
  request: AssembleRequest & { cue?: string | null | undefined },
): Promise<AssembledContext | null> {
  const { conversationId } = conversation;
  const budgetTokens = capBudget(engine, request.budgetTokens);
  const policy = makePolicy(engine, conversation, { ...request, budgetTokens });
  const tokenFactor = await readFactor(engine, conversationId, conversation.foldRevision, request.model);
  engine.folding.seenRevisions.set(conversationId, conversation.foldRevision);
  return assembleContext(engine.store, {
    conversationId,
    budgetTokens,
    // The share that prevents folding at every turn does not apply here: whatever fits is shown.
    tail: { ...policy, freshTailMaxTokens: engine.settings.freshTailMaxTokens ?? undefined },
    foldTail: policy,
    timeZone: engine.settings.timezone,
    tokenFactor,
    model: request.model ?? null,
    cue: request.cue,
    prefersAsked: engine.settings.promptAwareEviction,
    stubsOldResults: engine.settings.stubLargeToolPayloads,
    canOpen: !isSubagentKey(conversation.sessionKey),
    estimate: estimateSentTokens,
    provider: request.provider,
    endBefore: request.endBefore,
    checkGrammars: request.checkGrammars,
  });
}

/** What a fork shows of the conversation that it leaves before a position. */
export async function chooseForFork(
  engine: EngineState,
  conversation: ConversationRow,
  endBefore: number,
): Promise<ForkItem[]> {
  const { conversationId } = conversation;
  const budgetTokens = engine.settings.bootstrapMaxTokens;
  const context = await assembleConversation(engine, conversation, { budgetTokens, endBefore });
  // A summary across the fork point may have been opened: its sources beyond that point are not part of the fork.
  const items = (context?.items ?? []).filter(
    ({ ends, startPosition }) => ends !== undefined || startPosition < endBefore,
  );
  const found = new Map<ChosenItem, { first: number | null; last: number | null }>();
  for (const item of items) {
    if (item.ends !== undefined || !isStoredAsRange(item, endBefore)) continue;
    const stretches = listStretches(item, items, [{ startPosition: 0, endPosition: endBefore - 1 }]);
    found.set(item, await engine.store.findEnds({ conversationId, stretches }));
  }
  // Nothing is left of such a summary where its sources before the point are shown.
  const kept = items.filter((item) => found.get(item)?.first !== null);
  return toForkItems(kept, endBefore, (item) => found.get(item) ?? { first: null, last: null });
}

function capBudget({ settings }: EngineState, budgetTokens: number): number {
  if (!Number.isFinite(budgetTokens) || budgetTokens < 1) {
    throw new EngineError(
      "usage",
      `cannot assemble for ${budgetTokens} tokens: the budget is a number of at least 1`,
    );
  }
  return Math.min(Math.floor(budgetTokens), settings.maxAssemblyTokenBudget ?? Number.MAX_SAFE_INTEGER);
}

/** What an archive contains, what it costs, and what currently prevents model calls. */
import type { Debt, Guard, SpendGroup } from "../store/folding.ts";
import type { ArchiveStatus } from "../store/store.ts";
import { readActive } from "./conversations.ts";
import type { Scope } from "./conversations.ts";
import { addHeadings } from "./headings.ts";
import type { HeadedConversation } from "./headings.ts";
import type { EngineState } from "./state.ts";

export interface StatusRequest extends Scope {
  readonly sessionKey?: string;
}

export interface StatusResult extends ArchiveStatus {
  readonly enabled: boolean;
  /** The requested conversation: the active one of a session key. */
  readonly conversation: HeadedConversation | null;
  readonly folding: FoldingStatus | null;
  /** Open guards: why models are not called right now. */
  readonly guards: readonly Guard[];
}

export interface FoldingStatus {
  readonly summaries: { cover: number; reserve: number; prepared: number; stale: number; extractive: number };
  readonly debt: Debt | null;
  /** Counts changes of the folded prefix. */
  readonly foldRevision: number;
  /** Tokens and messages that the context currently represents. */
  readonly contextTokens: number;
  readonly contextMessages: number;
  /** Share of the prompt that providers served from cache, as reported by hosts. */
  readonly cache: { requests: number; promptTokens: number; cachedTokens: number } | null;
}

export async function status(engine: EngineState, request: StatusRequest = {}): Promise<StatusResult> {
  const { store, settings, clock } = engine;
  const { owner, sessionKey } = request;
  const archive = await store.status(owner);
  const active = sessionKey === undefined ? null : await readActive(engine, { owner, sessionKey });
  const [conversation = null] = active === null ? [] : await addHeadings(store, [active]);
  const now = clock.now();
  return {
    ...archive,
    enabled: settings.enabled,
    conversation,
    folding: conversation && (await readFolding(engine, conversation.conversationId)),
    guards: (await store.readGuards()).filter((guard) => guard.openUntil > now),
  };
}

async function readFolding({ store }: EngineState, conversationId: number): Promise<FoldingStatus> {
  const cover = await store.readCoverTail({ conversationId, maxTokens: 0, maxMessages: 0 });
  return {
    summaries: await store.countSummaries(conversationId),
    debt: await store.readDebt(conversationId),
    foldRevision: cover?.foldRevision ?? 0,
    contextTokens: cover?.counters.shownTokens ?? 0,
    contextMessages: cover?.counters.shownMessages ?? 0,
    cache: await store.readCacheUsage(conversationId),
  };
}

export interface SpendRequest {
  readonly since?: number;
  readonly by?: "day" | "conversation" | "model" | "purpose" | "all";
}

export async function spend(
  { store, settings, clock }: EngineState,
  { since = 0, by = "day" }: SpendRequest = {},
): Promise<SpendGroup[]> {
  return store.sumSpend({ since, by, timeZoneOffsetMs: offsetOf(settings.timezone, clock.now()) });
}

/** How far a zone is ahead of UTC at an instant. */
function offsetOf(timeZone: string, at: number): number {
  const local = new Date(at).toLocaleString("sv-SE", { timeZone });
  return Date.parse(`${local.replace(" ", "T")}Z`) - Math.floor(at / 1000) * 1000;
}

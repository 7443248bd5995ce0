/**
 * Conversations that nobody will need again: those of sub-agents and of scheduled jobs that have ended. They are listed; removing them is
 * forgetting them, with everything that involves.
 */
import type { Engine } from "../engine/engine.ts";
import type { HeadedConversation } from "../engine/headings.ts";
import type { ConversationRow } from "../store/store.ts";

export type CleanKind = "subagent" | "cron";

const KINDS: Readonly<Record<CleanKind, RegExp>> = {
  subagent: /^agent:[^:]+:subagent:/,
  cron: /^agent:[^:]+:cron:/,
};

export interface Cleanable extends HeadedConversation {
  readonly kind: CleanKind;
}

export interface CleanOptions {
  readonly engine: Engine;
  readonly kinds: readonly CleanKind[];
  /** Only those whose last message is older than this, ms UTC. */
  readonly before: number;
  readonly owner?: string;
}

const PAGE = 1_000;

/** Ended conversations with something left to remove, the oldest first. */
export async function listCleanable(options: CleanOptions): Promise<Cleanable[]> {
  const { engine, kinds, before } = options;
  const owner = options.owner === undefined ? {} : { owner: options.owner };
  const found: Cleanable[] = [];
  for (let after: string | null = null; ;) {
    const page = await engine.listConversations({ ...owner, after, limit: PAGE });
    for (const row of page.items) {
      const kind = kinds.find((candidate) => KINDS[candidate].test(row.sessionKey));
      if (kind === undefined || !hasEnded(row, kind) || (row.lastAt ?? row.createdAt) >= before) continue;
      if (await hasMessages(engine, row.conversationId)) found.push({ ...row, kind });
    }
    if (page.next === null) return found.reverse();
    after = page.next;
  }
}

/** A sub-agent's session is rarely closed; the age of its last message is the only evidence. */
const hasEnded = (row: ConversationRow, kind: CleanKind): boolean =>
  kind === "subagent" || row.archivedAt !== null;

async function hasMessages(engine: Engine, conversationId: number): Promise<boolean> {
  for (let after: string | null = null; ;) {
    const page = await engine.listMessages({ conversationId, after, limit: PAGE, order: "arrival" });
    if (page.items.some((row) => row.forgottenAt === null)) return true;
    if (page.next === null) return false;
    after = page.next;
  }
}

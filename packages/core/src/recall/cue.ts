/**
 * The recall cue: a few cited lines from older messages about the prompt's subject. It is the last thing before the prompt, never part of
 * the stable front, never stored; without a clear match there is none.
 */
import { escapeXmlText } from "../text/escape-xml.ts";
import { isSubagentKey } from "../settings/session-patterns.ts";
import type { Settings } from "../settings/settings.ts";
import type { ConversationRow, Store } from "../store/store.ts";
import { searchMessages } from "./search.ts";

const MAX_LINES = 4;
const CANDIDATES = 24;
/** A relaxed hit must be this close to the best one to be worth a line. */
const NEAR_BEST = 0.6;

export async function buildCue(
  store: Store,
  conversation: ConversationRow,
  prompt: string,
  settings: Pick<Settings, "freshTailCount">,
): Promise<string | null> {
  const { conversationId, messages } = conversation;
  // Everything is in the tail: there is nothing to recall.
  if (messages <= settings.freshTailCount) return null;
  const answer = await searchMessages(store, {
    query: prompt,
    limit: CANDIDATES,
    conversationIds: [conversationId],
  });
  if (answer.rule !== "strict") return null;
  const newest = messages - settings.freshTailCount;
  const best = answer.hits[0]?.score ?? 0;
  const lines = answer.hits
    .filter((hit) => hit.seq <= newest && hit.score >= NEAR_BEST * best)
    .slice(0, MAX_LINES)
    .map(
      (hit) =>
        `- ${hit.id} (${hit.role}, ${new Date(hit.createdAt).toISOString().slice(0, 10)}): ${escapeXmlText(hit.snippet.replaceAll(/\s+/g, " "))}`,
    );
  if (lines.length === 0) return null;
  const way = isSubagentKey(conversation.sessionKey) ? "" : "; open one with lcm_describe";
  return `<recall trust="untrusted">\nEarlier messages that may matter here${way}.\n${lines.join("\n")}\n</recall>`;
}

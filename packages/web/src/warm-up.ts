/**
 * The first search opens the index and compiles all code that finds, ranks and shows; it takes three times as long as a later one, and so does
 * the first context. So both are run once, for words of the newest message, while the user still opens the address of the inspector. In pieces,
 * each of which waits until there is time for it; no model is called.
 */
import type { Engine, Scope } from "@lossless/core";

const BUDGET_TOKENS = 32_000;
/** Messages to take words from. */
const MESSAGES = 10;
const WORDS = 3;
/** First with few hits, so that no piece is long. */
const HITS = [1, 10];

export async function warmUp(engine: Engine, scope: Scope, waitForTime: () => Promise<void>): Promise<void> {
  const { items } = await engine.listConversations({ ...scope, limit: 1 });
  const conversationId = items[0]?.conversationId;
  if (conversationId === undefined) return;
  const query = await chooseWords(engine, scope, conversationId);
  const assemble = () => engine.assemble({ ...scope, conversationId, budgetTokens: BUDGET_TOKENS });
  const inSummaries = { ...scope, allConversations: true, mode: "full_text", scope: "summaries" } as const;
  const searches = HITS.flatMap((limit) => [
    () => engine.search({ ...scope, query, limit }),
    () => engine.grep({ ...inSummaries, pattern: query, limit }),
  ]);
  for (const piece of query === "" ? [assemble] : [...searches, assemble]) {
    await waitForTime();
    await piece();
  }
}

/** Words that occur together in one message, so that something is found. */
async function chooseWords(engine: Engine, scope: Scope, conversationId: number): Promise<string> {
  const page = { ...scope, conversationId, direction: "newest", limit: MESSAGES } as const;
  for (const { messageId } of (await engine.listMessages(page)).items) {
    const message = await engine.readMessage({ ...scope, messageId });
    const text = message?.view.parts.map((part) => part.text).join(" ") ?? "";
    const words = new Set(text.match(/\p{L}{4,20}/gu));
    if (words.size >= WORDS) return [...words].slice(0, WORDS).join(" ");
  }
  return "";
}

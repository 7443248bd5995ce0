/**
 * The context the engine itself makes of a history: stored, folded as it falls due, assembled for a budget, no model. Each call has an
 * archive of its own.
 */
import { openEngine } from "@lossless/core";
import type { Arrival, ContextMessage } from "@lossless/core";
import { makeTemporaryFolder } from "@lossless/testkit/temporary.ts";

export interface EngineContext {
  readonly text: string;
  readonly tokens: number;
}

const SESSION = { key: "agent:main:bench", id: "bench", owner: "main" };
const BATCH = 500;

/** `stages`: the messages, in as many pieces as there are compactions. */
export async function assembleAfterFolding(
  stages: readonly (readonly Arrival[])[],
  budgetTokens: number,
): Promise<EngineContext> {
  using folder = makeTemporaryFolder("lossless-bench-");
  const engine = await openEngine({ database: folder.file("lcm.db"), thread: false });
  try {
    for (const messages of stages) {
      for (let at = 0; at < messages.length; at += BATCH) {
        await engine.ingest({ session: SESSION, messages: messages.slice(at, at + BATCH) });
      }
      // One sweep has a limit of passes; quiet moments come again and again.
      while ((await engine.maintain({ conversationId: 1, budgetTokens })).changed);
    }
    const context = await engine.assemble({ conversationId: 1, budgetTokens });
    return {
      text: (context?.messages ?? []).map(renderMessage).join("\n"),
      tokens: context?.estimatedTokens ?? 0,
    };
  } finally {
    await engine.close();
  }
}

/** What a model reads of a message. */
function renderMessage({ role, content }: ContextMessage): string {
  const blocks = content.map((block) =>
    typeof block.text === "string"
      ? block.text
      : `${String(block.name ?? block.type)} ${JSON.stringify(block.arguments ?? "")}`,
  );
  return `${role}: ${blocks.join("\n")}`;
}

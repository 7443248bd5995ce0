/**
 * The engine's own context of a history: stored, folded when due, assembled for a budget, no model; and what one question then finds in the
 * archive. Each call has its own archive.
 */
import { openEngine } from "lossless-claw";
import type { Arrival, AssembledContext, ContextMessage, Engine } from "@lossless/core";
import { makeTemporaryFolder } from "@lossless/testkit/temporary.ts";

export interface EngineContext {
  readonly text: string;
  readonly tokens: number;
  /** For each question: the passages one call finds. */
  readonly recalled: readonly string[];
}

const SESSION = { key: "agent:main:bench", id: "bench", owner: "main" };
const BATCH = 500;

/** The messages, in one piece per compaction. */
type Stages = readonly (readonly Arrival[])[];

/** `isTarget`: folded on request for contexts of that size, and not when due. */
export async function assembleAfterFolding(
  stages: Stages,
  budgetTokens: number,
  questions: readonly string[] = [],
  isTarget = false,
): Promise<EngineContext> {
  using folder = makeTemporaryFolder("lossless-bench-");
  const engine = await openEngine({ database: folder.file("lcm.db"), thread: false });
  try {
    for (const messages of stages) {
      for (let at = 0; at < messages.length; at += BATCH) {
        await engine.ingest({ session: SESSION, messages: messages.slice(at, at + BATCH) });
      }
      if (isTarget) await engine.compact({ conversationId: 1, budgetTokens, targetTokens: budgetTokens });
      // One sweep has a limit of passes; idle time comes again and again.
      else while ((await engine.maintain({ conversationId: 1, budgetTokens })).changed);
    }
    const context = await engine.assemble({ conversationId: 1, budgetTokens });
    return {
      text: renderContext(context),
      tokens: context?.estimatedTokens ?? 0,
      recalled: await recallEach(engine, questions),
    };
  } finally {
    await engine.close();
  }
}

/** One call for each question, with the defaults and without a model. */
async function recallEach(engine: Engine, questions: readonly string[]): Promise<string[]> {
  const found: string[] = [];
  for (const prompt of questions) {
    const { passages } = await engine.ask({ prompt, conversationId: 1, withoutModel: true });
    found.push(passages.map(({ text }) => text).join("\n"));
  }
  return found;
}

/** Windows to try, as multiples of the wanted size: right after a fold a context takes about half of its window. */
const WINDOWS = [2.2, 1.9, 1.6, 1.3];

/** The largest context of at most this many tokens, for any window: the baselines of that size are compared with it. */
export async function assembleUpTo(
  stages: Stages,
  tokens: number,
  questions: readonly string[] = [],
): Promise<EngineContext> {
  let best = await assembleAfterFolding(stages, tokens, questions);
  const aimed = await assembleAfterFolding(stages, tokens, questions, true);
  if (aimed.tokens <= tokens && aimed.tokens > best.tokens) best = aimed;
  for (const factor of WINDOWS) {
    const context = await assembleAfterFolding(stages, Math.floor(tokens * factor), questions);
    if (context.tokens <= tokens && context.tokens > best.tokens) best = context;
  }
  return best;
}

/** The text of a context for a model. */
export const renderContext = (context: Pick<AssembledContext, "messages"> | null | undefined): string =>
  (context?.messages ?? []).map(renderMessage).join("\n");

/** The text of a message for a model. */
function renderMessage({ role, content }: ContextMessage): string {
  const blocks = content.map((block) =>
    typeof block.text === "string"
      ? block.text
      : `${String(block.name ?? block.type)} ${JSON.stringify(block.arguments ?? "")}`,
  );
  return `${role}: ${blocks.join("\n")}`;
}

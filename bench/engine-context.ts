/**
 * The context the engine itself makes of a history: stored, folded as it falls due, assembled for a budget, no model; and what one question
 * then finds in the archive. Each call has an archive of its own.
 */
import { openEngine } from "lossless-claw";
import type { Arrival, AssembledContext, ContextMessage, Engine } from "@lossless/core";
import { makeTemporaryFolder } from "@lossless/testkit/temporary.ts";

export interface EngineContext {
  readonly text: string;
  readonly tokens: number;
  /** For each question that was asked: the passages one call finds. */
  readonly recalled: readonly string[];
}

const SESSION = { key: "agent:main:bench", id: "bench", owner: "main" };
const BATCH = 500;

/** The messages, in as many pieces as there are compactions. */
type Stages = readonly (readonly Arrival[])[];

/** `isTarget`: folded because somebody asked for contexts of that size, and not when it fell due. */
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
      // One sweep has a limit of passes; quiet moments come again and again.
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

/** One call for each question, as it is asked, with the defaults and without a model. */
async function recallEach(engine: Engine, questions: readonly string[]): Promise<string[]> {
  const found: string[] = [];
  for (const prompt of questions) {
    const { passages } = await engine.ask({ prompt, conversationId: 1, withoutModel: true });
    found.push(passages.map(({ text }) => text).join("\n"));
  }
  return found;
}

/** Windows that are tried, as multiples of the wanted size: right after a fold a context takes about half of its window. */
const WINDOWS = [2.2, 1.9, 1.6, 1.3];

/** The largest context of at most so many tokens, whatever the window it was made for: what rivals of that size are compared with. */
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

/** What a model reads of a context. */
export const renderContext = (context: Pick<AssembledContext, "messages"> | null | undefined): string =>
  (context?.messages ?? []).map(renderMessage).join("\n");

/** What a model reads of a message. */
function renderMessage({ role, content }: ContextMessage): string {
  const blocks = content.map((block) =>
    typeof block.text === "string"
      ? block.text
      : `${String(block.name ?? block.type)} ${JSON.stringify(block.arguments ?? "")}`,
  );
  return `${role}: ${blocks.join("\n")}`;
}

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

/** Folded when due, as in a running agent, where a fold leaves room to grow; or on request, down to contexts of the given size. */
export type When = "due" | "requested";

export async function assembleAfterFolding(
  stages: Stages,
  budgetTokens: number,
  when: When,
  questions: readonly string[] = [],
): Promise<EngineContext> {
  using folder = makeTemporaryFolder("lossless-bench-");
  const engine = await openEngine({ database: folder.file("lcm.db"), thread: false });
  try {
    for (const messages of stages) {
      for (let at = 0; at < messages.length; at += BATCH) {
        await engine.ingest({ session: SESSION, messages: messages.slice(at, at + BATCH) });
      }
      if (when === "requested")
        await engine.compact({ conversationId: 1, budgetTokens, targetTokens: budgetTokens });
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

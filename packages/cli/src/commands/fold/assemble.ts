/** `lcm assemble`: the context a model would get for a budget: its messages, or with `--explain` why each piece of it is there. Read-only. */
import { Option } from "commander";
import type { Command } from "commander";
import { EngineError, PROVIDERS } from "@lossless/core";
import type {
  AssembledContext,
  ContextBlock,
  ContextMessage,
  ExplainedItem,
  MessageCounts,
  ModelIdentity,
  Provider,
} from "@lossless/core";
import { toAction } from "../../invocation.ts";
import type { Invocation } from "../../invocation.ts";
import { printNote, renderStored } from "../../output.ts";
import { countOf, describeGrammars, formatCount, formatTime, toIso, toOneLine } from "@lossless/core/doors";
import { style } from "../../style.ts";
import { renderExplanation } from "./explain.ts";
import { listLeftOut } from "../archive/status.ts";
import { addConversationOptions, addExamples, chooseConversation, parseTokens } from "../shared.ts";
import type { ConversationChoice } from "../shared.ts";

interface AssembleOptions extends ConversationChoice {
  readonly budget: number;
  readonly model?: string;
  readonly provider?: Provider;
  readonly prompt?: string;
  readonly explain?: boolean;
}

export function defineAssemble(program: Command): void {
  const command = addConversationOptions(program.command("assemble"))
    .description("Show the context a model gets for a budget, and why")
    .addOption(
      new Option("--budget <tokens>", "token budget of the context, such as 32k")
        .argParser(parseTokens)
        .makeOptionMandatory(),
    )
    .option("--explain", "show a table of what was chosen, its cost and why")
    .option("--model <name>", "the model it is for, as provider/model")
    .addOption(
      new Option("--provider <grammar>", "only this provider must accept it (default: all)").choices([
        ...PROVIDERS,
      ]),
    )
    .option("--prompt <text>", "the question to come: related lines are added at the end")
    .action(toAction(runAssemble));
  addExamples(command, [
    ["lcm assemble --conversation 1 --budget 32k", "read what the model reads"],
    ["lcm assemble --conversation 1 --budget 8k --explain", "what was chosen, and why"],
    ["lcm assemble --session agent:main:main --budget 200k --json | jq .data.messages", "for a program"],
  ]);
  command.addHelpText(
    "after",
    `
The context covers every message of the conversation, whatever the budget: the newest in full, older ones as summaries,
the rest in one line. Nothing is written, and no model is called.`,
  );
}

async function runAssemble(invocation: Invocation, options: AssembleOptions): Promise<void> {
  const { budget: budgetTokens, model, provider, prompt } = options;
  const { context, counts } = await invocation.withArchive("read", async (engine) => {
    const { conversationId } = await chooseConversation(engine, invocation, options);
    const assembled = await engine.assemble({
      ...invocation.scope,
      conversationId,
      budgetTokens,
      model: model === undefined ? undefined : parseModel(model),
      provider,
      prompt,
      checkGrammars: true,
    });
    const [counted] = await engine.countMessages({ ...invocation.scope, conversationIds: [conversationId] });
    return { context: assembled, counts: counted };
  });
  if (context === null || counts === undefined)
    throw new EngineError("not_found", "cannot assemble: the conversation is gone");
  const timezone = await invocation.timezone();
  if (!invocation.isJson && context.estimatedTokens > budgetTokens) {
    const least = formatCount(context.estimatedTokens);
    printNote(
      `warning: no context is so small: the least takes ${least} tokens, the budget is ${formatCount(budgetTokens)}`,
    );
  }
  await invocation.print({
    data: toContextJson(context, counts),
    text: () =>
      options.explain
        ? [
            renderExplanation(context),
            ...listLeftOut(counts).map((words) => style.faint(`Not in it: ${words}`)),
          ].join("\n")
        : renderContext(context, counts, timezone),
  });
}

function parseModel(name: string): ModelIdentity {
  const slash = name.indexOf("/");
  return slash > 0 ? { provider: name.slice(0, slash), model: name.slice(slash + 1) } : { model: name };
}

function toContextJson(context: AssembledContext, counts: MessageCounts): object {
  const { conversationId, messages, estimatedTokens, budgetTokens, epoch, fingerprint, mode } = context;
  return {
    conversationId,
    messages,
    estimatedTokens,
    budgetTokens,
    epoch,
    fingerprint,
    mode,
    shownMessages: context.shownMessages,
    tail: context.tail,
    counts,
    items: context.items.map(toItemJson),
    grammars: describeGrammars(context),
  };
}

function toItemJson(item: ExplainedItem): object {
  const { kind, ids, tokens, messages, depth, role, reason } = item;
  const times = { earliestAt: toIso(item.earliestAt), latestAt: toIso(item.latestAt) };
  return { kind, ids, tokens, messages, depth, ...times, role, reason };
}

function renderContext(context: AssembledContext, counts: MessageCounts, timezone: string): string {
  const size = `${formatCount(context.estimatedTokens)} of ${formatCount(context.budgetTokens)} tokens`;
  const stands = [
    `${countOf(context.items.length, "item")} for ${countOf(context.shownMessages, "message")}`,
    ...listLeftOut(counts),
  ].join(", ");
  return [
    ...context.messages.map((message) => renderContextMessage(message, timezone)),
    style.faint(`${size}; ${stands}. --explain says why each is there.`),
  ].join("\n\n");
}

function renderContextMessage(message: ContextMessage, timezone: string): string {
  const { role, timestamp, toolName, isError } = message;
  const facts = [
    ...(toolName === undefined ? [] : [toOneLine(toolName)]),
    ...(isError === true ? ["error"] : []),
    // Lines that the engine wrote itself have no time.
    ...(timestamp > 0 ? [formatTime(timestamp, timezone)] : []),
  ];
  const head = `${style.title(role)}  ${style.faint(facts.join(", "))}`.trimEnd();
  return [head, ...message.content.map(renderBlock)].join("\n");
}

function renderBlock(block: ContextBlock): string {
  const { title, text } = describeBlock(block);
  const body = renderStored(text);
  if (title === null) return body;
  const line = style.faint(`  [${toOneLine(title)}]`);
  return text.trim() === "" ? line : `${line}\n${body}`;
}

function describeBlock(block: ContextBlock): { title: string | null; text: string } {
  switch (block.type) {
    case "text":
      return { title: null, text: toText(block["text"]) };
    case "thinking":
      return { title: "reasoning", text: toText(block["thinking"]) };
    case "toolCall":
      return { title: `tool call: ${toText(block["name"])}`, text: JSON.stringify(block["arguments"]) };
    case "image":
      return { title: `image: ${toText(block["mimeType"])}`, text: "" };
    default:
      return { title: block.type, text: JSON.stringify(block) };
  }
}

const toText = (value: unknown): string => (typeof value === "string" ? value : "");

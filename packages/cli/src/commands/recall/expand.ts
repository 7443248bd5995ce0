/**
 * `lcm expand`: opens summaries down to their messages, breadth first, within a number of tokens. What the cap leaves out is counted, and the
 * last line says how to get it.
 */
import { countOf, formatCount, formatSpan, indent, SHELL_WORDS } from "@lossless/core/doors";
import { wordStep } from "@lossless/core";
import type { ExpandedSummary, ExpandResult } from "@lossless/core";
import type { Command } from "commander";
import { toAction } from "../../invocation.ts";
import type { Invocation } from "../../invocation.ts";
import { renderStored } from "../../output.ts";
import { style } from "../../style.ts";
import { parseSteps, renderFollowUp, renderHead, renderSaid, withIsoTimes } from "./recall-shared.ts";
import type { ReachChoice } from "./recall-shared.ts";
import { addExamples, parseSummaryName, parseTokens } from "../shared.ts";

interface ExpandOptions extends Pick<ReachChoice, "db" | "owner"> {
  readonly depth?: number;
  readonly maxTokens?: number;
  /** False with `--no-messages`. */
  readonly messages?: boolean;
}

export function defineExpand(program: Command): void {
  const command = program
    .command("expand")
    .description("Expand summaries down to their messages")
    .argument("<id...>", "summaries, such as sum_0123456789abcdef", collectSummaries)
    .option("--depth <n>", "how many steps down (default: 3)", parseSteps)
    .option("--max-tokens <n>", "maximum tokens to show (default: setting maxExpandTokens)", parseTokens)
    .option("--messages", "with the messages at the bottom (the default)")
    .option("--no-messages", "only the summaries below")
    .action(toAction(runExpand));
  addExamples(command, [
    ["lcm expand sum_0123456789abcdef", "three steps down, within the usual cap"],
    ["lcm expand sum_0123456789abcdef --max-tokens 50k", "as much as fits"],
    ["lcm expand sum_0123456789abcdef --depth 1 --no-messages", "what it was made from"],
  ]);
}

const collectSummaries = (text: string, before: readonly string[] | undefined): string[] => [
  ...(before ?? []),
  parseSummaryName(text),
];

async function runExpand(
  invocation: Invocation,
  options: ExpandOptions,
  summaryIds: readonly string[],
): Promise<void> {
  const { depth, maxTokens, messages } = options;
  const answer = await invocation.withArchive("read", (engine) =>
    engine.expand({
      ...invocation.scope,
      summaryIds,
      maxDepth: depth,
      tokenCap: maxTokens,
      includeMessages: messages,
    }),
  );
  const { left } = answer;
  const hint = left.step === null ? null : wordStep(left.step, SHELL_WORDS);
  const timezone = await invocation.timezone();
  await invocation.print({
    data: {
      ...answer,
      summaries: answer.summaries.map(withIsoTimes),
      messages: answer.messages.map(withIsoTimes),
      left: { ...left, hint },
    },
    text: () => renderExpanded(answer, options, timezone),
  });
}

function renderExpanded(answer: ExpandResult, options: ExpandOptions, timezone: string): string {
  const { summaries, messages, totalTokens } = answer;
  const counts = [countOf(summaries.length, "summary", "summaries"), countOf(messages.length, "message")];
  return [
    ...summaries.map((summary) => renderSummary(summary, timezone)),
    ...messages.map((message) =>
      renderSaid(
        message,
        timezone,
        message.textLeft > 0 ? `${countOf(message.textLeft, "character")} left` : undefined,
      ),
    ),
    style.faint(`${counts.join(", ")}, ${formatCount(totalTokens)} tokens opened`),
    ...renderLeft(answer, options),
  ].join("\n\n");
}

function renderSummary(summary: ExpandedSummary, timezone: string): string {
  const { id, kind, depth, conversationId, content } = summary;
  const facts = [
    `${kind} summary`,
    `depth ${depth}`,
    formatSpan(summary.earliestAt, summary.latestAt, timezone),
    `conversation ${conversationId}`,
  ];
  const text = content === null ? indent(style.faint("beyond the cap")) : renderStored(content);
  return `${renderHead(id, facts)}\n${text}`;
}

/** Counts what is left, with the commands that open it. */
function renderLeft(answer: ExpandResult, options: ExpandOptions): string[] {
  if (!answer.truncated) return [];
  const { summaryIds, messageIds } = answer.left;
  const lines: string[] = [];
  if (messageIds.length > 0) {
    const opening = renderFollowUp(["show", nameRange(answer)], options);
    lines.push(`Left: ${countOf(messageIds.length, "message")}. More: ${opening}`);
  }
  const [summary] = summaryIds;
  if (summary !== undefined) {
    const opening = renderFollowUp(["expand", summary], options);
    lines.push(`Left: ${countOf(summaryIds.length, "summary", "summaries")}. More: ${opening}`);
  }
  return [style.faint(lines.join("\n"))];
}

/** A range is within one conversation; of several, only the first message left is named. */
function nameRange({ left, summaries }: ExpandResult): string {
  const [first = "", last] = [left.messageIds[0], left.messageIds.at(-1)];
  const conversations = new Set(summaries.map(({ conversationId }) => conversationId));
  return conversations.size > 1 || first === last ? first : `${first}..${last}`;
}

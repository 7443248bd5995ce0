/**
 * `lcm show`: opens an id: a message or a range of messages word for word, a summary with its sources, a large file in ranges. Anything longer
 * than the cap comes in pages, and each page ends with the command for the next.
 */
import { InvalidArgumentError, Option } from "commander";
import type { Command } from "commander";
import type { DescribeRequest, DescribeResult, Engine } from "@lossless/core";
import { toAction } from "../../invocation.ts";
import type { Invocation } from "../../invocation.ts";
import {
  countOf,
  formatBytes,
  formatCount,
  formatShare,
  formatSpan,
  formatTime,
  toOneLine,
  usageError,
} from "@lossless/core/doors";
import { renderStored, terminalColumns } from "../../output.ts";
import { style } from "../../style.ts";
import { renderPairs, renderTable } from "../../table.ts";
import { renderFollowUp, renderHead, renderSaid, withIsoTimes } from "./recall-shared.ts";
import type { ReachChoice } from "./recall-shared.ts";
import { addExamples, parseTokens } from "../shared.ts";

interface Range {
  readonly from: number;
  /** Inclusive; null: to the end. */
  readonly to: number | null;
}

interface ShowOptions extends Pick<ReachChoice, "db" | "owner"> {
  readonly maxTokens?: number;
  readonly lines?: Range;
  readonly bytes?: Range;
  readonly after?: string;
}

/** For longer lists only the ends are shown. */
const MAX_IDS = 12;
const MAX_BELOW = 20;

export function defineShow(program: Command): void {
  const command = program
    .command("show")
    .description("Show messages, summaries and large files by id")
    .argument("<id...>", "msg_12, a range msg_3..msg_40, sum_0123456789abcdef or file_0123456789abcdef")
    .option("--max-tokens <n>", "maximum tokens to show (default: setting maxExpandTokens)", parseTokens)
    .addOption(new Option("--lines <a-b>", "lines of a file, such as 10-20 or 10-").argParser(parseLines))
    .addOption(
      new Option("--bytes <a-b>", "bytes of a file, such as 0-4095").argParser(parseBytes).conflicts("lines"),
    )
    .option("--after <cursor>", "continue after a page")
    .action(toAction(runShow));
  addExamples(command, [
    ["lcm show msg_12", "one message"],
    ["lcm show msg_3..msg_40 --max-tokens 20k", "a run of messages"],
    ["lcm show sum_0123456789abcdef", "a summary and its sources"],
    ["lcm show file_0123456789abcdef --lines 100-150", "a part of a large file"],
  ]);
}

const parseLines = (text: string): Range => parseRange(text, 1, "lines from 1, such as 10-20 or 10-");
const parseBytes = (text: string): Range => parseRange(text, 0, "bytes from 0, such as 0-4095 or 4096-");

function parseRange(text: string, first: number, says: string): Range {
  const [, start, dash, end] = /^(\d{1,12})(?:(-)(\d{1,12})?)?$/.exec(text.trim()) ?? [];
  const from = Number(start);
  const to = dash === undefined ? from : end === undefined ? null : Number(end);
  if (start !== undefined && from >= first && (to === null || to >= from)) return { from, to };
  throw new InvalidArgumentError(`It must be ${says}.`);
}

async function runShow(invocation: Invocation, options: ShowOptions, ids: readonly string[]): Promise<void> {
  if (options.after !== undefined && ids.length > 1) {
    throw usageError("cannot continue several ids at once", "Name one id with --after");
  }
  const items = await invocation.withArchive("read", async (engine) => {
    const opened: DescribeResult[] = [];
    for (const id of ids) opened.push(await open(engine, invocation, options, id));
    return opened;
  });
  const timezone = await invocation.timezone();
  await invocation.print({
    data: { items: items.map(toDescribedJson) },
    text: () => items.map((item) => renderDescribed(item, options, timezone)).join("\n\n"),
  });
}

async function open(
  engine: Engine,
  { scope }: Invocation,
  options: ShowOptions,
  id: string,
): Promise<DescribeResult> {
  const { maxTokens, after } = options;
  const described = await engine.describe({
    ...scope,
    id,
    ...toFileRange(options),
    tokenCap: maxTokens,
    after,
  });
  if (described.type !== "file" && (options.lines ?? options.bytes) !== undefined) {
    throw usageError(`cannot show a part of ${described.id}: only a file has lines and bytes`);
  }
  return described;
}

type FileRange = Pick<DescribeRequest, "startLine" | "endLine" | "byteOffset" | "byteLength">;

function toFileRange({ lines, bytes }: ShowOptions): FileRange {
  if (lines !== undefined) return { startLine: lines.from, endLine: lines.to ?? undefined };
  if (bytes === undefined) return {};
  return { byteOffset: bytes.from, byteLength: bytes.to === null ? undefined : bytes.to - bytes.from + 1 };
}

function toDescribedJson(described: DescribeResult): object {
  return described.type === "messages"
    ? { ...described, messages: described.messages.map(withIsoTimes) }
    : withIsoTimes(described);
}

function renderDescribed(described: DescribeResult, options: ShowOptions, timezone: string): string {
  const { id, next } = described;
  const blocks =
    described.type === "messages"
      ? renderMessages(described, timezone)
      : described.type === "summary"
        ? renderSummary(described, timezone)
        : renderFile(described, options, timezone);
  if (next === null) return blocks.join("\n\n");
  return [...blocks, style.faint(`${describeRest(described)}. More: ${renderMore(id, next, options)}`)].join(
    "\n\n",
  );
}

function describeRest(described: DescribeResult): string {
  if (described.type === "messages") return `${countOf(described.left, "message")} left`;
  if (described.type === "summary") return "Its text goes on";
  return `${formatBytes(described.byteSize - described.byteEnd)} of the file come after this`;
}

function renderMore(id: string, after: string, options: ShowOptions): string {
  const { lines, bytes, maxTokens } = options;
  const words = ["show", id, "--after", after];
  if (lines !== undefined) words.push("--lines", renderRange(lines));
  if (bytes !== undefined) words.push("--bytes", renderRange(bytes));
  if (maxTokens !== undefined) words.push("--max-tokens", String(maxTokens));
  return renderFollowUp(words, options);
}

const renderRange = ({ from, to }: Range): string => `${from}-${to ?? ""}`;

function renderMessages({ messages }: DescribeResult & { type: "messages" }, timezone: string): string[] {
  return messages.map((message) => {
    const { textFrom, textLeft } = message;
    const remarks = [
      ...(textFrom > 0 ? [`from character ${formatCount(textFrom + 1)}`] : []),
      ...(textLeft > 0 ? [`${countOf(textLeft, "character")} left`] : []),
    ];
    return renderSaid(message, timezone, remarks.length === 0 ? undefined : remarks.join(", "));
  });
}

function renderSummary(summary: DescribeResult & { type: "summary" }, timezone: string): string[] {
  const { tokenCount, sourceTokens, parentIds, sourceMessageIds, childIds, fileIds } = summary;
  const pairs: [string, string][] = [
    ["Summary", style.name(summary.id)],
    ["Conversation", String(summary.conversationId)],
    [
      "Kind",
      `${summary.kind}, depth ${summary.depth}${summary.isStale ? ` (${style.warning("stale")})` : ""}`,
    ],
    ["Covers", `${countOf(summary.messageCount, "message")}, ${countOf(summary.messageTokens, "token")}`],
    ["Time", formatSpan(summary.earliestAt, summary.latestAt, timezone)],
    [
      "Tokens",
      `${formatCount(tokenCount)} from ${formatCount(sourceTokens)} (${formatShare(tokenCount, sourceTokens)})`,
    ],
  ];
  const [first, last] = [sourceMessageIds[0], sourceMessageIds.at(-1)];
  if (first !== undefined) pairs.push(["Messages", first === last ? first : `${first}..${last}`]);
  if (parentIds.length > 0) pairs.push(["Made from", listIds(parentIds)]);
  if (childIds.length > 0) pairs.push(["Part of", listIds(childIds)]);
  if (fileIds.length > 0) pairs.push(["Large files", listIds(fileIds)]);
  return [
    renderPairs(pairs, style.faint),
    ...renderBelow(summary.subtree),
    `${style.faint("Text")}\n${renderStored(summary.content)}`,
  ];
}

function renderBelow(subtree: (DescribeResult & { type: "summary" })["subtree"]): string[] {
  if (subtree.length === 0) return [];
  const table = renderTable(
    [
      { title: "ID", style: style.name },
      { title: "DEPTH", align: "right" },
      { title: "FOR", align: "right" },
      { title: "TOKENS", align: "right" },
    ],
    subtree
      .slice(0, MAX_BELOW)
      .map((node) => [node.id, String(node.depth), formatCount(node.messages), formatCount(node.tokens)]),
    { maxWidth: terminalColumns(), styleTitle: style.faint },
  );
  const rest =
    subtree.length > MAX_BELOW ? `\n${style.faint("More below these: lcm summaries tree ID")}` : "";
  return [`${style.faint("Below it")}\n${table}${rest}`];
}

function renderFile(
  file: DescribeResult & { type: "file" },
  options: ShowOptions,
  timezone: string,
): string[] {
  const content = renderContent(file);
  // A reader who continues has already seen what the file is.
  const isPart = (options.lines ?? options.bytes ?? options.after) !== undefined;
  if (isPart) return [`${renderHead(file.id, [toOneLine(file.fileName ?? file.mimeType)])}\n${content}`];
  const { lineCount, byteSize, messageIds } = file;
  const pairs: [string, string][] = [
    ["File", style.name(file.id)],
    ["Name", file.fileName === null ? "–" : toOneLine(file.fileName)],
    ["Type", toOneLine(file.mimeType)],
    ["Size", `${formatBytes(byteSize)}${lineCount === null ? "" : `, ${countOf(lineCount, "line")}`}`],
    ["Stored", `${formatTime(file.createdAt, timezone)}, conversation ${file.conversationId}`],
  ];
  if (messageIds.length > 0) pairs.push(["From", listIds(messageIds)]);
  const about = file.explorationSummary.trim();
  return [
    renderPairs(pairs, style.faint),
    ...(about === "" ? [] : [`${style.faint("About")}\n${renderStored(about)}`]),
    content,
  ];
}

function renderContent(file: DescribeResult & { type: "file" }): string {
  const { content, byteOffset, byteEnd, firstLine } = file;
  if (content === null) return "Its content is not text, or the file is gone.";
  const part = `Bytes ${formatCount(byteOffset)} to ${formatCount(byteEnd)}, from line ${formatCount(firstLine ?? 1)}`;
  return `${style.faint(part)}\n${renderStored(content)}`;
}

function listIds(ids: readonly string[]): string {
  return ids.length <= MAX_IDS ? ids.join(", ") : `${ids[0]} … ${ids.at(-1)} (${formatCount(ids.length)})`;
}

/** `lcm_describe`: opens what a search or a summary names. */
import type { DescribeResult, DescribeRequest } from "../recall/describe.ts";
import { callerOf, formatTime, readParams, SCOPE_PROPERTIES } from "./tool.ts";
import type { ToolDefinition } from "./tool.ts";

interface Params extends Omit<DescribeRequest, "session" | "owner" | "delegated"> {
  readonly expandFile?: boolean;
  readonly expandFileMaxBytes?: number;
}

/** A longer list of ids is shown by its ends. */
const MAX_IDS = 12;

export const describeTool: ToolDefinition = {
  name: "lcm_describe",
  description:
    "Open one id verbatim: sum_… (summary and its sources), file_…, msg_…, or a range msg_3..msg_9. Long ones come in pages.",
  parameters: {
    type: "object",
    properties: {
      id: { type: "string" },
      ...SCOPE_PROPERTIES,
      tokenCap: { type: "integer", minimum: 1 },
      after: { type: "string", description: "next page" },
      expandFile: { type: "boolean", description: "false: a file without its content" },
      expandFileMaxBytes: { type: "integer", minimum: 1024, maximum: 512_000 },
      startLine: { type: "integer", minimum: 1 },
      endLine: { type: "integer", minimum: 1 },
      byteOffset: { type: "integer", minimum: 0 },
    },
    required: ["id"],
    additionalProperties: false,
  },
  async run(context, params) {
    const { expandFile, expandFileMaxBytes, ...request } = readParams<Params>(describeTool, params);
    const described = await context.engine.describe({
      ...request,
      ...callerOf(context),
      byteLength: expandFileMaxBytes,
    });
    return { text: renderDescribed(described, expandFile ?? true, context.timeZone), details: described };
  },
};

function renderDescribed(described: DescribeResult, withContent: boolean, timeZone?: string): string {
  if (described.type === "summary") return renderSummary(described, timeZone);
  if (described.type === "file") return renderFile(described, withContent, timeZone);
  const { messages, next, left, id } = described;
  const lines = messages.map((message) => {
    const cut = message.textLeft > 0 ? ` (${message.textLeft} characters left)` : "";
    return `[${message.id}] ${message.role}, ${formatTime(message.createdAt, timeZone)}${cut}\n${message.text}`;
  });
  return [...lines, ...(next === null ? [] : [more(id, next, `${left} messages left`)])].join("\n\n");
}

const more = (id: string, next: string, what: string): string =>
  `${what}. More: id="${id}", after="${next}".`;

function listIds(ids: readonly string[]): string {
  return ids.length <= MAX_IDS ? ids.join(" ") : `${ids[0]} … ${ids.at(-1)} (${ids.length})`;
}

function renderSummary(summary: DescribeResult & { type: "summary" }, timeZone?: string): string {
  const { id, kind, depth, tokenCount, messageTokens, messageCount, descendantCount, descendantTokens } =
    summary;
  const span = `${formatTime(summary.earliestAt, timeZone)} to ${formatTime(summary.latestAt, timeZone)}`;
  const lines = [
    `${id}: ${kind}, depth ${depth}, conv=${summary.conversationId}, ${span}`,
    `${tokenCount} tokens for ${messageCount} messages (${messageTokens} tokens), ${descendantCount} summaries below (${descendantTokens} tokens)${summary.isStale ? ", stale" : ""}`,
    ...(summary.parentIds.length > 0 ? [`made from: ${listIds(summary.parentIds)}`] : []),
    ...(summary.sourceMessageIds.length > 0 ? [`messages: ${renderRange(summary.sourceMessageIds)}`] : []),
    ...(summary.childIds.length > 0 ? [`part of: ${listIds(summary.childIds)}`] : []),
    ...(summary.fileIds.length > 0 ? [`files: ${listIds(summary.fileIds)}`] : []),
    ...summary.subtree.slice(0, MAX_IDS).map((node) => {
      const fit = node.fits ? "" : ", beyond the cap";
      return `  ${node.id} ${node.kind} d${node.depth}, ${node.tokens} tokens, ${node.messages} messages (${node.messageTokens})${fit}`;
    }),
    "",
    summary.content,
  ];
  if (summary.next !== null) lines.push(more(id, summary.next, "Cut at the cap"));
  return lines.join("\n");
}

const renderRange = (ids: readonly string[]): string =>
  ids.length > 2
    ? `${ids[0]}..${ids.at(-1)} (${ids.length}, open the range with lcm_describe)`
    : ids.join(" ");

function renderFile(
  file: DescribeResult & { type: "file" },
  withContent: boolean,
  timeZone?: string,
): string {
  const { id, fileName, mimeType, byteSize, lineCount } = file;
  const size = `${byteSize} bytes${lineCount === null ? "" : `, ${lineCount} lines`}`;
  const lines = [
    `${id}: ${fileName ?? "unnamed"}, ${mimeType}, ${size}, ${formatTime(file.createdAt, timeZone)}, stored at ${file.storagePath}`,
    ...(file.messageIds.length > 0 ? [`from ${listIds(file.messageIds)}`] : []),
    file.explorationSummary,
  ];
  if (!withContent) return lines.join("\n");
  if (file.content === null) return [...lines, "Its content is not text, or the file is gone."].join("\n");
  lines.push("", `bytes ${file.byteOffset}–${file.byteEnd} from line ${file.firstLine}:`, file.content);
  if (file.next !== null) lines.push(more(id, file.next, `${byteSize - file.byteEnd} bytes left`));
  return lines.join("\n");
}

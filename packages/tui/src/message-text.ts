/** A message as text for a pane: all its parts in order, with their types. */
import { formatMessageId } from "@lossless/core";
import type { Engine, MessageBody, MessageView, Scope } from "@lossless/core";
import { countOf, describePart, formatBytes, formatCount, formatTime, toOneLine } from "@lossless/core/doors";
import type { DiffLine } from "@lossless/core/doors";
import { readPart } from "@lossless/interchange/parts";
import { toMarkdownLines } from "./markdown.ts";
import type { Paint, Style } from "./paint.ts";
import { toTextLines, type TextLine } from "./wrapped-text.ts";

export type Message = MessageBody & { readonly view: MessageView };

/** `lcm messages show` prints longer parts. */
const MAX_PART_CHARS = 1_000_000;

/** What is shown of a message. */
export interface Slice {
  /** Parts by number; null: all. */
  readonly ordinals?: readonly number[] | null;
  /** Whether reasoning is one line. */
  readonly foldsReasoning?: boolean;
}

export function renderMessageText(message: Message, paint: Paint, slice: Slice = {}): TextLine[] {
  const { row, view, bytes, parts } = message;
  const lines: TextLine[] = [];
  if (row.forgottenAt !== null) lines.push({ text: "This message was forgotten.", style: paint.warning });
  if (row.hidden.length > 0) lines.push({ text: `hidden: ${row.hidden.join(", ")}`, style: paint.warning });
  const shown = view.parts.filter(({ ordinal }) => slice.ordinals?.includes(ordinal) ?? true);
  const hasMore = shown.some(({ type }) => type !== "reasoning");
  for (const part of shown)
    lines.push(
      ...(part.type === "reasoning" && slice.foldsReasoning === true && hasMore
        ? foldReasoning(part.text, paint)
        : renderWholePart(message, part, paint)),
    );
  if (view.parts.length === 0 && row.forgottenAt === null)
    lines.push(
      ...cutLines(Buffer.from(bytes).toString("utf8"), row.messageId, paint, (text) => toTextLines(text)),
    );
  const files = [...new Set(parts.flatMap((part) => part.fileId ?? []))];
  if (files.length > 0) lines.push({ text: `large files: ${files.join(", ")}`, style: paint.faint });
  return lines;
}

function renderWholePart(
  { row, bytes }: Message,
  part: MessageView["parts"][number],
  paint: Paint,
): TextLine[] {
  const call = part.type === "tool_call" ? readPart(bytes, part, 0).call : null;
  const line = call?.diff ? ` ${toOneLine(call.line)}` : "";
  const head =
    part.type === "text"
      ? []
      : [{ text: `[${toOneLine(describePart(part))}]${line}`, style: stylePart(part, paint) }];
  const body =
    call?.diff?.map((one) => renderDiffLine(one, paint)) ??
    cutLines(dropToolName(part), row.messageId, paint, (text) => renderPart(part, text, paint));
  return [...head, ...body];
}

/** The text of a call begins with the name of its tool, which the line above it has. */
function dropToolName({ type, text, toolName = "" }: MessageView["parts"][number]): string {
  const isNamed = type === "tool_call" && toolName !== "" && text.startsWith(`${toolName}\n`);
  return (isNamed ? text.slice(toolName.length + 1) : text).trimEnd();
}

const foldReasoning = (text: string, paint: Paint): TextLine[] =>
  text.trim() === ""
    ? []
    : [
        {
          text: `[reasoning: ${countOf(text.trim().split("\n").length, "line")}; x opens it]`,
          style: paint.faint,
        },
      ];

/** A line that an edit removes or adds, with its sign and colour. */
function renderDiffLine({ kind, text }: DiffLine, paint: Paint): TextLine {
  if (kind === "same") return { text: `  ${text}` };
  return kind === "new" ? { text: `+ ${text}`, style: paint.good } : { text: `- ${text}`, style: paint.bad };
}

type Part = Pick<MessageView["parts"][number], "type" | "isError">;

/** The colour of a part: calls as tools, failures, and the model's reasoning in the background. */
export function stylePart({ type, isError }: Part, paint: Paint): Style {
  if (isError === true) return paint.bad;
  if (type === "tool_call") return paint.role("tool");
  return type === "tool_result" ? paint.good : paint.faint;
}

/** Text of people and models is Markdown; input and output of tools is shown unchanged. */
function renderPart(part: Part, text: string, paint: Paint): TextLine[] {
  if (part.type === "text") return toMarkdownLines(text, paint);
  if (part.isError === true) return toTextLines(text, paint.bad);
  return part.type === "reasoning" ? toTextLines(text, paint.faint) : toTextLines(text);
}

function cutLines(
  text: string,
  messageId: number,
  paint: Paint,
  render: (text: string) => TextLine[],
): TextLine[] {
  if (text === "") return [];
  if (text.length <= MAX_PART_CHARS) return render(text);
  const left = formatCount(text.length - MAX_PART_CHARS);
  return [
    ...render(text.slice(0, MAX_PART_CHARS)),
    {
      text: `… ${left} more characters: lcm messages show ${formatMessageId(messageId)}`,
      style: paint.faint,
    },
  ];
}

/** `result`: the message with the result that is shown with it. */
export function describeMessage(
  { row, result = null }: Pick<Message, "row"> & { readonly result?: Message["row"] | null },
  timezone: string,
): string {
  const { messageId, role, createdAt, tokens, arrivalBytes } = row;
  const id = formatMessageId(messageId);
  const isTwo = result !== null && result.messageId !== messageId;
  const facts = [
    isTwo ? `${id} + ${formatMessageId(result.messageId)}` : id,
    toOneLine(role),
    formatTime(createdAt, timezone),
    `${formatCount(tokens + (isTwo ? result.tokens : 0))} tokens`,
    formatBytes(arrivalBytes + (isTwo ? result.arrivalBytes : 0)),
  ];
  return facts.join(" · ");
}

/** The newest version of a message. An unreadable message must not prevent showing the rest. */
export async function readMessageText(
  engine: Engine,
  scope: Scope,
  messageId: number,
): Promise<Message | string> {
  try {
    const message = await engine.readMessage({ ...scope, messageId });
    const newest = message?.row.newest ?? null;
    const shown = newest === null ? message : await engine.readMessage({ ...scope, messageId: newest });
    return shown ?? `cannot find ${formatMessageId(messageId)}`;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

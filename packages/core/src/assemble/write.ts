/**
 * Writes the neutral list in the message format of pi and OpenClaw: `user`, `assistant`, `toolResult`, content in blocks. Blocks
 * that arrived in that format come back as they were; blocks of other dialects are translated.
 */
import { readCallArguments } from "../message/blocks.ts";
import type { ModelIdentity } from "../model/message.ts";
import type { ModelMessage, ModelPart } from "./grammars.ts";

export interface ContextMessage {
  readonly role: "user" | "assistant" | "toolResult";
  readonly content: readonly ContextBlock[];
  readonly timestamp: number;
  readonly toolCallId?: string;
  readonly toolName?: string;
  readonly isError?: boolean;
  /** Who wrote an assistant message, as far as known. */
  readonly writtenBy?: ModelIdentity;
}

export type ContextBlock = Readonly<Record<string, unknown>> & { readonly type: string };

/** What is known about a stored message besides its parts, by its `seq`. */
export interface MessageOrigins {
  timeOf(seq: number | undefined): number;
  modelOf(seq: number | undefined): ModelIdentity | undefined;
}

export function writeMessages(messages: readonly ModelMessage[], origins: MessageOrigins): ContextMessage[] {
  return messages.flatMap((message) => {
    const timestamp = origins.timeOf(message.seq);
    if (message.role === "tool") return writeResults(message.parts, timestamp);
    const content = message.parts.map((part) => writeBlock(part));
    if (message.role !== "assistant") return [{ role: "user", content, timestamp }];
    const writtenBy = origins.modelOf(message.seq);
    return [{ role: "assistant", content, timestamp, writtenBy }];
  });
}

/** One message for each answered call. */
function writeResults(parts: readonly ModelPart[], timestamp: number): ContextMessage[] {
  const byCall = Map.groupBy(parts, (part) => part.toolCallId ?? "");
  return [...byCall].map(([toolCallId, results]) => ({
    role: "toolResult",
    toolCallId,
    toolName: results.find((part) => part.toolName !== undefined)?.toolName ?? "unknown",
    content: results.map((part) => (part.type === "image" ? writeBlock(part) : textBlock(readText(part)))),
    isError: results.some((part) => part.isError === true),
    timestamp,
  }));
}

const textBlock = (text: string): ContextBlock => ({ type: "text", text });

function writeBlock(part: ModelPart): ContextBlock {
  const source = asRecord(part.source);
  switch (part.type) {
    case "tool_call":
      return {
        ...keep(source, "toolCall"),
        type: "toolCall",
        id: part.toolCallId ?? "",
        name: part.toolName ?? "unknown",
        arguments: readArguments(part, source),
      };
    case "reasoning":
      return source?.type === "thinking"
        ? {
            thinkingSignature: source.signature,
            ...keep(source, "thinking"),
            type: "thinking",
            thinking: source.thinking ?? part.text ?? "",
          }
        : { type: "thinking", thinking: part.text ?? "" };
    case "image":
      return writeImage(source) ?? nameBlock(part);
    case "text":
      return source?.type === "text" && source.text === readText(part)
        ? { ...source, type: "text" }
        : textBlock(readText(part));
    default:
      return nameBlock(part);
  }
}

/** Content that can only be mentioned; never a blank text. */
const nameBlock = ({ type, text = "" }: ModelPart): ContextBlock =>
  textBlock(text.trim() === "" ? `[${type}]` : text);

/** The text as it arrived: base64 in the middle of it is omitted from what is read and counted, but is sent. */
function readText({ text = "", payloadBytes, source }: ModelPart): string {
  if (payloadBytes === undefined) return text;
  if (typeof source === "string") return source;
  const block = asRecord(source);
  const own = [block?.text, block?.content, block?.output].find((member) => typeof member === "string");
  return own ?? text;
}

/** The members of a block that is already in this format; other dialects have none worth keeping. */
function keep(source: Record<string, unknown> | null, type: string): Record<string, unknown> {
  return source?.type === type ? source : {};
}

function writeImage(source: Record<string, unknown> | null): ContextBlock | null {
  if (typeof source?.data === "string" && typeof source.mimeType === "string")
    return { ...source, type: "image" };
  const inner = asRecord(source?.source);
  if (typeof inner?.data === "string" && typeof inner.media_type === "string") {
    return { type: "image", data: inner.data, mimeType: inner.media_type };
  }
  return null;
}

function readArguments(part: ModelPart, source: Record<string, unknown> | null): unknown {
  const given = part.holdsArguments ? source : source === null ? undefined : readCallArguments(source);
  return typeof given === "string"
    ? { value: given }
    : (asRecord(given) ?? (given === undefined ? {} : { value: given }));
}

function asRecord(value: unknown): Record<string, unknown> | null {
  return typeof value === "object" && value !== null && !Array.isArray(value)
    ? (value as Record<string, unknown>)
    : null;
}

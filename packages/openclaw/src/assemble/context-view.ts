/**
 * Converts the engine's context to the host's messages, and cuts the host's own messages to a budget when the archive cannot answer. Pure: the
 * same input gives the same bytes, which keeps the front of the prompt stable.
 */

import { estimateSentTokens, IMAGE_TOKENS, MESSAGE_OVERHEAD_TOKENS } from "@lossless/core";
import type { ContextMessage, ModelIdentity } from "@lossless/core";
import type { AgentMessage } from "../host/host.ts";

/** The host requires these fields; the cost of an old call is irrelevant here. */
const NO_USAGE = {
  input: 0,
  output: 0,
  cacheRead: 0,
  cacheWrite: 0,
  totalTokens: 0,
  cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 0 },
};

export function toHostMessages(
  messages: readonly ContextMessage[],
  model: ModelIdentity | undefined,
): AgentMessage[] {
  return messages.map((message) => toHostMessage(message, model));
}

function toHostMessage(
  { writtenBy, ...message }: ContextMessage,
  model: ModelIdentity | undefined,
): AgentMessage {
  if (message.role === "user") return toUserMessage(message);
  if (message.role !== "assistant") return { ...message };
  const calls = message.content.some((block) => block.type === "toolCall");
  return {
    ...message,
    api: writtenBy?.api ?? "unknown",
    provider: writtenBy?.provider ?? model?.provider ?? "unknown",
    model: writtenBy?.model ?? "unknown",
    usage: NO_USAGE,
    stopReason: calls ? "toolUse" : "stop",
  };
}

/** Our own lines (summaries, ranges, the cue) get no timestamp: the host would prefix it, and they already contain it. */
function toUserMessage({ timestamp, ...message }: ContextMessage): AgentMessage {
  return { ...message, content: simplify(message.content), ...(timestamp === 0 ? {} : { timestamp }) };
}

/** The host writes a user's plain text as a string. */
function simplify(content: ContextMessage["content"]): unknown {
  const [only] = content;
  return content.length === 1 && only?.type === "text" && typeof only.text === "string" ? only.text : content;
}

/**
 * Puts pictures back into messages of a user: the transcript has only their paths, the host passes their content. They belong to the message of
 * the same time. The newest come first, as many as there is room for.
 */
export function restoreImages(
  messages: readonly AgentMessage[],
  handed: readonly AgentMessage[],
  roomTokens: number,
): { messages: AgentMessage[]; tokens: number } {
  const imagesAt = new Map<unknown, readonly unknown[]>();
  for (const message of handed) {
    const images = listImages(message);
    if (message.role === "user" && images.length > 0) imagesAt.set(message.timestamp, images);
  }
  let tokens = 0;
  const restored = messages.toReversed().map((message) => {
    const images = message.role === "user" ? (imagesAt.get(message.timestamp) ?? []) : [];
    const cost = images.length * IMAGE_TOKENS;
    if (images.length === 0 || listImages(message).length > 0 || tokens + cost > roomTokens) return message;
    tokens += cost;
    return { ...message, content: [...toBlocks(message.content), ...images] };
  });
  return { messages: restored.toReversed(), tokens };
}

function listImages({ content }: AgentMessage): readonly unknown[] {
  if (!Array.isArray(content)) return [];
  return content.filter((block: { type?: unknown } | null) => block?.type === "image");
}

function toBlocks(content: unknown): readonly unknown[] {
  return Array.isArray(content) ? content : [{ type: "text", text: String(content) }];
}

/** A message of the host with facts about the running turn; it is never part of the history. */
export function isRuntimeCarrier(message: AgentMessage): boolean {
  const details = message.details as { runtimeContextCarrier?: unknown } | undefined;
  return (
    message.runtimeContextCarrier === true ||
    (message.role === "custom" && details?.runtimeContextCarrier === true)
  );
}

/** The newest messages that fit. Cuts only before a user message or, if there is none, before a tool group, never inside one. */
export function cutToBudget(messages: readonly AgentMessage[], budgetTokens: number): AgentMessage[] {
  let tokens = 0;
  let start = messages.length;
  while (start > 0 && tokens + estimateMessageTokens(messages[start - 1]!) <= budgetTokens) {
    start -= 1;
    tokens += estimateMessageTokens(messages[start]!);
  }
  if (start === 0) return [...messages];
  const fits = messages.slice(start);
  const user = fits.findIndex((message) => message.role === "user");
  const group = fits.findIndex((message) => message.role !== "toolResult");
  if (user >= 0) return fits.slice(user);
  return group < 0 ? [] : fits.slice(group);
}

export function estimateTokens(messages: readonly AgentMessage[]): number {
  return messages.reduce((sum, message) => sum + estimateMessageTokens(message), 0);
}

function estimateMessageTokens(message: AgentMessage): number {
  const blocks = Array.isArray(message.content)
    ? (message.content as { type?: string; text?: string }[])
    : [{ text: message.content ?? message.summary ?? "" }];
  return blocks.reduce((sum, block) => sum + estimateBlockTokens(block), MESSAGE_OVERHEAD_TOKENS);
}

function estimateBlockTokens(block: { type?: string; text?: unknown }): number {
  if (block.type === "image") return IMAGE_TOKENS;
  return estimateSentTokens(typeof block.text === "string" ? block.text : JSON.stringify(block));
}

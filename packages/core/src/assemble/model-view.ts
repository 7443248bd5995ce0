/**
 * Converts stored messages to the provider-neutral list that `repair.ts` and `grammars.ts` work on. Each part includes its block as it
 * arrived, so that code that writes a host's own format can return it unchanged.
 *
 * Reasoning goes back only to the model that made it; a payload that was moved to a file is sent as its reference.
 */
import { partTokens, TOOL_FRAME_TOKENS, viewForModel, type SentPart } from "../message/normalize.ts";
import type { ModelIdentity } from "../model/message.ts";
import { countRepeats, MESSAGE_OVERHEAD_TOKENS } from "../text/tokens.ts";
import type { ModelMessage, ModelPart } from "./grammars.ts";
import { renderMediaStub, renderStub } from "./render.ts";
import { shortenCallMessage } from "./short-call.ts";
import type { StubText } from "./render.ts";

export interface StoredMessage {
  readonly messageId: number;
  readonly seq: number;
  readonly createdAt: number;
  readonly bytes: Uint8Array;
  /** Its stored count, if it is still valid. */
  readonly tokens: number | null;
}

export interface ViewOptions {
  readonly estimate: (text: string) => number;
  /** The model the context is for; if unknown, no reasoning is sent. */
  readonly model: ModelIdentity | null;
  /** Tool results are shown as stubs that name the message, tool calls without their long arguments. */
  readonly stub: StubLine | null;
  /** Images and files are replaced by such lines. */
  readonly mediaStub?: StubLine | null;
}

/** `roomTokens`: the tokens the message may have as a stub; if absent, its stubs are as short as possible. */
type StubLine = Pick<StubText, "id" | "tokens" | "canOpen"> & { readonly roomTokens?: number };

const REFERENCE = "[LCM File: ";

/** A message, and the model that wrote it, if the bytes say so. */
export interface WrittenMessage extends ModelMessage {
  readonly model?: ModelIdentity;
}

export function toModelMessage(message: StoredMessage, options: ViewOptions): WrittenMessage {
  const view = mendHalves(viewForModel(message.bytes), message.bytes);
  const keepsReasoning = isSameModel(view.model, options.model);
  const tokens = shareTokens(view.parts, message.tokens, options.estimate);
  const { stub, estimate } = options;
  const results = view.parts.filter(({ type }) => type === "tool_result").length;
  const roomTokens =
    Math.floor((stub?.roomTokens ?? 0) / Math.max(1, results)) - TOOL_FRAME_TOKENS - MESSAGE_OVERHEAD_TOKENS;
  const parts = view.parts
    .filter((part) => part.type !== "reasoning" || keepsReasoning)
    .map((part) =>
      stub !== null && part.type === "tool_result"
        ? stubResult(part, { ...stub, roomTokens, estimate })
        : toPart(part, tokens(part), options.mediaStub ?? null),
    );
  const isCall = parts.some(({ type }) => type === "tool_call");
  return {
    role: view.role === "other" ? "user" : view.role,
    parts: stub !== null && isCall ? shortenCallMessage(parts, stub, estimate) : parts,
    seq: message.seq,
    model: view.model,
  };
}

/** The beginning of an escaped lone surrogate. Bytes cannot contain one in any other way. */
const ESCAPED_SURROGATE = /\\u[dD][89a-fA-F]/;

/** No provider accepts a lone surrogate, which a host leaves when it cuts a text inside an emoji: replace it by a replacement character. */
function mendHalves(view: ReturnType<typeof viewForModel>, bytes: Uint8Array): typeof view {
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (!text.includes("\\u") || !ESCAPED_SURROGATE.test(text.toString("latin1"))) return view;
  return { ...view, parts: mendValue(view.parts) as typeof view.parts };
}

function mendValue(value: unknown): unknown {
  if (typeof value === "string") return value.toWellFormed();
  if (Array.isArray(value)) return value.map(mendValue);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, member]) => [key.toWellFormed(), mendValue(member)]),
  );
}

function isSameModel(made: ModelIdentity | undefined, wanted: ModelIdentity | null): boolean {
  return (
    made?.model !== undefined &&
    made.model === wanted?.model &&
    (made.provider ?? wanted.provider) === (wanted.provider ?? made.provider) &&
    (made.api ?? wanted.api) === (wanted.api ?? made.api)
  );
}

/**
 * The tokens of each part. Only the smaller ones are counted: the largest gets the rest of the stored count, which is without the tokens of
 * repeated characters.
 */
function shareTokens(
  parts: readonly SentPart[],
  stored: number | null,
  estimate: (text: string) => number,
): (part: SentPart) => number | undefined {
  if (stored === null) return () => undefined;
  if (parts.length === 1)
    return ({ text }) => Math.max(0, stored - MESSAGE_OVERHEAD_TOKENS) + countRepeats(text);
  let largest = parts[0];
  for (const part of parts) if (part.text.length > (largest?.text.length ?? 0)) largest = part;
  let left = stored - MESSAGE_OVERHEAD_TOKENS;
  const counted = new Map<SentPart, number>();
  for (const part of parts) {
    if (part === largest) continue;
    const tokens = partTokens(part, estimate);
    counted.set(part, tokens);
    left -= tokens - countRepeats(part.text);
  }
  return (part) => (part === largest ? Math.max(0, left) + countRepeats(part.text) : counted.get(part));
}

function stubResult(
  { type, text, toolCallId, toolName, isError }: SentPart,
  stub: Omit<StubText, "toolName">,
): ModelPart {
  return {
    type,
    text: renderStub({ ...stub, toolName: toolName ?? null, text }),
    toolCallId,
    toolName,
    isError,
  };
}

function toPart(part: SentPart, tokens: number | undefined, mediaStub: StubLine | null): ModelPart {
  const { type, text, toolCallId, toolName, isError, payloadBytes, block } = part;
  if (type === "image" || type === "file") {
    if (text.startsWith(REFERENCE)) return { type: "text", text };
    if (mediaStub !== null) return { type: "text", text: renderMediaStub(type, mediaStub) };
  }
  const kind = type === "other" ? "text" : type;
  const holds = part.holdsArguments === undefined ? {} : { holdsArguments: part.holdsArguments };
  return { type: kind, text, toolCallId, toolName, isError, payloadBytes, tokens, source: block, ...holds };
}

/**
 * From stored messages to the provider-neutral list that `repair.ts` and `grammars.ts` work on. Each part carries its block as it
 * arrived, so that whoever writes a host's own format can give it back unchanged.
 *
 * Reasoning goes back only to the model that made it; what is not spoken to a model (a payload that lives in a file) is its reference.
 */
import { asBuffer, endOfString } from "../message/json-spans.ts";
import { partTokens, viewMessage } from "../message/normalize.ts";
import type { MessageView, ModelIdentity, PartView } from "../model/message.ts";
import { MESSAGE_OVERHEAD_TOKENS } from "../model/tokens.ts";
import type { ModelMessage, ModelPart } from "./grammars.ts";
import { renderStub } from "./render.ts";

export interface StoredMessage {
  readonly messageId: number;
  readonly seq: number;
  readonly createdAt: number;
  readonly bytes: Uint8Array;
  /** Its stored count, if it still holds. */
  readonly tokens: number | null;
}

export interface ViewOptions {
  readonly estimate: (text: string) => number;
  /** The model the context is for; unknown means that no reasoning is sent. */
  readonly model: ModelIdentity | null;
  /** Tool results are shown as stubs that name the message. */
  readonly stub: { readonly id: string; readonly tokens: number } | null;
}

const REFERENCE = "[LCM File: ";

/** A message, and the model that wrote it, where the bytes say so. */
export interface WrittenMessage extends ModelMessage {
  readonly model?: ModelIdentity;
}

export function toModelMessage(message: StoredMessage, options: ViewOptions): WrittenMessage {
  const view = viewMessage(message.bytes);
  const bytes = asBuffer(message.bytes);
  const keepsReasoning = isSameModel(view.model, options.model);
  const tokens = shareTokens(view.parts, message.tokens, options.estimate);
  const parts = view.parts
    .filter((part) => part.type !== "reasoning" || keepsReasoning)
    .map((part) => toPart(part, bytes, tokens(part), options.stub));
  return { role: roleOf(view), parts, seq: message.seq, ...(view.model === undefined ? {} : { model: view.model }) };
}

function roleOf(view: MessageView): ModelMessage["role"] {
  return view.role === "other" ? "user" : view.role;
}

function isSameModel(made: ModelIdentity | undefined, wanted: ModelIdentity | null): boolean {
  return (
    made?.model !== undefined &&
    made.model === wanted?.model &&
    (made.provider ?? wanted.provider) === (wanted.provider ?? made.provider) &&
    (made.api ?? wanted.api) === (wanted.api ?? made.api)
  );
}

/** The tokens of each part, counted only for the smaller ones: the largest has what is left of the stored count. */
function shareTokens(
  parts: readonly PartView[],
  stored: number | null,
  estimate: (text: string) => number,
): (part: PartView) => number | undefined {
  if (stored === null) return () => undefined;
  let largest = parts[0];
  for (const part of parts) if (part.text.length > (largest?.text.length ?? 0)) largest = part;
  let left = stored - MESSAGE_OVERHEAD_TOKENS;
  const counted = new Map<PartView, number>();
  for (const part of parts) {
    if (part === largest) continue;
    const tokens = partTokens(part, estimate);
    counted.set(part, tokens);
    left -= tokens;
  }
  return (part) => (part === largest ? Math.max(0, left) : counted.get(part));
}

function toPart(part: PartView, bytes: Buffer, tokens: number | undefined, stub: ViewOptions["stub"]): ModelPart {
  const { type, toolCallId, toolName, isError } = part;
  const identity = {
    ...(toolCallId === undefined ? {} : { toolCallId }),
    ...(toolName === undefined ? {} : { toolName }),
    ...(isError === undefined ? {} : { isError }),
  };
  if (stub !== null && type === "tool_result") {
    return { type, text: renderStub({ id: stub.id, toolName: toolName ?? null, tokens: stub.tokens }), ...identity };
  }
  if ((type === "image" || type === "file") && part.text.startsWith(REFERENCE)) return { type: "text", text: part.text };
  const payload = part.payloadBytes === undefined ? {} : { payloadBytes: part.payloadBytes };
  const source = isAllText(part, bytes) ? {} : { source: readBlock(part, bytes) };
  return { type: type === "other" ? "text" : type, text: part.text, ...identity, ...payload, tokens, ...source };
}

const TEXT_BLOCK = Buffer.from('{"type":"text","text":"');
const QUOTE = 0x22;

/** Whether a part is its text and nothing else: its block need not be read a second time. */
function isAllText({ type, at, length, payloadBytes }: PartView, bytes: Buffer): boolean {
  if (payloadBytes !== undefined) return false;
  if (type === "tool_result") return true;
  if (type !== "text") return false;
  if (bytes[at] === QUOTE) return true;
  const literal = at + TEXT_BLOCK.length - 1;
  return (
    bytes.compare(TEXT_BLOCK, 0, TEXT_BLOCK.length, at, literal + 1) === 0 && endOfString(bytes, literal) === at + length - 1
  );
}

/** The block, or the text that stands in for one, as it is in the bytes; undefined when the range is no JSON of its own. */
function readBlock(part: PartView, bytes: Buffer): unknown {
  const text = bytes.toString("utf8", part.at, part.at + part.length);
  if (!text.startsWith("{") && !text.startsWith('"')) return undefined;
  try {
    return JSON.parse(text);
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}

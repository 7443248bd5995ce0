/**
 * From stored messages to the provider-neutral list that `repair.ts` and `grammars.ts` work on. Each part carries its block as it
 * arrived, so that whoever writes a host's own format can give it back unchanged.
 *
 * Reasoning goes back only to the model that made it; what is not spoken to a model (a payload that lives in a file) is its reference.
 */
import { viewMessage } from "../message/normalize.ts";
import type { MessageView, ModelIdentity, PartView } from "../model/message.ts";
import type { ModelMessage, ModelPart } from "./grammars.ts";
import { renderStub } from "./render.ts";

export interface StoredMessage {
  readonly messageId: number;
  readonly seq: number;
  readonly createdAt: number;
  readonly bytes: Uint8Array;
}

export interface ViewOptions {
  /** The model the context is for; unknown means that no reasoning is sent. */
  readonly model: ModelIdentity | null;
  /** Tool results are shown as stubs that name the message. */
  readonly stub: { readonly id: string; readonly tokens: number } | null;
}

const REFERENCE = "[LCM File: ";

export function toModelMessage(message: StoredMessage, options: ViewOptions): ModelMessage {
  const view = viewMessage(message.bytes);
  const keepsReasoning = isSameModel(view.model, options.model);
  const parts = view.parts
    .filter((part) => part.type !== "reasoning" || keepsReasoning)
    .map((part) => toPart(part, message.bytes, options.stub));
  return { role: roleOf(view), parts, seq: message.seq };
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

function toPart(part: PartView, bytes: Uint8Array, stub: ViewOptions["stub"]): ModelPart {
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
  return { type: type === "other" ? "text" : type, text: part.text, ...identity, ...payload, source: readBlock(part, bytes) };
}

/** The block, or the text that stands in for one, as it is in the bytes; undefined when the range is no JSON of its own. */
function readBlock(part: PartView, bytes: Uint8Array): unknown {
  const text = Buffer.from(bytes.buffer, bytes.byteOffset + part.at, part.length).toString("utf8");
  if (!text.startsWith("{") && !text.startsWith('"')) return undefined;
  try {
    return JSON.parse(text);
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}

/**
 * What a line of a transcript says of the work itself: the tokens a request took, the tools that were called and what failed. Pure; hosts that
 * report usage beside their messages (Codex) are read here too.
 */
import type { ReportedUsage } from "../model/message.ts";
import { isObject, parseObject } from "../text/json-object.ts";
import { readUsage, viewForModel } from "./normalize.ts";

export interface MessageFigures {
  /** Names the answer: a host that writes one in several rows repeats its usage in each. */
  readonly answer: string | null;
  readonly usage: ReportedUsage | null;
  readonly model: string | null;
  readonly toolCalls: readonly { readonly id: string | null; readonly name: string }[];
  /** Ids of the calls whose results are errors; null where a result names none. */
  readonly failed: readonly (string | null)[];
  readonly isPrompt: boolean;
}

export function readFigures(arrival: Uint8Array): MessageFigures {
  const view = viewForModel(arrival);
  const usage = view.usage ?? (view.isMessage ? null : readUsageEvent(arrival));
  const calls = view.parts.filter((part) => part.type === "tool_call");
  return {
    answer: view.answerId ?? null,
    usage: view.role === "assistant" || !view.isMessage ? usage : null,
    model: view.model?.model ?? null,
    toolCalls: calls.map(({ toolCallId = null, toolName }) => ({
      id: toolCallId,
      name: toolName ?? "unknown",
    })),
    failed: view.parts.filter((part) => part.isError === true).map(({ toolCallId = null }) => toolCallId),
    isPrompt: view.role === "user" && view.isMessage,
  };
}

/** Codex: `{"payload": {"type": "token_count", "info": {"last_token_usage": {…}}}}`. */
function readUsageEvent(arrival: Uint8Array): ReportedUsage | null {
  const text = Buffer.from(arrival.buffer, arrival.byteOffset, arrival.byteLength).toString("utf8");
  if (!text.includes('"last_token_usage"')) return null;
  const payload = parseObject(text)?.["payload"];
  const info = isObject(payload) ? payload["info"] : undefined;
  const usage = isObject(info) ? info["last_token_usage"] : undefined;
  if (!isObject(usage)) return null;
  const details = { cached_tokens: usage["cached_input_tokens"] };
  return readUsage({ ...usage, input_tokens_details: details }) ?? null;
}

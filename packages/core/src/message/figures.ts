/**
 * What a transcript line says about the work itself: the tokens a request took, the tools that were called and what failed. Pure; hosts
 * that report usage in their own way (Codex, Gemini CLI) are read here too.
 */
import type { ReportedUsage } from "../model/message.ts";
import { isObject, parseObject } from "../text/json-object.ts";
import type { JsonObject } from "../text/json-object.ts";
import { readUsage, viewForModel } from "./normalize.ts";

export interface MessageFigures {
  /** The id of the answer: a host that writes one in several rows repeats its usage in each. */
  readonly answer: string | null;
  readonly usage: ReportedUsage | null;
  readonly model: string | null;
  readonly toolCalls: readonly { readonly id: string | null; readonly name: string }[];
  /** Ids of the calls whose results are errors; null if a result names none. */
  readonly failed: readonly (string | null)[];
  readonly isPrompt: boolean;
}

export function readFigures(arrival: Uint8Array): MessageFigures {
  const view = viewForModel(arrival);
  const usage = view.usage ?? readOtherUsage(arrival, view.isMessage);
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

/** Usage that is not in the member `usage` of the message. */
function readOtherUsage(arrival: Uint8Array, isMessage: boolean): ReportedUsage | null {
  const text = Buffer.from(arrival.buffer, arrival.byteOffset, arrival.byteLength).toString("utf8");
  // Most lines contain neither and are not parsed for it.
  if (!text.includes(isMessage ? '"thoughts"' : '"last_token_usage"')) return null;
  const line = parseObject(text);
  return line === null ? null : isMessage ? readGeminiUsage(line) : readUsageEvent(line);
}

/** Codex: `{"payload": {"type": "token_count", "info": {"last_token_usage": {…}}}}`. */
function readUsageEvent({ payload }: JsonObject): ReportedUsage | null {
  const info = isObject(payload) ? payload["info"] : undefined;
  const usage = isObject(info) ? info["last_token_usage"] : undefined;
  if (!isObject(usage)) return null;
  const details = { cached_tokens: usage["cached_input_tokens"] };
  return readUsage({ ...usage, input_tokens_details: details }) ?? null;
}

/**
 * Gemini CLI: `{"tokens": {"input", "output", "cached", "thoughts", "tool", "total"}}`. Input includes cached tokens; tool output in the
 * prompt and thoughts are counted separately.
 */
function readGeminiUsage({ tokens }: JsonObject): ReportedUsage | null {
  if (!isObject(tokens)) return null;
  const own = readUsage({ ...tokens, input_tokens_details: { cached_tokens: tokens["cached"] } });
  const beside = readUsage({ input: tokens["tool"], output: tokens["thoughts"] });
  if (own?.inputTokens === undefined) return null;
  return {
    ...own,
    inputTokens: own.inputTokens + (beside?.inputTokens ?? 0),
    outputTokens: (own.outputTokens ?? 0) + (beside?.outputTokens ?? 0),
  };
}

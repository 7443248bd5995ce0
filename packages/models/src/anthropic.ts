/** Anthropic's Messages API. */
import { given, isObject } from "@lossless/core/doors";
import { sumCounts, type Answer } from "./answer.ts";
import type { Dialect } from "./dialect.ts";
import { classifyStreamError, makeFailure, readProviderError } from "./failures.ts";

export const anthropic: Dialect = {
  // Some configure the address with the version, some without.
  locate: ({ baseUrl }) => `${baseUrl.replace(/\/v1$/, "")}/v1/messages`,

  authorize: ({ apiKey }) => ({
    "anthropic-version": "2023-06-01",
    ...given({ "x-api-key": apiKey ?? undefined }),
  }),

  buildBody: (_endpoint, model, request) => ({
    model,
    max_tokens: request.maxTokens,
    system: request.system,
    messages: [{ role: "user", content: request.user }],
    stream: true,
    temperature: request.temperature,
  }),

  takeEvent(answer, event) {
    switch (event["type"]) {
      case "message_start":
        return takeMessage(answer, event["message"]);
      case "content_block_delta":
        return takeDelta(answer, event["delta"]);
      case "message_delta":
        answer.isFinished = true;
        return takeUsage(answer, event["usage"]);
      case "message_stop":
        answer.isFinished = true;
        answer.isDone = true;
        return;
      case "error": {
        const error = readProviderError(event);
        answer.failure = makeFailure(classifyStreamError(error), error.message || error.type);
      }
    }
  },

  takeWhole(answer, body) {
    takeMessage(answer, body);
    for (const block of Array.isArray(body["content"]) ? body["content"] : []) {
      if (isObject(block) && block["type"] === "text") answer.addText(block["text"]);
    }
    answer.isFinished = typeof body["stop_reason"] === "string";
    answer.isDone = true;
  },
};

function takeMessage(answer: Answer, message: unknown): void {
  if (!isObject(message)) return;
  answer.noteModel(message["model"]);
  takeUsage(answer, message["usage"]);
}

/** Thinking and signatures are other kinds of deltas. */
function takeDelta(answer: Answer, delta: unknown): void {
  if (isObject(delta) && delta["type"] === "text_delta") answer.addText(delta["text"]);
}

function takeUsage(answer: Answer, usage: unknown): void {
  if (!isObject(usage)) return;
  const input = sumCounts(
    usage["input_tokens"],
    usage["cache_creation_input_tokens"],
    usage["cache_read_input_tokens"],
  );
  answer.inputTokens = input ?? answer.inputTokens;
  answer.outputTokens = sumCounts(usage["output_tokens"]) ?? answer.outputTokens;
}

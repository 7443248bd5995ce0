/** OpenAI's chat completions, which nearly every other server also implements: Ollama, vLLM, LM Studio, routers. */
import { isObject } from "@lossless/core/doors";
import { type Answer, sumCounts } from "./answer.ts";
import type { Dialect, Endpoint } from "./dialect.ts";
import { classifyStreamError, makeFailure, readProviderError } from "./failures.ts";

/** Models that think before they answer, and longer than a summary needs unless limited. */
const THINKING_MODEL = /^(?:o\d|gpt-5)/;

export const openai: Dialect = {
  locate: ({ baseUrl }) => `${baseUrl}/chat/completions`,

  authorize({ apiKey }): Record<string, string> {
    return apiKey === null ? {} : { authorization: `Bearer ${apiKey}` };
  },

  buildBody: (endpoint, model, request) => ({
    model,
    messages: [
      { role: "system", content: request.system },
      { role: "user", content: request.user },
    ],
    stream: true,
    stream_options: { include_usage: true },
    [isOpenAi(endpoint) ? "max_completion_tokens" : "max_tokens"]: request.maxTokens,
    temperature: request.temperature,
    reasoning_effort: THINKING_MODEL.test(model) ? "low" : undefined,
  }),

  takeEvent(answer, event) {
    if (isObject(event["error"]) || typeof event["error"] === "string") {
      const error = readProviderError(event);
      answer.failure = makeFailure(classifyStreamError(error), error.message || error.type);
      return;
    }
    takeFrame(answer, event);
    const choice = firstChoice(event);
    const delta = choice?.["delta"];
    if (isObject(delta)) answer.addText(delta["content"]);
    if (typeof choice?.["finish_reason"] === "string") answer.isFinished = true;
  },

  takeWhole(answer, body) {
    takeFrame(answer, body);
    const choice = firstChoice(body);
    const message = choice?.["message"];
    if (isObject(message)) answer.addText(message["content"]);
    answer.isFinished = isObject(message);
    answer.isDone = true;
  },
};

/** Only OpenAI has models that reject the older name of the limit; elsewhere only the older name works everywhere. */
function isOpenAi(endpoint: Endpoint): boolean {
  return new URL(endpoint.baseUrl).hostname.endsWith("openai.com");
}

function takeFrame(answer: Answer, frame: Record<string, unknown>): void {
  answer.noteModel(frame["model"]);
  const usage = frame["usage"];
  if (!isObject(usage)) return;
  answer.inputTokens = sumCounts(usage["prompt_tokens"]) ?? answer.inputTokens;
  answer.outputTokens = sumCounts(usage["completion_tokens"]) ?? answer.outputTokens;
}

function firstChoice(frame: Record<string, unknown>): Record<string, unknown> | undefined {
  const choices = frame["choices"];
  const first: unknown = Array.isArray(choices) ? choices[0] : undefined;
  return isObject(first) ? first : undefined;
}

/** Answers of model providers, as events or as one body. The first line has the status and the content type. The caller always gets a result. */
import { openComplete } from "../../../packages/models/src/index.ts";
import { resolveSettings } from "@lossless/core";
import { hold } from "../target.ts";
import type { Target } from "../target.ts";

const PROVIDERS = ["anthropic/claude-x", "openai/gpt-x"];
/** Bytes per piece of the answer. */
const PIECE = 17;
const STALL_MS = 2_000;

export const modelTarget: Target = {
  name: "model-answer",
  words: [
    "data: ",
    "event: ",
    "\n\n",
    "[DONE]",
    "message_start",
    "content_block_delta",
    "text_delta",
    "message_delta",
    "message_stop",
    "choices",
    "delta",
    "content",
    "finish_reason",
    "usage",
    "error",
    "overloaded_error",
    "200 text/event-stream",
    "400 application/json",
    "unsupported parameter: 'temperature'",
  ],
  open: async () => {
    const real = globalThis.fetch;
    const calls = PROVIDERS.map((summaryModel) => {
      const { settings } = resolveSettings({ env: {}, config: { summaryModel } });
      return openComplete({
        settings,
        env: { ANTHROPIC_API_KEY: "k", OPENAI_API_KEY: "k" },
        stateDir: "/nowhere",
        stallMs: STALL_MS,
      });
    });
    return {
      run: async (input) => {
        const end = input.indexOf(10);
        const [status = "200", type = "text/event-stream"] = input
          .subarray(0, Math.max(0, end))
          .toString("latin1")
          .split(" ");
        globalThis.fetch = async () => answer(input.subarray(end + 1), Number(status), type);
        for (const complete of calls) {
          const request = {
            model: null,
            system: "s",
            messages: [{ role: "user", content: "x" }],
            prompt: "x",
            maxTokens: 100,
            maxOutputTokens: 100,
            purpose: "summary",
          };
          const result = await complete?.(request as never, new AbortController().signal);
          hold(
            result !== undefined && typeof result.kind === "string",
            "a model's answer has no result",
            result,
          );
          if (result?.kind === "text") hold(typeof result.text === "string", "a text is none", result);
        }
      },
      close: async () => {
        globalThis.fetch = real;
      },
    };
  },
};

function answer(body: Buffer, status: number, type: string): Response {
  const pieces = Array.from({ length: Math.ceil(body.length / PIECE) }, (_, at) =>
    body.subarray(at * PIECE, (at + 1) * PIECE),
  );
  const headers = { "content-type": /^[\w/+.-]+$/.test(type) ? type : "text/plain" };
  return new Response(ReadableStream.from(pieces), {
    status: status >= 200 && status <= 599 && ![204, 205, 304].includes(status) ? status : 200,
    headers,
  });
}

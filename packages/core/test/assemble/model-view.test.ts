import { describe, expect, test } from "vitest";
import { toModelMessage } from "../../src/assemble/model-view.ts";
import { messageTokens, partTokens, viewMessage } from "../../src/message/normalize.ts";
import { estimateTextTokens } from "../../src/text/tokens.ts";

const MODEL = { provider: "leafgate", model: "fern-4" };

const MESSAGE = {
  role: "assistant",
  ...MODEL,
  content: [
    { type: "thinking", thinking: "The queue is full because nobody reads it.", signature: "s" },
    { type: "text", text: "I look at the worker first." },
    { type: "toolCall", id: "call_1", name: "read", arguments: { path: "src/queue/worker.ts", limit: 200 } },
  ],
};

function show(
  message: unknown,
  options: { model?: typeof MODEL; stored?: number | null; estimate?: (text: string) => number } = {},
) {
  const bytes = Buffer.from(JSON.stringify(message));
  const tokens =
    options.stored === undefined ? messageTokens(viewMessage(bytes), estimateTextTokens) : options.stored;
  const { estimate = estimateTextTokens, model = null } = options;
  return toModelMessage(
    { messageId: 1, seq: 1, createdAt: 0, bytes, tokens },
    { model, stub: null, estimate },
  );
}

describe("tokens of parts", () => {
  test("each part has the tokens it would be counted with", () => {
    const { parts } = show(MESSAGE, { model: MODEL });
    expect(parts).toHaveLength(3);
    for (const part of parts)
      expect(part.tokens).toBe(partTokens({ ...part, text: part.text ?? "" }, estimateTextTokens));
  });

  test("what is left out takes its tokens along", () => {
    const whole = show(MESSAGE, { model: MODEL }).parts;
    const { parts } = show(MESSAGE);
    expect(parts.map(({ type }) => type)).toEqual(["text", "tool_call"]);
    expect(parts.map(({ tokens }) => tokens)).toEqual(whole.slice(1).map(({ tokens }) => tokens));
  });

  test("the largest part of a message is not counted again", () => {
    const counted: string[] = [];
    const estimate = (text: string): number => {
      counted.push(text);
      return estimateTextTokens(text);
    };
    show({ role: "user", content: "a long text that nobody counts twice" }, { estimate });
    expect(counted).toEqual([]);
    show(MESSAGE, { estimate });
    expect(counted).not.toContain("The queue is full because nobody reads it.");
  });

  test("without a stored count that holds, nothing is known", () => {
    expect(show(MESSAGE, { stored: null }).parts.map(({ tokens }) => tokens)).toEqual([undefined, undefined]);
  });
});

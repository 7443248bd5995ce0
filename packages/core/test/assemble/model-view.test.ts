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

describe("a message as a stub", () => {
  const stub = (message: unknown, roomTokens: number) => {
    const bytes = Buffer.from(JSON.stringify(message));
    const line = { id: "msg_1", tokens: 4_000, roomTokens };
    return toModelMessage(
      { messageId: 1, seq: 1, createdAt: 0, bytes, tokens: 4_000 },
      { model: null, stub: line, estimate: estimateTextTokens },
    ).parts;
  };
  const WRITE = {
    role: "assistant",
    content: [
      { type: "text", text: "I write the worker. ".repeat(100) },
      {
        type: "toolCall",
        id: "call_1",
        name: "write",
        arguments: {
          path: "src/queue/worker.ts",
          limit: 200,
          content: "export const drained = 1;\n".repeat(400),
        },
      },
    ],
  };

  test("keeps a tool call with its short arguments, and cuts the long ones to the room there is", () => {
    for (const room of [176, 400, 1_200]) {
      const parts = stub(WRITE, room);
      const call = parts.find(({ type }) => type === "tool_call");
      const given = call?.source as Record<string, unknown>;
      expect(given).toMatchObject({ path: "src/queue/worker.ts", limit: 200 });
      expect(given.content).toMatch(/^export const drained.*lcm_describe\(id="msg_1"\) shows it\.\]$/s);
      const tokens = parts.reduce(
        (sum, part) => sum + partTokens({ ...part, text: part.text ?? "" }, estimateTextTokens),
        0,
      );
      expect(tokens).toBeLessThanOrEqual(room);
    }
  });

  test("names what a result mentions where there is room for a line, and shows how it begins where there is more", () => {
    const text = `drainQueue called by queue_worker in src/queue/worker.ts\n${"drainQueue is busy\n".repeat(900)}`;
    const result = {
      role: "toolResult",
      toolCallId: "call_1",
      toolName: "read",
      content: [{ type: "text", text }],
    };
    const [line] = stub(result, 72);
    expect(line?.text).toMatch(/^\[Tool output.*It names drainQueue, .*lcm_describe/);
    const [wide] = stub(result, 300);
    expect(wide?.text).toMatch(/^drainQueue called by queue_worker/);
    expect(wide?.text).toMatch(/lcm_describe\(id="msg_1"\) shows it\.\]$/);
    for (const [part, room] of [
      [line, 72],
      [wide, 300],
    ] as const)
      expect(
        partTokens({ type: "tool_result", text: part?.text ?? "" }, estimateTextTokens),
      ).toBeLessThanOrEqual(room);
  });
});

import { describe, expect, test } from "vitest";

import {
  checkGrammar,
  PROVIDERS,
  type ModelMessage,
  type ModelPart,
  type Provider,
} from "../../src/assemble/grammars.ts";

const text = (value: string): ModelPart => ({ type: "text", text: value });
const call = (toolCallId: string): ModelPart => ({ type: "tool_call", toolCallId });
const result = (toolCallId: string): ModelPart => ({ type: "tool_result", toolCallId, text: "out" });
const user: ModelMessage = { role: "user", parts: [text("hi")] };
const reply: ModelMessage = { role: "assistant", parts: [text("ok")] };
const calls = (...ids: string[]): ModelMessage => ({ role: "assistant", parts: ids.map(call) });
const tool = (...ids: string[]): ModelMessage => ({ role: "tool", parts: ids.map(result) });

const refusing = (messages: readonly ModelMessage[]): Provider[] =>
  PROVIDERS.filter((provider) => checkGrammar(provider, messages).length > 0);

describe("the grammars", () => {
  test.each<[string, ModelMessage[], readonly Provider[]]>([
    ["a plain exchange", [user, reply, user], []],
    ["a call with its result", [user, calls("a"), tool("a"), reply], []],
    ["parallel calls with results in several messages", [user, calls("a", "b"), tool("a"), tool("b")], []],
    ["an empty list", [], PROVIDERS],
    ["an empty message", [user, { role: "assistant", parts: [] }], PROVIDERS],
    ["a blank text", [{ role: "user", parts: [text(" ")] }], PROVIDERS],
    ["a system message inside", [user, { role: "system", parts: [text("x")] }], PROVIDERS],
    ["a list that begins with the assistant", [reply, user], ["anthropic", "gemini", "bedrock"]],
    ["two user messages in a row", [user, user], ["gemini", "bedrock"]],
    ["two assistant messages in a row", [user, reply, reply], ["gemini", "bedrock"]],
    ["a call without a result", [user, calls("a"), user], PROVIDERS],
    ["a result without a call", [user, reply, tool("a")], PROVIDERS],
    ["a missing half of parallel calls", [user, calls("a", "b"), tool("a"), user], PROVIDERS],
    [
      "a result that comes after a user message",
      [user, calls("a"), user, tool("a")],
      ["anthropic", "openai-chat", "gemini", "bedrock"],
    ],
    ["an id used twice", [user, calls("a"), tool("a"), calls("a"), tool("a")], PROVIDERS],
    ["an id with signs", [user, calls("a|b"), tool("a|b")], ["anthropic", "bedrock"]],
    ["an id of fifty letters", [user, calls("x".repeat(50)), tool("x".repeat(50))], ["openai-chat"]],
    ["a call in a user message", [{ role: "user", parts: [text("x"), call("a")] }, tool("a")], PROVIDERS],
    [
      "reasoning that nothing follows",
      [user, { role: "assistant", parts: [text("x"), { type: "reasoning", text: "y" }] }],
      ["openai-responses"],
    ],
  ])("%s", (_, messages, expected) => {
    expect(refusing(messages)).toEqual(expected);
  });

  test("name the rule and the message", () => {
    expect(checkGrammar("bedrock", [user, user])).toEqual([
      { rule: "roles_alternate", index: 1, detail: "user follows user" },
    ]);
  });
});

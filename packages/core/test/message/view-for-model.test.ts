import { fc } from "@lossless/testkit/properties.ts";
import { describe, expect, test } from "vitest";
import { readSearchText, searchText, viewForModel, viewMessage } from "../../src/message/normalize.ts";
import type { PartView } from "../../src/model/message.ts";
import { anyText, jsonValue } from "./arbitraries.ts";
import { readTranscriptLines, transcriptFolder } from "./shared-data.ts";

/** The view with places, each part with the block it stands on instead. */
function withBlocks(bytes: Buffer): unknown {
  const view = viewMessage(bytes);
  return { ...view, parts: view.parts.map((part) => describePart(part, JSON.parse(sliceOf(bytes, part)))) };
}

const sliceOf = (bytes: Buffer, { at, length }: PartView): string => bytes.toString("utf8", at, at + length);

function describePart({ at: _at, length: _length, ...rest }: PartView, block: unknown): unknown {
  // A part without text may stand on the id of its call; nobody asks for that as a block.
  return rest.text === "" ? rest : { ...rest, block };
}

function seenByModel(bytes: Buffer): unknown {
  const view = viewForModel(bytes);
  return {
    ...view,
    parts: view.parts.map(({ block, ...part }) => describePart({ at: 0, length: 0, ...part }, block)),
  };
}

function expectSame(bytes: Buffer): void {
  expect(readSearchText(bytes)).toBe(searchText(viewMessage(bytes)));
  expect(readSearchText(bytes.toString())).toBe(readSearchText(bytes));
  if (!viewMessage(bytes).isMessage) expect(viewForModel(bytes)).toEqual(viewMessage(bytes));
  else expect(seenByModel(bytes)).toEqual(withBlocks(bytes));
}

const encode = (value: unknown): Buffer => Buffer.from(JSON.stringify(value));

describe("the view for a model is the view with blocks in place of places", () => {
  test.each([
    [{ role: "user", content: "hello" }],
    [
      {
        role: "assistant",
        content: [
          { type: "text", text: "a", cache: 1 },
          { type: "toolCall", id: "1", name: "ls", arguments: { path: "." } },
        ],
      },
    ],
    [
      {
        role: "toolResult",
        toolCallId: "1",
        toolName: "ls",
        content: [{ type: "image", data: "AAAA", mimeType: "image/png" }],
      },
    ],
    [
      {
        type: "user",
        message: {
          role: "user",
          content: [{ type: "tool_result", tool_use_id: "1", content: [{ type: "text", text: "x" }] }],
        },
      },
    ],
    [
      {
        role: "assistant",
        reasoning_content: "hm",
        content: null,
        tool_calls: [{ id: "1", function: { name: "ls", arguments: "{}" } }],
      },
    ],
    [{ role: "model", parts: [{ text: "hi" }, { functionCall: { name: "f", args: { a: 1 } } }] }],
    [{ type: "function_call_output", call_id: "1", output: "done" }],
    [
      {
        role: "assistant",
        content: [
          { type: "novel", n: 1 },
          { type: "text", text: "b" },
        ],
      },
    ],
    [{ role: "bashExecution", command: "ls", output: "a.ts" }],
    [{ type: "session", id: "1" }],
  ])("%j", (message) => {
    expectSame(encode(message));
  });

  test("a call that stands beside its result", () => {
    const call = {
      id: "1",
      name: "ls",
      args: { path: "." },
      result: [{ functionResponse: { response: {} } }],
    };
    expectSame(encode({ type: "gemini", content: "", thoughts: [{ subject: "s" }], toolCalls: [call] }));
  });

  test("whatever a host writes", () => {
    const type = fc.constantFrom(
      "text",
      "thinking",
      "toolCall",
      "tool_use",
      "tool_result",
      "image",
      "novel",
      "refusal",
    );
    const block = fc.oneof(
      jsonValue(),
      fc.record(
        { type, text: anyText(), id: anyText(), content: jsonValue(), input: jsonValue() },
        { requiredKeys: ["type"] },
      ),
    );
    const content = fc.oneof(anyText(), jsonValue(), fc.array(block, { maxLength: 4 }));
    const role = fc.constantFrom("user", "assistant", "tool", "toolResult", "system", "narrator");
    const message = fc.record(
      {
        role,
        content,
        toolCallId: anyText(),
        tool_calls: fc.array(block, { maxLength: 2 }),
        reasoning: anyText(),
        model: anyText(),
      },
      { requiredKeys: ["role"] },
    );
    fc.assert(fc.property(message, (value) => expectSame(encode(value))));
  });

  for (const name of ["claude-code", "codex", "gemini-cli", "other-agents", "pi"]) {
    const folder = transcriptFolder(name);
    test.skipIf(folder === null)(`real transcripts: ${name}`, () => {
      for (const line of readTranscriptLines(folder ?? "")) expectSame(line);
    });
  }
});

/** Calls and their results, as every reader of a conversation pairs them. */
import { expect, test } from "vitest";
import { describeOutcome } from "../../src/reading/cards.ts";
import type { ReadablePart } from "../../src/reading/parts.ts";
import { readCall } from "../../src/reading/tool-call.ts";
import { isBlank, isHousekeeping, pairCalls } from "../../src/reading/pairs.ts";

const bare: ReadablePart = {
  ordinal: 0,
  type: "text",
  text: "",
  chars: 0,
  toolCallId: null,
  toolName: null,
  isError: false,
  mimeType: null,
  fileName: null,
  payloadBytes: null,
  hasImage: false,
  call: null,
};

type Part = { readonly type: "tool_call" | "tool_result"; readonly toolCallId: string | null };
const call = (toolCallId: string | null): Part => ({ type: "tool_call", toolCallId });
const result = (toolCallId: string | null): Part => ({ type: "tool_result", toolCallId });

test("a call is paired with the next result under its id, wherever it is", () => {
  const [first, second, back] = [call("a"), call("b"), result("b")];
  const late = result("a");
  const { resultOf, moved } = pairCalls([
    { id: 1, parts: [first, second] },
    { id: 2, parts: [back] },
    { id: 3, parts: [late] },
  ]);
  expect(resultOf.get(first)).toEqual({ messageId: 3, part: late });
  expect(resultOf.get(second)).toEqual({ messageId: 2, part: back });
  expect([...moved]).toEqual([back, late]);
});

test("under a repeated id each call keeps its own result", () => {
  const parts = [call("a"), result("a"), call("a"), result("a")] as const;
  const { resultOf } = pairCalls(parts.map((part, id) => ({ id, parts: [part] })));
  expect(resultOf.get(parts[0])?.messageId).toBe(1);
  expect(resultOf.get(parts[2])?.messageId).toBe(3);
});

test("a result without a call before it stays where it is, and so does one without an id", () => {
  const { resultOf, moved } = pairCalls([
    { id: 1, parts: [result("a"), call("a"), result(null), call(null)] },
    { id: 2, parts: [result(null)] },
  ]);
  expect([resultOf.size, moved.size]).toEqual([0, 0]);
});

test("reasoning that only its provider can read is blank, an image is not", () => {
  expect(isBlank({ type: "reasoning", text: " \n" })).toBe(true);
  expect(isBlank({ type: "image", text: "" })).toBe(false);
  expect(
    [["meta"], ["heartbeat", "branch"], ["branch"], []].map((hidden) => isHousekeeping({ hidden })),
  ).toEqual([true, true, false, false]);
});

test("the outcome of an edit is its size, unless it failed", () => {
  const block = { input: { file_path: "a.ts", old_string: "a\nb", new_string: "a\nc\nd" } };
  const edit = { ...bare, type: "tool_call" as const, call: readCall(block) };
  const done = { ...bare, type: "tool_result" as const, text: "The file was updated.", chars: 21 };
  expect(describeOutcome(edit, done)).toBe("+2 −1");
  expect(describeOutcome(edit, { ...done, isError: true })).toBe("error: The file was updated.");
  expect(describeOutcome({ ...edit, call: null }, done)).toBe("The file was updated.");
  expect(describeOutcome({ ...edit, call: null }, null)).toBe("");
});

/** Lines of hosts that name the speaker by the line's type, or keep the message in an envelope of their own. */
import { describe, expect, test } from "vitest";
import { viewMessage } from "../../src/message/normalize.ts";
import type { MessageView, PartView } from "../../src/model/message.ts";

const encode = (value: unknown): Buffer => Buffer.from(JSON.stringify(value));
const view = (value: unknown): MessageView => viewMessage(encode(value));
const describeParts = ({ parts }: MessageView): unknown[] => parts.map(({ type, text }) => [type, text]);

describe("a line names its speaker by its type", () => {
  test.each([
    ["user", "user"],
    ["assistant", "assistant"],
    ["gemini", "assistant"],
    ["model", "assistant"],
    ["system", "system"],
  ])("%s is %s", (type, role) => {
    const seen = view({ type, content: [{ text: "ahoy" }], timestamp: "2026-01-02T03:04:05Z" });
    expect(seen).toMatchObject({ role, rawRole: type, isMessage: true, createdAt: 1_767_323_045_000 });
    expect(describeParts(seen)).toEqual([["text", "ahoy"]]);
  });

  test.each([
    ["without anything said", { type: "user", id: "u1" }],
    ["with a note of the host", { type: "system", subtype: "init", content: "ready" }],
    ["between linked rows", { type: "user", parentUuid: null, content: "aside" }],
    ["of another kind", { type: "info", content: "Update available" }],
  ])("but not %s", (_name, value) => {
    expect(view(value)).toMatchObject({ role: "other", isMessage: false });
  });

  test("in steps of an agent", () => {
    const step = { step_index: 3, created_at: "2026-01-02T03:04:05Z" };
    expect(view({ ...step, source: "USER_EXPLICIT", type: "USER_INPUT", content: "go" }).role).toBe("user");
    const planned = view({
      ...step,
      source: "MODEL",
      type: "PLANNER_RESPONSE",
      thinking: "hm",
      tool_calls: [],
    });
    expect(planned).toMatchObject({ role: "assistant", parts: [{ type: "reasoning", text: "hm" }] });
    expect(view({ ...step, source: "MODEL", type: "VIEW_FILE", content: "a\n" }).role).toBe("tool");
    expect(view({ ...step, source: "SYSTEM", type: "CHECKPOINT", content: "saved" }).role).toBe("system");
  });
});

describe("an envelope holds the message", () => {
  test("data, under a type that names the speaker", () => {
    const request = { toolCallId: "c1", name: "bash", arguments: { command: "ls" } };
    const said = view({ type: "assistant.message", data: { content: "Looking.", toolRequests: [request] } });
    expect(said).toMatchObject({ role: "assistant", isMessage: true });
    expect(describeParts(said)).toEqual([
      ["text", "Looking."],
      ["tool_call", "bash\ncommand: ls"],
    ]);
    const done = { toolCallId: "c1", success: false, result: { content: "exit code 1\n" } };
    expect(view({ type: "tool.execution_complete", data: done })).toMatchObject({
      role: "tool",
      parts: [{ type: "tool_result", toolCallId: "c1", text: "exit code 1\n", isError: true }],
    });
    expect(view({ type: "session.start", data: { content: "x" } }).isMessage).toBe(false);
  });

  test("an event with a piece of the answer, a call or a result", () => {
    const event = (inner: object): MessageView =>
      view({ type: "context.append_loop_event", event: inner, time: 1_785_613_801_102 });
    expect(event({ type: "content.part", part: { type: "think", think: "hm" } })).toMatchObject({
      role: "assistant",
      createdAt: 1_785_613_801_102,
      parts: [{ type: "reasoning", text: "hm" }],
    });
    expect(
      event({ type: "tool.call", toolCallId: "B1", name: "Bash", args: { command: "ls" } }),
    ).toMatchObject({
      role: "assistant",
      parts: [{ type: "tool_call", toolCallId: "B1", toolName: "Bash" }],
    });
    const result = { output: "No such file", isError: true };
    expect(event({ type: "tool.result", toolCallId: "B1", result })).toMatchObject({
      role: "tool",
      parts: [{ type: "tool_result", toolCallId: "B1", text: "No such file", isError: true }],
    });
    expect(event({ type: "step.begin", step: 1 }).isMessage).toBe(false);
  });

  test("message, beside the role", () => {
    const seen = view({ role: "user", message: { content: [{ type: "text", text: "hello" }] } });
    expect(seen).toMatchObject({ role: "user", rawRole: "user", parts: [{ type: "text", text: "hello" }] });
  });

  test("payload, only for what the responses dialect has", () => {
    expect(view({ type: "response_item", payload: { type: "tool_call", arguments: {} } }).isMessage).toBe(
      false,
    );
  });
});

test("a call that holds its result gives both, and their parts do not overlap", () => {
  const functionResponse = { id: "c1", name: "shell", response: { output: "README.md" } };
  const call = {
    id: "c1",
    name: "shell",
    args: { input: "ls" },
    result: [{ functionResponse }],
    status: "error",
  };
  const bytes = encode({
    type: "gemini",
    content: "",
    thoughts: [{ subject: "A", description: "b" }],
    toolCalls: [call],
  });
  const seen = viewMessage(bytes);
  expect(seen.parts).toMatchObject([
    { type: "reasoning", text: "A\nb" },
    { type: "text", text: "" },
    { type: "tool_call", toolCallId: "c1", toolName: "shell", holdsArguments: true },
    { type: "tool_result", toolCallId: "c1", toolName: "shell", text: "README.md", isError: true },
  ]);
  const [, , made, answered] = seen.parts as [PartView, PartView, PartView, PartView];
  expect(JSON.parse(bytes.toString("utf8", made.at, made.at + made.length))).toEqual({ input: "ls" });
  expect(answered.at).toBeGreaterThanOrEqual(made.at + made.length);
});

test("a result with more than one text is shown whole", () => {
  const functionResponse = { id: "c1", name: "f", response: { output: "a", error: "b" } };
  const seen = view({ type: "user", content: [{ functionResponse }] });
  expect(seen).toMatchObject({ role: "tool", parts: [{ type: "tool_result", text: "output: a\nerror: b" }] });
});

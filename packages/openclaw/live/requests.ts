/** Checks the requests sent to the fake model: is the list valid, is the front unchanged? */

import assert from "node:assert/strict";
import { flattenContent, type ChatMessage, type RecordedRequest } from "@lossless/testkit/fake-model.ts";

/** Every tool call is answered directly after its message, every answer has its call, and roles are known. */
export function checkSequence({ messages, number }: RecordedRequest): void {
  let open = new Set<string>();
  for (const message of messages) {
    if (message.role === "tool") {
      assert.ok(open.delete(String(message.tool_call_id)), `request ${number}: a result without its call`);
      continue;
    }
    assert.equal(open.size, 0, `request ${number}: a call without its result`);
    const calls = (message.tool_calls ?? []) as { id: string }[];
    open = new Set(calls.map((call) => call.id));
  }
  assert.equal(open.size, 0, `request ${number}: a call without its result`);
}

/** The history of a request: without the system prompt and without what the host appends. */
export function historyOf({ messages }: RecordedRequest): string[] {
  return messages
    .filter((message) => message.role !== "system" && !isInternal(message))
    .map((message) =>
      JSON.stringify([message.role, message.content, message.tool_calls, message.tool_call_id]),
    );
}

/** How many of the leading messages two requests have in common. */
export function countShared(before: readonly string[], after: readonly string[]): number {
  let shared = 0;
  while (shared < before.length && before[shared] === after[shared]) shared += 1;
  return shared;
}

export function textOf(request: RecordedRequest): string {
  return request.messages.map((message) => flattenContent(message.content)).join("\n");
}

function isInternal(message: ChatMessage): boolean {
  return flattenContent(message.content).includes("<<<BEGIN_OPENCLAW_INTERNAL_CONTEXT>>>");
}

import { fc } from "@lossless/testkit/properties.ts";
import { describe, expect, test } from "vitest";

import { listRefusals } from "@lossless/testkit/provider-rules.ts";

import { PROVIDERS } from "../../src/assemble/grammars.ts";
import { toModelMessage } from "../../src/assemble/model-view.ts";
import { repairMessages, type RepairOptions } from "../../src/assemble/repair.ts";
import { writeMessages } from "../../src/assemble/write.ts";

/** Arrivals as a context would send them. */
function send(arrivals: readonly unknown[], options: RepairOptions = {}) {
  const drafts = arrivals.map((arrival, index) =>
    toModelMessage(
      {
        messageId: index + 1,
        seq: index + 1,
        createdAt: 0,
        bytes: Buffer.from(JSON.stringify(arrival)),
        tokens: null,
      },
      { estimate: (text) => text.length, model: { model: "m" }, stub: null },
    ),
  );
  return writeMessages(repairMessages(drafts, options), { timeOf: () => 0, modelOf: () => undefined });
}

const text = fc.constantFrom(
  "words",
  "",
  " \n",
  "cut \ud83d",
  "\ude00 the other half",
  "</summary></recall></tool_result>",
  "\u0000 zero",
);
const id = fc.constantFrom("a", "b", "an id|with:signs", "", "x".repeat(90), "half \ud83d");
const name = fc.constantFrom(
  "exec",
  "web.search",
  "mcp:server/tool",
  "1st",
  "",
  "n".repeat(200),
  "名前",
  "x]\n\ud83d",
);
const block = fc.oneof(
  text.map((value) => ({ type: "text", text: value })),
  fc.record({
    type: fc.constant("toolCall"),
    id,
    name,
    arguments: fc.dictionary(text, text, { maxKeys: 2 }),
  }),
  fc.record({ type: fc.constant("tool_use"), id, name, input: fc.record({ command: text }) }),
  fc.record({ type: fc.constant("thinking"), thinking: text }),
  fc.record({
    type: fc.constant("image"),
    mimeType: fc.constant("image/png"),
    data: fc.constant("iVBORw0KGgo="),
  }),
  fc.record({ type: fc.constant("tool_result"), tool_use_id: id, content: text }),
  fc.record({ type: fc.constant("unheard_of"), value: text }),
);
const content = fc.oneof(text, fc.array(block, { maxLength: 4 }));
const arrival = fc.oneof(
  fc.record({
    role: fc.constantFrom("user", "assistant", "system"),
    content,
    model: fc.constantFrom("m", "n"),
  }),
  fc.record({
    role: fc.constant("toolResult"),
    toolCallId: id,
    toolName: name,
    content: fc.array(
      text.map((value) => ({ type: "text", text: value })),
      { maxLength: 3 },
    ),
  }),
);

describe("the messages that are sent", () => {
  test("are ones that no provider refuses, whatever the archive holds", () => {
    fc.assert(
      fc.property(fc.array(arrival, { minLength: 1, maxLength: 14 }), (arrivals) => {
        for (const provider of PROVIDERS) {
          expect(listRefusals(provider, send(arrivals))).toEqual([]);
          expect(listRefusals(provider, send(arrivals, { provider }))).toEqual([]);
        }
      }),
      { numRuns: 400 },
    );
  });

  test("the check itself finds what providers refuse", () => {
    const call = { type: "toolCall", id: "a", name: "a.b", arguments: {} };
    const user = (value: string) => ({
      role: "user" as const,
      content: [{ type: "text", text: value }],
      timestamp: 0,
    });
    expect(listRefusals("bedrock", [])).toEqual(["there is no message"]);
    expect(listRefusals("bedrock", [user("\ud83d"), user(" ")])).toEqual([
      "message 0: half of a surrogate pair",
      "message 1: a blank text",
      "message 1: user after user",
    ]);
    const calls = [user("hi"), { role: "assistant" as const, content: [call], timestamp: 0 }];
    expect(listRefusals("openai-chat", calls)).toEqual([
      'message 1: the name "a.b"',
      "message 2: no result for a",
    ]);
    expect(listRefusals("gemini", calls)).toEqual(["message 2: no result for a"]);
    const open = user('<recall trust="untrusted">\nx</recall>\nmore\n</recall>');
    expect(listRefusals("gemini", [open])).toEqual([
      'message 0: a frame that its text can close: <recall trust="untrusted">\nx</recall>\nmo',
    ]);
  });
});

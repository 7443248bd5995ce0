import { oddMessage } from "@lossless/testkit/odd-messages.ts";
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

describe("the messages that are sent", () => {
  test("are ones that no provider refuses, whatever the archive holds", () => {
    fc.assert(
      fc.property(fc.array(oddMessage, { minLength: 1, maxLength: 14 }), (arrivals) => {
        for (const provider of PROVIDERS) {
          expect(listRefusals(provider, send(arrivals))).toEqual([]);
          expect(listRefusals(provider, send(arrivals, { provider }))).toEqual([]);
        }
        // None of them failed.
        expect(send(arrivals).filter(({ isError }) => isError === true)).toEqual([]);
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

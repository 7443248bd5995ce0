import { fc } from "@lossless/testkit/properties.ts";
import { describe, expect, test } from "vitest";

import { HIDDEN } from "../../src/model/message.ts";
import { findFreshTail, type TailPolicy } from "../../src/model/tail.ts";
import { groupItems, isUserMessage } from "../../src/model/tool-groups.ts";
import { FakeConversation, message, messages, summary, turn, type ItemSpec } from "./cover-kit.ts";

const user: ItemSpec = { role: "user" };
const call: ItemSpec = { calls: ["a"] };
const result: ItemSpec = { role: "tool", results: ["a"] };

const list = (...specs: ItemSpec[]) => specs.map((spec, index) => message(index + 1, spec));

describe("the fresh tail", () => {
  test.each<[string, ItemSpec[], TailPolicy, number]>([
    ["holds the newest messages", [user, {}, user, {}, user, {}], { freshTailCount: 3 }, 3],
    ["holds everything when there is little", [user, {}], { freshTailCount: 64 }, 0],
    ["reaches back to the newest user message", [user, {}, user, {}, {}, {}, {}], { freshTailCount: 2 }, 2],
    [
      "is limited by tokens",
      [user, {}, user, {}, user, {}],
      { freshTailCount: 64, freshTailMaxTokens: 350 },
      3,
    ],
    ["is at least the newest message", [{}, {}, {}], { freshTailCount: 1, freshTailMaxTokens: 1 }, 2],
    [
      "leaves out a tool group it cannot hold whole",
      [user, {}, call, result, user, {}],
      { freshTailCount: 3 },
      4,
    ],
    ["holds a tool group whole", [user, {}, call, result, user, {}], { freshTailCount: 4 }, 2],
    [
      "does not take a tool result for a user message",
      [user, call, { role: "user", results: ["a"] }],
      { freshTailCount: 1 },
      0,
    ],
    [
      "keeps to its bounds when the running turn is too long",
      [user, {}, {}, {}, {}, {}],
      { freshTailCount: 2, turnMaxTokens: 300 },
      4,
    ],
  ])("%s", (_, specs, policy, startIndex) => {
    expect(findFreshTail(list(...specs), policy).startIndex).toBe(startIndex);
  });

  test("pins the newest user message of a turn that is too long", () => {
    const items = list(user, {}, user, {}, {}, {});
    const tail = findFreshTail(items, { freshTailCount: 2, turnMaxTokens: 300 });
    expect(tail).toEqual({ startIndex: 4, messages: 2, tokens: 200, pinned: { startIndex: 2, endIndex: 3 } });
  });

  test("does not reach beyond a summary", () => {
    const items = [message(1, user), summary(2, 9), message(10, user), message(11)];
    expect(findFreshTail(items, { freshTailCount: 64 }).startIndex).toBe(2);
  });

  test("does not count hidden rows", () => {
    const items = [...messages(3, user), message(4, { hidden: HIDDEN.heartbeat }), message(5, user)];
    expect(findFreshTail(items, { freshTailCount: 2 })).toMatchObject({ startIndex: 2, messages: 2 });
  });

  test("protects nothing where there is no message", () => {
    expect(findFreshTail([], { freshTailCount: 64 }).startIndex).toBe(0);
    expect(findFreshTail([summary(1, 4)], { freshTailCount: 64 })).toMatchObject({
      startIndex: 1,
      messages: 0,
    });
  });

  test("begins at the edge of a tool group and holds the newest user message", () => {
    const policy = fc.record({
      freshTailCount: fc.integer({ min: 1, max: 40 }),
      freshTailMaxTokens: fc.option(fc.integer({ min: 1, max: 30_000 }), { nil: undefined }),
    });
    fc.assert(
      fc.property(fc.array(turn, { minLength: 1, maxLength: 15 }), policy, (turns, tailPolicy) => {
        const conversation = new FakeConversation();
        for (const spec of turns.flat()) conversation.append(spec);
        const { items } = conversation;
        const tail = findFreshTail(items, tailPolicy);
        const first = items[tail.startIndex];
        expect(groupItems(items).some((group) => group.items[0] === first)).toBe(true);
        const newest = items.findLastIndex((item) => item.hidden === 0 && isUserMessage(item));
        expect(tail.startIndex).toBeLessThanOrEqual(newest);
        expect(tail.pinned).toBeNull();
      }),
    );
  });
});

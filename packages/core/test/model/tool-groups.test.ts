import { fc } from "@lossless/testkit/properties.ts";
import { describe, expect, test } from "vitest";

import { HIDDEN } from "../../src/model/message.ts";
import { groupItems, groupNewestFirst, MAX_INTERVENING_MESSAGES } from "../../src/model/tool-groups.ts";
import { FakeConversation, message, messages, summary, turn, type ItemSpec } from "./cover-kit.ts";

const call = (...ids: string[]): ItemSpec => ({ calls: ids });
const result = (...ids: string[]): ItemSpec => ({ role: "tool", results: ids });
const user: ItemSpec = { role: "user" };

function groupSizes(specs: readonly ItemSpec[]): number[] {
  return groupItems(specs.map((spec, index) => message(index + 1, spec))).map((group) => group.items.length);
}

describe("tool groups", () => {
  test.each<[string, ItemSpec[], number[]]>([
    ["messages without tools stand alone", [user, {}, user], [1, 1, 1]],
    ["a call keeps its result", [user, call("a"), result("a"), {}], [1, 2, 1]],
    ["parallel calls keep all their results", [call("a", "b"), result("a"), result("b"), {}], [3, 1]],
    [
      "results that come in one message are kept",
      [call("a", "b"), { role: "user", results: ["a", "b"] }],
      [2],
    ],
    ["a result that comes after other messages is kept", [call("a"), user, {}, result("a"), {}], [4, 1]],
    ["groups that interleave become one", [call("a"), call("b"), result("a"), result("b")], [4]],
    ["a call without a result stands alone", [call("a"), user, {}], [1, 1, 1]],
    ["a result without a call stands alone", [user, result("a"), {}], [1, 1, 1]],
    [
      "a reused id belongs to the nearest call",
      [call("a"), result("a"), user, call("a"), result("a")],
      [2, 1, 2],
    ],
    [
      "a reused id does not reach past an unanswered call",
      [call("a"), user, call("a"), result("a")],
      [1, 1, 2],
    ],
    ["a second result of the same call is kept", [call("a"), result("a"), result("a")], [3]],
    ["a message that answers itself stands alone", [{ calls: ["a"], results: ["a"] }, user], [1, 1]],
  ])("%s", (_, specs, sizes) => {
    expect(groupSizes(specs)).toEqual(sizes);
  });

  test("counts the halves that lack their partner", () => {
    const unpaired = (specs: ItemSpec[]) =>
      groupItems(specs.map((spec, n) => message(n + 1, spec))).map((g) => g.unpaired);
    expect(unpaired([call("a", "b"), result("a")])).toEqual([1]);
    expect(unpaired([result("x"), call("a"), result("a"), result("a")])).toEqual([1, 1]);
  });

  test("hidden items belong to no group and part none", () => {
    const groups = groupItems([
      message(1, call("a")),
      message(2, { hidden: HIDDEN.meta }),
      message(3, result("a")),
    ]);
    expect(groups.map((group) => group.items.map((item) => item.seq))).toEqual([[1, 3]]);
  });

  test("a summary ends the search for a call", () => {
    const groups = groupItems([message(1, call("a")), summary(2, 5), message(6, result("a"))]);
    expect(groups.map((group) => group.items.length)).toEqual([1, 1, 1]);
  });

  test("an answer that comes much too late does not weld everything between", () => {
    const within = [message(1, call("a")), ...messages(MAX_INTERVENING_MESSAGES, {}, 2)];
    const items = (gap: number) => [...within.slice(0, gap + 1), message(900, result("a"))];
    expect(groupItems(items(MAX_INTERVENING_MESSAGES))).toHaveLength(1);
    expect(groupItems([...within, message(899), message(900, result("a"))])).toHaveLength(within.length + 2);
  });

  test("many parallel results do not count as messages between", () => {
    const ids = Array.from({ length: 200 }, (_, n) => `c${n}`);
    const items = [message(1, call(...ids)), ...ids.map((id, n) => message(2 + n, result(id)))];
    expect(groupItems(items)).toHaveLength(1);
  });

  test("is read only as far as groups are asked for", () => {
    let read = 0;
    function* newestFirst() {
      for (let n = 1000; n > 0; n--) {
        read++;
        yield message(n);
      }
    }
    const groups = groupNewestFirst(newestFirst());
    groups.next();
    groups.next();
    expect(read).toBeLessThan(5);
  });

  test("together hold every shown item once, in order, and part no call from its nearest result", () => {
    fc.assert(
      fc.property(fc.array(turn, { maxLength: 12 }), (turns) => {
        const conversation = new FakeConversation();
        for (const spec of turns.flat()) conversation.append(spec);
        const shown = conversation.items.filter((item) => item.hidden === 0);
        const groups = groupItems(conversation.items);
        expect(groups.flatMap((group) => group.items)).toEqual(shown);
        for (const group of groups) {
          if (group.items.length > 1) expect(group.hasTools).toBe(true);
          for (const item of group.items)
            for (const id of item.toolResults) {
              const nearest = shown.findLast((other) => other.seq < item.seq && other.toolCalls.includes(id));
              const between = nearest ? shown.filter((o) => o.seq > nearest.seq && o.seq < item.seq) : [];
              if (
                nearest &&
                between.filter((o) => o.toolResults.length === 0).length <= MAX_INTERVENING_MESSAGES
              )
                expect(group.items).toContain(nearest);
            }
        }
      }),
    );
  });
});

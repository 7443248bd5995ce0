import { fc } from "@lossless/testkit/properties.ts";
import { describe, expect, test } from "vitest";

import { planPrepared, planSweep, recordPass, startSweep } from "../../src/compact/plan.ts";
import { planReserve } from "../../src/compact/plan-reserve.ts";
import { countShownTokens } from "../../src/compact/runs.ts";
import { choose, type Choice, type ChooseRequest } from "../../src/assemble/choose.ts";
import { checkGrammar, PROVIDERS, type ModelMessage, type ModelPart } from "../../src/assemble/grammars.ts";
import { MISSING_HALF_TOKENS, STUB_TOKENS } from "../../src/assemble/pieces.ts";
import { repairMessages } from "../../src/assemble/repair.ts";
import { isHiddenByBoundary } from "../../src/model/boundaries.ts";
import type { CoverItem } from "../../src/model/cover.ts";
import { HIDDEN, POSITION_STEP } from "../../src/model/message.ts";
import type { ReserveSummary } from "../../src/model/reserve.ts";
import { groupItems, isSummaryItem, isUserMessage } from "../../src/model/tool-groups.ts";
import {
  FakeConversation,
  message,
  messages,
  POLICY,
  summary,
  turn,
  type ItemSpec,
  type Turn,
} from "../model/cover-kit.ts";

const user: ItemSpec = { role: "user" };

function request(
  oldestFirst: readonly CoverItem[],
  budgetTokens: number,
  more: Partial<ChooseRequest> = {},
): ChooseRequest {
  const shown = oldestFirst.filter((item) => item.hidden === 0);
  return {
    items: oldestFirst.toReversed(),
    counters: {
      shownMessages: shown.reduce((sum, item) => sum + item.messages, 0),
      shownTokens: shown.reduce((sum, item) => sum + item.tokens, 0),
      firstAt: shown[0]?.createdAt ?? null,
    },
    budgetTokens,
    tail: POLICY,
    ...more,
  };
}

const describeChoice = (choice: Choice): string[] =>
  choice.items.map(({ kind, ids, messages: count }) =>
    kind === "range" ? `range ${count}` : `${kind} ${ids.join()}`,
  );

const reserve = (from: number, to: number, more: Partial<ReserveSummary> = {}): ReserveSummary => ({
  summaryId: `sum_r_${from}_${to}`,
  startPosition: from * POSITION_STEP,
  endPosition: to * POSITION_STEP,
  messages: to - from + 1,
  tokens: 500,
  depth: 3,
  isRoot: from === 1,
  ...more,
});

describe("a cover that fits", () => {
  test("is the choice, whole", () => {
    const items = [summary(1, 10), ...messages(5, user, 11)];
    const choice = choose(request(items, 700));
    expect(choice).toMatchObject({ mode: "whole", tokens: 700, messages: 15 });
    expect(choice.items.map(({ reason }) => reason)).toEqual(Array(6).fill("the whole cover fits"));
  });

  test("leaves out hidden items", () => {
    const items = [message(1, user), message(2, { hidden: HIDDEN.heartbeat }), message(3)];
    expect(describeChoice(choose(request(items, 1_000)))).toEqual(["message msg_1", "message msg_3"]);
  });

  test("is empty for an empty conversation", () => {
    expect(choose(request([], 1_000))).toMatchObject({ mode: "whole", items: [], tokens: 0 });
  });

  test("counts what explains a missing half of a tool group", () => {
    const items = [
      message(1, user),
      message(2, { calls: ["a", "b"] }),
      message(3, { role: "tool", results: ["a"] }),
    ];
    expect(choose(request(items, 1_000)).tokens).toBe(332);
  });

  test("is compared with the budget in the model's own tokens", () => {
    const items = messages(10, user);
    expect(choose(request(items, 1_200, { tokenFactor: 1.2 }))).toMatchObject({
      mode: "whole",
      calibratedTokens: 1_200,
    });
    expect(choose(request(items, 1_199, { tokenFactor: 1.2 })).mode).toBe("tight");
  });
});

describe("a tight budget", () => {
  test("shows the newest messages and one line for the rest where nothing is folded", () => {
    const choice = choose(request(messages(100, user), 2_000));
    expect(choice.mode).toBe("tight");
    expect(choice.items[0]).toMatchObject({ kind: "range", earliestAt: message(1).createdAt });
    expect(choice.items.filter(({ kind }) => kind === "range")).toHaveLength(1);
    expect(choice.items.at(-1)?.ids).toEqual(["msg_100"]);
    expect(choice.messages).toBe(100);
  });

  test("leaves room free when asked to, without moving the anchor", () => {
    const items = messages(100, user);
    const all = choose(request(items, 2_000));
    const less = choose(request(items, 2_000, { marginTokens: 300 }));
    expect(less.anchorTokens).toBe(all.anchorTokens);
    expect(less.tokens).toBeLessThanOrEqual(1_700);
    expect(less.messages).toBe(100);
    const whole = messages(18, user);
    expect(choose(request(whole, 2_000)).mode).toBe("whole");
    expect(choose(request(whole, 2_000, { marginTokens: 300 })).mode).toBe("tight");
  });

  test("uses a root that ends where the finer items begin", () => {
    const leaves = Array.from({ length: 20 }, (_, n) => summary(n * 10 + 1, n * 10 + 10, { tokens: 1_000 }));
    const items = [...leaves, ...messages(10, user, 201)];
    const choice = choose(request(items, 10_000, { reserve: [reserve(1, 150)] }));
    expect(describeChoice(choice).slice(0, 2)).toEqual(["summary sum_r_1_150", "summary sum_151_160_0"]);
    expect(choice.items.some(({ kind }) => kind === "range")).toBe(false);
    expect(choice.messages).toBe(210);
  });

  test.each<[string, ReserveSummary]>([
    ["does not begin and end at item edges", reserve(1, 155)],
    ["was made after the anchor", reserve(1, 150, { madeAtSeq: 10_000 })],
  ])("does not use a reserve summary that %s", (_, summaryOf) => {
    const leaves = Array.from({ length: 20 }, (__, n) => summary(n * 10 + 1, n * 10 + 10, { tokens: 1_000 }));
    const items = [...leaves, ...messages(10, user, 201)];
    const choice = choose(request(items, 10_000, { reserve: [summaryOf] }));
    expect(choice.items.some(({ summaryId }) => summaryId === summaryOf.summaryId)).toBe(false);
    expect(choice.items[0]?.kind).toBe("range");
    expect(choice.messages).toBe(210);
  });

  test.each<[string, Partial<ReserveSummary>, number, RegExp]>([
    ["lacks rows that came late", { messages: 148, isStale: true }, 2, /without 2 that came later/],
    ["tells something old", { isStale: true }, 0, /made before something below/],
    [
      "tells of messages that are hidden now",
      { messages: 153, isStale: true },
      -3,
      /made before something below/,
    ],
  ])("uses a stand-in that %s where nothing better fits, and says so", (_, more, lacks, reason) => {
    const leaves = Array.from({ length: 20 }, (__, n) => summary(n * 10 + 1, n * 10 + 10, { tokens: 1_000 }));
    const items = [...leaves, ...messages(10, user, 201)];
    const choice = choose(request(items, 10_000, { reserve: [reserve(1, 150, more)] }));
    expect(choice.items[0]).toMatchObject({ summaryId: "sum_r_1_150", messages: 150, lacks });
    expect(choice.items[0]?.reason).toMatch(reason);
    expect(choice.items.some(({ kind }) => kind === "range")).toBe(false);
    const whole = reserve(1, 140, { tokens: 900 });
    const better = choose(request(items, 10_000, { reserve: [reserve(1, 150, more), whole] }));
    expect(better.items[0]).toMatchObject({ summaryId: "sum_r_1_140", messages: 140 });
    expect(better.items[0]?.lacks).toBeUndefined();
  });

  test("opens what it shows, newest first, where room is left; what was opened in part stands for the rest", () => {
    const leaves = [summary(1, 40, { tokens: 300 }), summary(41, 80, { tokens: 300 })];
    const items = [...leaves, ...messages(2, { ...user, tokens: 3_200 }, 81)];
    const sources = new Map([
      ["sum_1_40_0", messages(40)],
      ["sum_41_80_0", messages(40, {}, 41)],
    ]);
    const choice = choose(request(items, 6_000, { sources, tail: { freshTailCount: 2 } }));
    expect(choice.mode).toBe("tight");
    expect(choice.messages).toBe(82);
    const opened = choice.items.filter(({ reason }) => reason.startsWith("opened"));
    expect(opened.map(({ ids: [id] }) => id)).toEqual(
      Array.from({ length: opened.length }, (_, n) => `msg_${80 - opened.length + 1 + n}`),
    );
    expect(opened.length).toBeGreaterThan(5);
    const part = choice.items.find(({ summaryId }) => summaryId === "sum_41_80_0");
    expect(part).toMatchObject({ messages: 40 - opened.length });
    expect(part?.reason).toContain(`of which ${opened.length} follow`);
    expect(choose(request(items, 6_000, { tail: { freshTailCount: 2 } })).wanted).toEqual([
      "sum_41_80_0",
      "sum_1_40_0",
    ]);
  });

  test("shows the last source of a summary with stubs, because the summary would repeat all the others", () => {
    const bulky = [
      message(60, { calls: ["a"], tokens: 40 }),
      message(61, { role: "tool", results: ["a"], tokens: 9_000 }),
    ];
    const short = { tokens: 20 };
    const items = [
      summary(1, 40, { tokens: 4_000 }),
      summary(41, 80, { tokens: 900 }),
      ...messages(2, { ...user, tokens: 300 }, 81),
    ];
    const choice = choose(
      request(items, 5_000, {
        reserve: [reserve(1, 40, { tokens: 300 })],
        sources: new Map([
          ["sum_41_80_0", [...messages(19, short, 41), ...bulky, ...messages(19, short, 62)]],
        ]),
        tail: { freshTailCount: 2 },
      }),
    );
    expect(choice.mode).toBe("tight");
    expect(choice.messages).toBe(82);
    const shown = describeChoice(choice);
    expect(shown.filter((item) => item.startsWith("summary"))).toEqual(["summary sum_r_1_40"]);
    expect(shown.slice(19, 23)).toEqual([
      "message msg_59",
      "message msg_60",
      "stub msg_61",
      "message msg_62",
    ]);
  });

  test("does not open a stand-in that lacks rows: what it was made from lacks them too", () => {
    const leaves = Array.from({ length: 20 }, (_, n) => summary(n * 10 + 1, n * 10 + 10, { tokens: 1_000 }));
    const items = [...leaves, ...messages(10, user, 201)];
    const made = { messages: 74, tokens: 200 };
    const sources = new Map([["sum_r_1_150", [summary(1, 75, made), summary(76, 150, made)]]]);
    const stale = reserve(1, 150, { messages: 148, isStale: true });
    const choice = choose(request(items, 10_000, { reserve: [stale], sources }));
    expect(choice.items[0]).toMatchObject({ summaryId: "sum_r_1_150", messages: 150, lacks: 2 });
    expect(choice.wanted).not.toContain("sum_r_1_150");
    expect(choice.messages).toBe(210);
  });

  test("counts nothing of a summary in the range line that is shown by what it was made from", () => {
    const items = [
      summary(1, 40, { depth: 1, tokens: 300 }),
      message(41, { tokens: 5_000 }),
      message(42, user),
    ];
    const sources = new Map([
      ["sum_1_40_1", [summary(1, 20, { tokens: 400 }), summary(21, 40, { tokens: 400 })]],
    ]);
    const choice = choose(request(items, 2_000, { sources, tail: { freshTailCount: 1 } }));
    expect(describeChoice(choice)).toEqual([
      "summary sum_1_20_0",
      "summary sum_21_40_0",
      "range 1",
      "message msg_42",
    ]);
    const [startPosition, endPosition] = [41 * POSITION_STEP, 41 * POSITION_STEP];
    expect(choice.items[2]).toMatchObject({ startPosition, endPosition });
  });

  test("shows a root before the tail has its share where not both fit", () => {
    const leaves = Array.from({ length: 20 }, (_, n) => summary(n * 10 + 1, n * 10 + 10, { tokens: 1_000 }));
    const items = [...leaves, message(201, { ...user, tokens: 700 }), ...messages(30, {}, 202)];
    const root = reserve(1, 200, { tokens: 700, held: 200 });
    const choice = choose(request(items, 2_000, { reserve: [root] }));
    expect(choice.items[0]?.summaryId).toBe(root.summaryId);
    expect(choice.items.some(({ ids }) => ids[0] === "msg_201")).toBe(true);
    expect(choice.tokens).toBeLessThanOrEqual(2_000);
    expect(choice.messages).toBe(231);
  });

  test("uses a root that fits only because it makes a line for the rest unnecessary", () => {
    const items = [
      summary(1, 40, { tokens: 3_000 }),
      message(41, user),
      message(42, { calls: ["a"], tokens: 300 }),
      message(43, { role: "tool", results: ["a"], tokens: 300 }),
    ];
    const root = reserve(1, 40, { tokens: 990 });
    const choice = choose(request(items, 2_000, { reserve: [root] }));
    expect(describeChoice(choice)).toEqual([
      "summary sum_r_1_40",
      "message msg_41",
      "message msg_42",
      "message msg_43",
    ]);
  });

  test("keeps the condensed summary that the cover begins with before newer ones, where nothing else stands for the beginning", () => {
    const beginning = summary(1, 200, { depth: 1, tokens: 900 });
    const newer = summary(202, 230, { tokens: 700 });
    const items = [
      beginning,
      message(201, { ...user, tokens: 60 }),
      newer,
      message(231, { ...user, tokens: 300 }),
      ...messages(12, { tokens: 100 }, 232),
    ];
    const choice = choose(request(items, 2_000));
    expect(choice.items[0]?.summaryId).toBe(beginning.summaryId);
    expect(choice.tokens).toBeLessThanOrEqual(2_000);
    expect(choice.messages).toBe(243);
  });

  test("prefers the newest stand-ins fine and the older coarse", () => {
    const leaves = Array.from({ length: 20 }, (_, n) => summary(n * 10 + 1, n * 10 + 10, { tokens: 1_000 }));
    const items = [...leaves, ...messages(4, user, 201)];
    const stored = [reserve(1, 100), reserve(101, 150, { isRoot: false }), reserve(1, 150), reserve(1, 200)];
    const choice = choose(request(items, 9_000, { reserve: stored }));
    expect(describeChoice(choice).slice(0, 3)).toEqual([
      "summary sum_r_1_100",
      "summary sum_r_101_150",
      "summary sum_151_160_0",
    ]);
  });

  test("shows summaries that lie behind messages too many to read", () => {
    const folded = [summary(1, 50, { depth: 1, tokens: 800 }), summary(51, 60, { tokens: 800 })];
    const items = [...folded, ...messages(5_000, user, 61)];
    let read = 0;
    function* counting() {
      for (const item of items.toReversed()) {
        read++;
        yield item;
      }
    }
    const choice = choose(
      request(items, 10_000, { items: counting(), summariesBefore: () => folded.toReversed() }),
    );
    expect(describeChoice(choice).slice(0, 3).join()).toMatch(
      /^summary sum_1_50_1,summary sum_51_60_0,range 49\d\d$/,
    );
    expect(choice.messages).toBe(5_060);
    expect(read).toBeLessThan(400);
  });

  test("uses a root the store vouches for without reading what lies under it", () => {
    const items = [
      ...Array.from({ length: 400 }, (_, n) => summary(n * 10 + 1, n * 10 + 10)),
      ...messages(300, user, 4_001),
    ];
    const root = reserve(1, 3_990, { held: 3_990 });
    const choice = choose(request(items, 10_000, { reserve: [root] }));
    expect(describeChoice(choice)[0]).toBe(`summary ${root.summaryId}`);
    expect(choice.messages).toBe(4_300);
  });

  test("turns bulky tool results into stubs before it leaves messages out, the oldest first", () => {
    const items = [...messages(300, user)];
    for (let n = 0; n < 6; n++)
      items.push(
        message(301 + 2 * n, { calls: ["a"], tokens: 50 }),
        message(302 + 2 * n, { role: "tool", results: ["a"], tokens: 3_000 }),
      );
    items.push(message(400, user));
    const choice = choose(request(items, 20_000, { tail: { freshTailCount: 20 } }));
    const results = choice.items.filter(({ seq }) => seq !== null && seq > 301 && seq < 314 && seq % 2 === 0);
    expect(results.map(({ kind }) => kind)).toEqual([
      "stub",
      "stub",
      "stub",
      "message",
      "message",
      "message",
    ]);
    expect(choice.messages).toBe(313);
  });

  test("takes a stand-in for a run after the root whose own summary does not fit, before a line for all of it", () => {
    const items = [
      summary(1, 40, { tokens: 3_000 }),
      message(41, user),
      summary(42, 80, { tokens: 3_000 }),
      // Not folded yet, and too much to show whole: no way without a gap.
      ...messages(10, { tokens: 600 }, 81),
      message(91, { calls: ["a"], tokens: 400 }),
      message(92, { role: "tool", results: ["a"], tokens: 300 }),
    ];
    const stand = [reserve(1, 40), reserve(42, 80)];
    const tail = { freshTailCount: 2 };
    const choice = choose(request(items, 6_000, { reserve: stand, tail }));
    expect(describeChoice(choice)).toEqual(
      expect.arrayContaining(["summary sum_r_1_40", "summary sum_r_42_80"]),
    );
    expect(choice.messages).toBe(92);
  });

  test("shortens the stubs of many calls at once where they would leave no room for what is older", () => {
    const calls = ["a", "b", "c", "d", "e", "f", "g", "h"];
    const items = [
      summary(1, 40, { tokens: 900 }),
      message(41, { role: "user", tokens: 20 }),
      message(42, { calls, tokens: 380 }),
      ...calls.map((id, at) => message(43 + at, { role: "tool", results: [id], tokens: 2_000 })),
    ];
    const root = reserve(1, 40, { tokens: 400 });
    const choice = choose(request(items, 1_500, { reserve: [root] }));
    expect(describeChoice(choice)).toEqual([
      "summary sum_r_1_40",
      "message msg_41",
      "message msg_42",
      ...calls.map((_, at) => `stub msg_${43 + at}`),
    ]);
    expect(choice.tokens).toBeLessThanOrEqual(1_500);
    // With room for both, the stubs keep the names they list.
    const roomy = choose(request(items, 2_500, { reserve: [root] }));
    const stubs = roomy.items.filter(({ kind }) => kind === "stub");
    expect(Math.min(...stubs.map(({ tokens }) => tokens))).toBeGreaterThanOrEqual(STUB_TOKENS);
  });

  test("gives up the anchor where a long message would leave the front no room for a root", () => {
    const items = [
      summary(1, 40, { tokens: 2_500 }),
      message(41, { role: "user", tokens: 1_900 }),
      ...messages(3, { tokens: 150 }, 42),
    ];
    const shown = items.reduce((sum, { tokens }) => sum + tokens, 0);
    const root = reserve(1, 40, { tokens: 500 });
    const ask = (reserves: readonly ReserveSummary[]): Choice =>
      choose(request(items, 3_000, { reserve: reserves }));
    expect(shown).toBeGreaterThan(3_000);
    expect(describeChoice(ask([root]))).toEqual([
      "summary sum_r_1_40",
      "message msg_41",
      "message msg_42",
      "message msg_43",
      "message msg_44",
    ]);
    // Without one there is nothing to gain, nor from one that was made after the anchor.
    const anchored = ask([]);
    expect(anchored.anchorTokens).not.toBeNull();
    expect(describeChoice(anchored)).toEqual([
      "range 41",
      "message msg_41",
      "message msg_43",
      "message msg_44",
    ]);
    expect(ask([{ ...root, madeAtSeq: 10_000 }])).toEqual(anchored);
  });

  test("shows a tool group that was left out with stubs, where it does not fit whole", () => {
    const items = [
      ...messages(60, user),
      message(61, { calls: ["a"], tokens: 50 }),
      message(62, { role: "tool", results: ["a"], tokens: 9_000 }),
      message(63, { ...user, tokens: 4_000 }),
    ];
    const choice = choose(request(items, 8_000, { tail: { freshTailCount: 1 } }));
    expect(choice.items.find(({ seq }) => seq === 62)?.kind).toBe("stub");
  });

  test("keeps the newest user message of a turn that does not fit", () => {
    const items = [...messages(50, user), message(51, user), ...messages(400, {}, 52)];
    const choice = choose(request(items, 4_000));
    const kinds = choice.items.slice(0, 3).map(({ kind, ids }) => `${kind} ${ids[0]}`);
    expect(kinds[1]).toBe("message msg_51");
    expect(choice.items[1]?.reason).toBe("newest user message");
    expect(choice.messages).toBe(451);
  });

  test("does not let a stand-in hide that message", () => {
    const items = [...messages(50, user), message(51, user), ...messages(60, {}, 52)];
    const choice = choose(
      request(items, 4_000, {
        reserve: [reserve(1, 90)],
        tail: { freshTailCount: 10, turnMaxTokens: 1_000 },
      }),
    );
    expect(choice.items.some(({ summaryId }) => summaryId !== null)).toBe(false);
    expect(choice.items.some(({ ids }) => ids[0] === "msg_51")).toBe(true);
    expect(choice.messages).toBe(111);
  });

  test("shows a root beside a message that leaves little room, where one fits", () => {
    const open = [
      message(92, { calls: ["a"], tokens: 530 }),
      message(93, { role: "tool", results: ["a"], tokens: 390 }),
    ];
    const items = [...messages(90, user), message(91, { ...user, tokens: 3_000 }), ...open];
    const ask = (tokens: number) =>
      choose(request(items, 4_000, { reserve: [{ ...reserve(1, 90), tokens }] }));
    const choice = ask(700);
    expect(choice.mode).toBe("least");
    expect(choice.items.map(({ kind }) => kind)).toEqual(["summary", "message", "stub", "stub"]);
    expect(choice.tokens).toBeLessThanOrEqual(4_000);
    expect(choice.messages).toBe(93);
    expect(ask(800).items.map(({ kind }) => kind)).toEqual(["range", "message", "stub", "stub"]);
  });

  test("asks for that message where it lies further back than was read", () => {
    const items = [...messages(50, user), ...messages(4_000, {}, 51)];
    const newestUserBefore = () => items[49] as CoverItem;
    const choice = choose(request(items, 4_000, { newestUserBefore }));
    expect(choice.items.slice(0, 2).map(({ kind }) => kind)).toEqual(["range", "message"]);
    expect(choice.items[1]?.ids).toEqual(["msg_50"]);
    expect(choice.messages).toBe(4_050);
  });

  test("sends at least the newest user message and the open tool group, stubbed", () => {
    const items = [
      ...messages(20, user),
      message(21, { ...user, tokens: 5_000 }),
      message(22, { calls: ["a"], tokens: 50 }),
      message(23, { role: "tool", results: ["a"], tokens: 90_000 }),
    ];
    const choice = choose(request(items, 2_000));
    expect(choice.mode).toBe("least");
    expect(choice.items.map(({ kind }) => kind)).toEqual(["range", "message", "message", "stub"]);
    expect(choice.messages).toBe(23);
  });

  test("counts a range that stands in the cover in its own range line", () => {
    const range: CoverItem = { ...summary(1, 500), summaryId: null, tokens: 60, role: null };
    const items = [range, ...messages(200, user, 501)];
    expect(choose(request(items, 50_000)).items[0]).toMatchObject({
      kind: "range",
      messages: 500,
      tokens: 60,
    });
    const tight = choose(request(items, 5_000));
    expect(tight.items.filter(({ kind }) => kind === "range")).toHaveLength(1);
    expect(tight.messages).toBe(700);
  });
});

describe("the front of a tight context", () => {
  test("stays the same until the conversation has grown by a fifth of the budget", () => {
    const items = messages(100, user);
    let front: string[] = [];
    let changes = 0;
    for (let n = 101; n <= 300; n++) {
      items.push(message(n, n % 7 ? {} : user));
      const choice = choose(request(items, 10_000));
      const now = describeChoice(choice).slice(0, choice.stableItems);
      if (now.join() !== front.join()) changes++;
      front = now;
      expect(choice.mode).toBe("tight");
    }
    expect(changes).toBe(11);
  });

  test("is not replaced by one with other stubs while the anchor stays", () => {
    const group = (from: number, ids: readonly string[], tokens: number, answered = ids): CoverItem[] => [
      message(from, { calls: ids }),
      ...answered.map((id, n) => message(from + 1 + n, { role: "tool", results: [id], tokens })),
    ];
    const items = [
      ...group(1, ["a", "b"], 100),
      message(4, { tokens: 78 }),
      ...group(5, ["c", "d", "e", "f", "g"], 1_500, ["d", "e", "f", "g"]),
      ...[69, 31].map((tokens, n) => message(10 + n, { tokens })),
      message(12, { ...user, tokens: 103 }),
    ];
    const before = choose(request(items, 1_000));
    expect(before.anchorTokens).toBe(6_600);
    expect(before.items.filter(({ kind }) => kind === "stub")).toHaveLength(4);
    // The front and what explains the missing results are too much together: nothing is promised for a choice without an anchor.
    const unanswered = message(13, { calls: ["h", "i"], tokens: 90 });
    expect(choose(request([...items, unanswered], 1_000)).anchorTokens).toBeNull();
  });

  test("stays the same while a tool group at the anchor grows", () => {
    const items = [...messages(100, user)];
    const seen = new Set<string>();
    items.push(message(101, { calls: ["a", "b", "c"], tokens: 2_050 }));
    for (const [index, id] of ["a", "b", "c"].entries()) {
      const choice = choose(request(items, 10_000));
      seen.add(describeChoice(choice).slice(0, choice.stableItems).join());
      items.push(message(102 + index, { role: "tool", results: [id], tokens: 400 }));
    }
    expect(seen.size).toBe(1);
  });
});

describe("whatever the conversation, the folds and the budget", () => {
  type Act =
    | { kind: "turn"; turn: Turn }
    | { kind: "boundary"; retainDepth: number }
    | { kind: "fold" | "prepare" | "reserve" };

  const act: fc.Arbitrary<Act> = fc.oneof(
    { weight: 10, arbitrary: turn.map((t): Act => ({ kind: "turn", turn: t })) },
    {
      weight: 1,
      arbitrary: fc.constantFrom(-1, 2).map((retainDepth): Act => ({ kind: "boundary", retainDepth })),
    },
    {
      weight: 4,
      arbitrary: fc.constantFrom("fold", "prepare", "reserve").map((kind): Act => ({ kind }) as Act),
    },
  );

  const policy = { ...POLICY, freshTailCount: 12, leafMinFanout: 4, summaryPrefixTargetTokens: 4_000 };

  function play(acts: readonly Act[]): FakeConversation {
    const conversation = new FakeConversation();
    for (const step of acts) {
      const scope = { boundaries: conversation.boundaries, reserve: conversation.reserve };
      if (step.kind === "turn") for (const spec of step.turn) conversation.append(spec);
      else if (step.kind === "boundary") conversation.addBoundary(step.retainDepth);
      else if (step.kind === "fold") foldAll(conversation);
      else if (step.kind === "prepare") {
        const prepared = planPrepared(conversation.items, policy, scope);
        if (prepared) conversation.prepare(prepared);
      } else {
        const planned = planReserve(conversation.items, policy, 20_000, scope);
        if (planned) conversation.addReserve(planned);
      }
    }
    return conversation;
  }

  function foldAll(conversation: FakeConversation): void {
    let state = startSweep({ budgetTokens: 20_000, isForced: true });
    for (;;) {
      const scope = { boundaries: conversation.boundaries, reserve: conversation.reserve };
      const step = planSweep(conversation.items, policy, state, scope);
      if (step === null) return;
      const before = countShownTokens(conversation.items, conversation.boundaries);
      conversation.fold(step);
      state = recordPass(state, step, {
        before,
        after: countShownTokens(conversation.items, conversation.boundaries),
      });
    }
  }

  const budget = fc.oneof(fc.integer({ min: 2_000, max: 20_000 }), fc.integer({ min: 2_000, max: 200_000 }));

  function ask(conversation: FakeConversation, budgetTokens: number): { choice: Choice; shown: CoverItem[] } {
    const shown = conversation.items.filter(
      (item) => item.hidden === 0 && !isHiddenByBoundary(item, conversation.boundaries),
    );
    const choice = choose(
      request(shown, budgetTokens, {
        tail: policy,
        reserve: conversation.reserve,
        sources: new Map([...conversation.sources.keys()].map((id) => [id, conversation.openable(id)])),
        summariesBefore: (position) =>
          shown.filter((item) => isSummaryItem(item) && item.endPosition < position).reverse(),
        newestUserBefore: (position) =>
          shown.findLast((item) => isUserMessage(item) && item.endPosition < position) ?? null,
      }),
    );
    return { choice, shown };
  }

  test("the context fits, stands for every message once, in order, and is the same for the same input", () => {
    fc.assert(
      fc.property(fc.array(act, { minLength: 1, maxLength: 40 }), budget, (acts, budgetTokens) => {
        const conversation = play(acts);
        const { choice, shown } = ask(conversation, budgetTokens);
        checkFits(choice, shown, budgetTokens);
        checkRepresents(choice, shown, conversation);
        expect(ask(conversation, budgetTokens).choice).toEqual(choice);
      }),
      { numRuns: 300 },
    );
  });

  test("a tight context has 85 % of its share and of what arrived since, unless nothing more fits", () => {
    let tight = 0;
    fc.assert(
      fc.property(fc.array(act, { minLength: 10, maxLength: 60 }), budget, (acts, budgetTokens) => {
        const conversation = play(acts);
        const { choice, shown } = ask(conversation, budgetTokens);
        if (choice.mode !== "tight") return;
        tight++;
        const shownTokens = shown.reduce((sum, item) => sum + item.tokens, 0);
        const after = choice.anchorTokens === null ? 0 : shownTokens - choice.anchorTokens;
        const share = 0.8 * budgetTokens + after;
        if (choice.tokens >= 0.85 * share) return;
        const rest = share - choice.tokens;
        for (const piece of listUnshown(choice, shown, conversation)) expect(piece).toBeGreaterThan(rest);
      }),
      { numRuns: 400 },
    );
    expect(tight).toBeGreaterThan(25);
  });

  /** Tokens of what is neither shown nor stood for, and of the sources of what is shown. */
  function listUnshown(
    choice: Choice,
    shown: readonly CoverItem[],
    conversation: FakeConversation,
  ): number[] {
    const expand = (items: readonly Choice["items"][number][]) =>
      new Set(items.flatMap((item) => item.messageId ?? conversation.under.get(item.summaryId ?? "") ?? []));
    const isIn = (known: ReadonlySet<number>, items: readonly CoverItem[]) =>
      items
        .flatMap((item) => conversation.idsUnder(item))
        .every((id) => known.has(id) || conversation.hidden.has(id));
    const all = expand(choice.items);
    const leftOut = groupItems(shown).filter(({ items }) => !isIn(all, items));
    const closed = choice.items.flatMap(({ summaryId }) => {
      if (summaryId === null) return [];
      const finer = expand(choice.items.filter((item) => item.summaryId !== summaryId));
      return groupItems(conversation.openable(summaryId)).filter(({ items }) => !isIn(finer, items));
    });
    return [...leftOut, ...closed].map(({ tokens, unpaired }) => tokens + unpaired * MISSING_HALF_TOKENS);
  }

  test("every provider accepts it after repair, and repairing again changes nothing", () => {
    fc.assert(
      fc.property(fc.array(act, { minLength: 1, maxLength: 30 }), budget, (acts, budgetTokens) => {
        const conversation = play(acts);
        const { choice } = ask(conversation, budgetTokens);
        const rendered = choice.items.map((item) => toModelMessage(item, conversation));
        if (rendered.length === 0) return;
        const common = repairMessages(rendered);
        expect(repairMessages(common)).toEqual(common);
        for (const provider of PROVIDERS) {
          expect(checkGrammar(provider, common)).toEqual([]);
          expect(checkGrammar(provider, repairMessages(rendered, { provider }))).toEqual([]);
        }
      }),
      { numRuns: 200 },
    );
  });

  test("between anchors only the end grows", () => {
    fc.assert(
      fc.property(
        fc.array(turn, { minLength: 8, maxLength: 40 }),
        fc.integer({ min: 4_000, max: 60_000 }),
        (turns, b) => {
          const conversation = new FakeConversation();
          let before: Choice | null = null;
          for (const spec of turns.flat()) {
            conversation.append(spec);
            const { choice } = ask(conversation, b);
            const isSame = before?.anchorTokens != null && before.anchorTokens === choice.anchorTokens;
            // A result that joins an older call can move the cut; everything else may not.
            if (isSame && before && !spec.results) {
              const stable = (c: Choice) => JSON.stringify(c.items.slice(0, c.stableItems));
              expect(stable(choice)).toBe(stable(before));
            }
            before = choice;
          }
        },
      ),
      { numRuns: 60, endOnFailure: true },
    );
  });

  function checkFits(choice: Choice, shown: readonly CoverItem[], budgetTokens: number): void {
    expect(choice.tokens).toBe(choice.items.reduce((sum, item) => sum + item.tokens, 0));
    if (choice.tokens <= budgetTokens) return;
    expect(choice.mode).toBe("least");
    const newestUser = shown.findLast(isUserMessage);
    const verbatim = choice.items.filter(
      ({ kind, messageId }) => kind === "message" && messageId !== newestUser?.messageId,
    );
    const open = shown.slice(shown.findIndex((item) => item.messageId === verbatim[0]?.messageId));
    if (verbatim.length > 0) expect(verbatim.length).toBeLessThanOrEqual(open.length);
    expect(choice.items.some(({ kind }) => kind === "summary")).toBe(false);
  }

  function checkRepresents(
    choice: Choice,
    shown: readonly CoverItem[],
    conversation: FakeConversation,
  ): void {
    const total = shown.reduce((sum, item) => sum + item.messages, 0);
    expect(choice.messages).toBe(total);
    expect(choice.items.filter(({ kind }) => kind === "range").length).toBeLessThanOrEqual(1);
    const placed = choice.items.filter(({ kind }) => kind !== "range");
    for (const [index, item] of placed.entries())
      expect(item.startPosition).toBeGreaterThanOrEqual(placed[index - 1]?.startPosition ?? 0);
    // Each message counts where it is shown finest: the later item of two that hold it.
    const seen = new Set<number>();
    const wanted = new Set(shown.flatMap((item) => conversation.idsUnder(item)));
    for (const item of placed.toReversed()) {
      const ids =
        item.messageId === null ? (conversation.under.get(item.summaryId ?? "") ?? []) : [item.messageId];
      const own = ids.filter((id) => !seen.has(id) && !conversation.hidden.has(id));
      expect(item.messages, item.ids.join()).toBe(own.length);
      for (const id of own) {
        expect(wanted.has(id)).toBe(true);
        seen.add(id);
      }
    }
  }

  function toModelMessage(item: Choice["items"][number], conversation: FakeConversation): ModelMessage {
    const stored = conversation.items.find(
      ({ messageId }) => messageId !== null && messageId === item.messageId,
    );
    const seq = item.seq ?? undefined;
    if (stored === undefined)
      return { role: "user", parts: [{ type: "text", text: item.ids.join() || "range" }], seq };
    const text = stored.seq % 11 === 0 ? " " : `text ${stored.seq}`;
    const parts: ModelPart[] = [
      ...(stored.role === "assistant" && stored.seq % 3 === 0
        ? [{ type: "reasoning" as const, text: "hm" }]
        : []),
      ...stored.toolResults.map((toolCallId): ModelPart => ({
        type: "tool_result",
        toolCallId,
        text: "out",
        toolName: "sh",
      })),
      ...(stored.role === "tool" ? [] : [{ type: "text" as const, text }]),
      ...stored.toolCalls.map((toolCallId): ModelPart => ({
        type: "tool_call",
        toolCallId,
        text: "{}",
        toolName: "sh",
      })),
    ];
    return { role: stored.role as ModelMessage["role"], parts, seq };
  }
});

import { fc } from "@lossless/testkit/properties.ts";
import { describe, expect, test } from "vitest";

import type { CoverItem } from "../../src/model/cover.ts";
import { HIDDEN, POSITION_STEP } from "../../src/model/message.ts";
import type { ReserveSummary } from "../../src/model/reserve.ts";
import { findFreshTail } from "../../src/model/tail.ts";
import { groupItems } from "../../src/model/tool-groups.ts";
import {
  explainStop,
  planPrepared,
  planRound,
  planStoredLeaves,
  planSweep,
  recordPass,
  recordSweep,
  startSweep,
  type RoundsState,
  type StopReason,
  type SweepState,
} from "../../src/compact/plan.ts";
import { planReserve } from "../../src/compact/plan-reserve.ts";
import {
  prefixLimitTokens,
  prefixTargetTokens,
  shouldCompact,
  type CompactionPolicy,
} from "../../src/compact/policy.ts";
import { countShownTokens, type PlanFacts } from "../../src/compact/runs.ts";
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
const BUDGET = 200_000;
const sweep = (overrides: Partial<SweepState> = {}): SweepState => ({
  ...startSweep({ budgetTokens: BUDGET }),
  ...overrides,
});
const policy = (overrides: Partial<CompactionPolicy> = {}): CompactionPolicy => ({ ...POLICY, ...overrides });

/** A tail of one user message behind the given items. */
const withTail = (items: readonly CoverItem[]): CoverItem[] => [...items, message(10_000, user)];
const TAIL_OF_ONE = policy({ freshTailCount: 1 });

const planOver = (items: readonly CoverItem[], p = TAIL_OF_ONE, state = sweep(), facts: PlanFacts = {}) =>
  planSweep(withTail(items), p, state, facts);

describe("the threshold", () => {
  test.each([
    [{ tokens: 150_000, base: 200_000, threshold: 0.75 }, true],
    [{ tokens: 149_999, base: 200_000, threshold: 0.75 }, false],
    [{ tokens: 150_001, base: 200_000, threshold: 0.75 }, true],
    [{ tokens: 55, base: 100, threshold: 0.55 }, true],
    [{ tokens: 29, base: 100, threshold: 0.29 }, true],
    [{ tokens: 75, base: 101, threshold: 0.75 }, false],
    [{ tokens: 200_000, base: 200_000, threshold: 1 }, true],
  ])("is crossed at or above it: %o", (input, expected) => {
    expect(shouldCompact(input)).toBe(expected);
  });

  test.each([
    ["the set value where one is set", { summaryPrefixTargetTokens: 7 }, 200_000, 7],
    ["a chunk in a large window", {}, 200_000, 20_000],
    ["half the threshold in a small one", {}, 32_000, 12_000],
    ["at least one condensed summary", {}, 2_000, 2_000],
  ])("the prefix target is %s", (_, overrides, budget, expected) => {
    expect(prefixTargetTokens(policy(overrides), budget)).toBe(expected);
  });
});

describe("a leaf pass", () => {
  test.each<[string, CoverItem[], Partial<CompactionPolicy>, Partial<SweepState>, [number, number] | null]>([
    ["takes the oldest messages before the tail", messages(8), {}, {}, [0, 8]],
    ["needs leafMinFanout messages", messages(7), {}, {}, null],
    ["needs fewer when forced", messages(7), {}, { isForced: true }, [0, 7]],
    ["or a full chunk", messages(3, { tokens: 9_000 }), {}, {}, [0, 2]],
    ["holds at most leafChunkTokens", messages(300), {}, {}, [0, 200]],
    ["takes a message larger than a chunk alone", messages(2, { tokens: 30_000 }), {}, {}, [0, 1]],
    ["does not begin where nothing can be saved", messages(2, { tokens: 40 }), {}, { isForced: true }, null],
    [
      "skips a run that is too short",
      [...messages(3), summary(4, 9), ...messages(9, {}, 10)],
      {},
      {},
      [4, 13],
    ],
    ["ends at a summary", [...messages(9), summary(10, 12), ...messages(9, {}, 13)], {}, {}, [0, 9]],
    ["does not run in a later phase", messages(9), {}, { phase: "routine" }, null],
  ])("%s", (_, items, overrides, state, expected) => {
    const step = planOver(items, policy({ freshTailCount: 1, ...overrides }), sweep(state));
    expect(step && [step.startIndex, step.endIndex]).toEqual(expected);
    if (step) expect(step).toMatchObject({ kind: "leaf", phase: "leaf", depth: 0, publishId: null });
  });

  test("never touches the tail", () => {
    const items = messages(30, user);
    expect(planSweep(items, policy({ freshTailCount: 22 }), sweep())).toMatchObject({
      startIndex: 0,
      endIndex: 8,
    });
    expect(planSweep(items, policy({ freshTailCount: 23 }), sweep())).toBeNull();
  });

  test("never touches a turn that is still running", () => {
    const items = [message(1, user), ...messages(50, {}, 2)];
    expect(planSweep(items, TAIL_OF_ONE, sweep({ isForced: true }))).toBeNull();
  });

  test("folds within a turn that is longer than allowed, around its user message", () => {
    const items = [...messages(9, user), ...messages(50, {}, 10)];
    const long = policy({ freshTailCount: 4, turnMaxTokens: 1_000 });
    expect(planSweep(items, long, sweep())).toMatchObject({ startIndex: 0, endIndex: 8 });
    const [first, ...rest] = [summary(1, 8), ...items.slice(8)];
    expect(planSweep([first!, ...rest], long, sweep())).toMatchObject({ startIndex: 2, endIndex: 48 });
  });

  test("cuts only between tool groups", () => {
    const items = [
      ...messages(7, { tokens: 2_500 }),
      message(8, { calls: ["a"], tokens: 2_000 }),
      message(9, { role: "tool", results: ["a"], tokens: 2_000 }),
      ...messages(3, {}, 10),
    ];
    expect(planOver(items)).toMatchObject({ startIndex: 0, endIndex: 7 });
  });

  test("never spans a boundary", () => {
    const boundaries = [{ position: 6 * POSITION_STEP, retainDepth: -1 }];
    expect(planOver(messages(20), TAIL_OF_ONE, sweep(), { boundaries })).toMatchObject({
      startIndex: 5,
      endIndex: 20,
    });
    expect(planOver(messages(20), TAIL_OF_ONE, sweep({ isForced: true }), { boundaries })).toMatchObject({
      startIndex: 0,
      endIndex: 5,
    });
  });

  test("leaves alone what a boundary hides", () => {
    const boundaries = [{ position: 12 * POSITION_STEP, retainDepth: 2 }];
    expect(planOver(messages(20), TAIL_OF_ONE, sweep(), { boundaries })).toMatchObject({
      startIndex: 11,
      endIndex: 20,
    });
    expect(countShownTokens(messages(20), boundaries)).toBe(900);
  });

  test("takes hidden rows along, unread, and does not count them", () => {
    const hidden = (n: number) => message(n, { hidden: HIDDEN.heartbeat });
    const items = [
      hidden(1),
      ...messages(4, {}, 2),
      hidden(6),
      ...messages(4, {}, 7),
      hidden(11),
      summary(12, 20),
    ];
    expect(planOver(items)).toMatchObject({ startIndex: 0, endIndex: 11, messages: 8, inputTokens: 800 });
    expect(planOver(items.slice(0, 8))).toBeNull();
  });

  test("aims at a third of its sources, up to the target", () => {
    expect(planOver(messages(10))).toMatchObject({ targetTokens: 350 });
    expect(planOver(messages(150))).toMatchObject({ targetTokens: 2_400 });
    expect(planOver(messages(8, { tokens: 40 }))).toMatchObject({ targetTokens: 192 });
    expect(planOver(messages(8, { tokens: 20 }))).toBeNull();
  });
});

describe("condensing", () => {
  const leaves = (count: number, tokens = 2_400, depth = 0, from = 0) =>
    Array.from({ length: count }, (_, n) =>
      summary((from + n) * 10 + 1, (from + n) * 10 + 10, { tokens, depth }),
    );

  test.each<[string, CoverItem[], Partial<CompactionPolicy>, unknown]>([
    ["waits until the prefix is above its target", leaves(8), {}, null],
    ["needs leafMinFanout leaves", leaves(9), {}, { startIndex: 0, endIndex: 8, depth: 1, phase: "routine" }],
    [
      "holds at most leafChunkTokens",
      leaves(30, 1_000),
      {},
      { startIndex: 0, endIndex: 20, phase: "routine" },
    ],
    ["stays below sweepMaxDepth in routine", leaves(12, 2_000, 1), {}, { depth: 2, phase: "pressure" }],
    [
      "goes deeper in routine where sweepMaxDepth allows",
      leaves(12, 2_000, 1),
      { sweepMaxDepth: -1 },
      { depth: 2, phase: "routine", endIndex: 10 },
    ],
    [
      "does nothing in routine with sweepMaxDepth 0",
      leaves(9),
      { sweepMaxDepth: 0 },
      { depth: 1, phase: "pressure" },
    ],
    [
      "needs condensedMinFanout of deeper ones",
      [...leaves(3, 8_000, 1)],
      { sweepMaxDepth: 2, condensedMinFanout: 4 },
      { phase: "pressure", endIndex: 2 },
    ],
    [
      "under pressure takes condensedMinFanoutHard",
      leaves(3, 7_000),
      {},
      { phase: "pressure", endIndex: 2, depth: 1 },
    ],
    [
      "takes the shallowest depth first",
      [...leaves(4, 5_000, 2), ...leaves(2, 3_000, 0, 4)],
      {},
      { startIndex: 4, endIndex: 6, depth: 1 },
    ],
    [
      "never mixes depths in a large window",
      [summary(1, 10, { tokens: 15_000 }), summary(11, 20, { tokens: 15_000, depth: 1 })],
      {},
      null,
    ],
  ])("%s", (_, items, overrides, expected) => {
    const step = planOver(items, policy({ freshTailCount: 1, ...overrides }));
    if (expected === null) expect(step).toBeNull();
    else expect(step).toMatchObject({ kind: "condensed", ...expected });
  });

  test("is also done to come under a stop target", () => {
    const state = sweep({ stopAtTokens: 10_000 });
    expect(planOver(leaves(5), TAIL_OF_ONE, state)).toMatchObject({ phase: "pressure", endIndex: 5 });
    expect(planOver(leaves(4), TAIL_OF_ONE, state)).toBeNull();
  });

  test.each<[string, number, CoverItem[], unknown]>([
    ["the shortest run that saves enough", 20_000, leaves(5), { endIndex: 3, phase: "pressure" }],
    ["a longer one where more must be saved", 16_000, leaves(5), { endIndex: 4, phase: "pressure" }],
    ["all of it where even that is too little", 6_000, leaves(5), { endIndex: 5, phase: "pressure" }],
    ["never fewer than the fanout", 24_000, leaves(4), { endIndex: 2, phase: "pressure" }],
    ["in routine no fewer than its fanout either", 48_000, leaves(10), { endIndex: 8, phase: "routine" }],
  ])("in a small window takes %s", (_, budgetTokens, items, expected) => {
    expect(planOver(items, TAIL_OF_ONE, sweep({ budgetTokens }))).toMatchObject(expected as object);
  });

  describe("of summaries of which no two neighbours have the same depth, in a small window", () => {
    const SMALL = sweep({ budgetTokens: 32_000 });
    /** Of 10 messages each, oldest first. Up to 12,000 tokens may stay in this window. */
    const ofDepths = (depths: readonly number[], tokens = 3_000): CoverItem[] =>
      depths.flatMap((depth, at) => leaves(1, tokens, depth, at));

    test.each<[string, CoverItem[], unknown]>([
      ["waits until they are above their limit", ofDepths([3, 2, 1, 0]), null],
      ["takes two if they make room for a leaf", ofDepths([2, 1, 0], 4_500), { startIndex: 0, endIndex: 2 }],
      ["takes more if two do not", ofDepths([4, 3, 2, 1, 0]), { startIndex: 0, endIndex: 3, depth: 5 }],
      ["takes those nearest in depth", ofDepths([9, 6, 2, 1, 0]), { startIndex: 2, endIndex: 5, depth: 3 }],
    ])("%s", (_, items, expected) => {
      const step = planOver(items, TAIL_OF_ONE, SMALL);
      if (expected === null) expect(step).toBeNull();
      else expect(step).toMatchObject({ kind: "condensed", phase: "pressure", ...(expected as object) });
    });

    test("leaves them where fewer than four fit, and if even all would save too little", () => {
      const items = ofDepths([4, 3, 2, 1, 0]);
      expect(planOver(items, TAIL_OF_ONE, sweep({ budgetTokens: 22_000 }))).not.toBeNull();
      expect(planOver(items, TAIL_OF_ONE, sweep({ budgetTokens: 21_000 }))).toBeNull();
      expect(
        planOver(ofDepths([1, 0], 6_001), policy({ freshTailCount: 1, leafTargetTokens: 12_000 }), SMALL),
      ).toBeNull();
    });

    test("leaves them while a stand-in divides others of one depth", () => {
      const items = ofDepths([4, 3, 1, 0, 0]);
      const root: ReserveSummary = {
        summaryId: "sum_root",
        startPosition: items[0]!.startPosition,
        endPosition: items[3]!.endPosition,
        messages: items.slice(0, 4).reduce((sum, { messages: count }) => sum + count, 0),
        tokens: 2_000,
        depth: 5,
        isRoot: true,
      };
      expect(planOver(items, TAIL_OF_ONE, SMALL)).toMatchObject({ startIndex: 3, endIndex: 5, depth: 1 });
      expect(planOver(items, TAIL_OF_ONE, SMALL, { reserve: [root] })).toBeNull();
    });
  });

  test("in a small window takes a whole run to come under a stop target", () => {
    const state = sweep({ budgetTokens: 20_000, stopAtTokens: 10_000 });
    expect(planOver(leaves(5), TAIL_OF_ONE, state)).toMatchObject({ phase: "pressure", endIndex: 5 });
  });

  test("never spans a boundary", () => {
    const boundaries = [{ position: 41 * POSITION_STEP, retainDepth: -1 }];
    const step = planOver(leaves(9, 4_000), TAIL_OF_ONE, sweep(), { boundaries });
    expect(step).toMatchObject({ startIndex: 0, endIndex: 4, phase: "pressure" });
  });

  test("lets hidden rows between summaries lie under the new one", () => {
    const items = leaves(9, 3_000);
    items.splice(3, 0, message(31, { hidden: HIDDEN.meta }));
    items[2] = summary(21, 30, { tokens: 3_000 });
    items[4] = summary(32, 40, { tokens: 3_000 });
    expect(planOver(items)).toMatchObject({ startIndex: 0, endIndex: 7, phase: "pressure" });
  });
});

test("summaries leave a full tail room to grow in a small window, unless their target is set", () => {
  const small = policy({ contextThreshold: 0.75, freshTailMaxTokens: 9_600 });
  expect(prefixTargetTokens(small, 32_000)).toBe(12_000);
  expect(prefixLimitTokens(small, 32_000)).toBe(8_000);
  expect(prefixLimitTokens({ ...small, freshTailMaxTokens: 60_000 }, 200_000)).toBe(20_000);
  expect(prefixLimitTokens({ ...small, freshTailMaxTokens: 32_000 }, 32_000)).toBe(2_000);
  expect(prefixLimitTokens({ ...small, summaryPrefixTargetTokens: 12_000 }, 32_000)).toBe(12_000);
});

describe("a sweep", () => {
  test("ends when a pass saves nothing", () => {
    const items = withTail(messages(20));
    const step = planSweep(items, TAIL_OF_ONE, sweep());
    const stalled = recordPass(sweep(), step!, { before: 2_000, after: 2_000 });
    expect(planSweep(items, TAIL_OF_ONE, stalled)).toBeNull();
    expect(explainStop(items, TAIL_OF_ONE, stalled)).toBe("no_progress");
  });

  test("ends after maxSweepIterations passes", () => {
    expect(explainStop(withTail(messages(20)), TAIL_OF_ONE, sweep({ passes: 12 }))).toBe("pass_limit");
  });

  test("ends where its target is reached", () => {
    expect(explainStop(withTail(messages(20)), TAIL_OF_ONE, sweep({ stopAtTokens: 2_100 }))).toBe(
      "target_reached",
    );
    expect(explainStop(withTail(messages(3)), TAIL_OF_ONE, sweep())).toBe("nothing_to_fold");
    expect(explainStop(withTail(messages(20)), TAIL_OF_ONE, sweep())).toBeNull();
  });

  test("can be planned over a part of a cover", () => {
    const all = withTail(messages(1_000));
    const window = {
      tailStartPosition: 10_000 * POSITION_STEP,
      pinned: null,
      shownTokens: countShownTokens(all),
      prefixTokens: 0,
    };
    expect(planSweep(all.slice(0, 400), TAIL_OF_ONE, sweep(), { window })).toEqual(
      planSweep(all, TAIL_OF_ONE, sweep()),
    );
  });
});

describe("rounds until under a target", () => {
  const rounds = (state: Partial<RoundsState> = {}): RoundsState => ({
    targetTokens: 1_000,
    budgetTokens: BUDGET,
    isForced: true,
    foldsAll: false,
    landsNear: false,
    last: null,
    ...state,
  });
  const done = (stopped: StopReason) => ({ kind: "done", stopped });

  test("count the target itself as over on entry, and as under afterwards", () => {
    expect(planRound(rounds(), 999)).toEqual(done("target_reached"));
    expect(planRound(rounds(), 1_000)).toMatchObject({
      kind: "sweep",
      sweep: { isForced: true, stopAtTokens: 1_000 },
    });
    const swept = recordSweep(rounds(), { savedTokens: 500, stopped: "target_reached" });
    expect(planRound(swept, 1_000)).toEqual(done("target_reached"));
  });

  test("go on after the pass limit as long as a sweep saves something", () => {
    let state = rounds();
    for (let tokens = 1_050; tokens > 1_000; tokens--) {
      expect(planRound(state, tokens).kind).toBe("sweep");
      state = recordSweep(state, { savedTokens: 1, stopped: "pass_limit" });
    }
    expect(planRound(state, 1_000)).toEqual(done("target_reached"));
    // Turns that arrive meanwhile make the cover longer; what the passes saved counts.
    expect(planRound(state, 9_000).kind).toBe("sweep");
    const stalled = recordSweep(state, { savedTokens: 0, stopped: "no_progress" });
    expect(planRound(stalled, 1_001)).toEqual(done("no_progress"));
    const empty = recordSweep(state, { savedTokens: 0, stopped: "nothing_to_fold" });
    expect(planRound(empty, 1_001)).toEqual(done("nothing_to_fold"));
  });

  test("fold everything outside the tail first where that is asked for, then down to the target", () => {
    const first = rounds({ foldsAll: true });
    expect(planRound(first, 10)).toMatchObject({ kind: "sweep", sweep: { stopAtTokens: null } });
    const limited = recordSweep(first, { savedTokens: 10, stopped: "pass_limit" });
    expect(planRound(limited, 1_001)).toMatchObject({ kind: "sweep", sweep: { stopAtTokens: null } });
    expect(planRound(limited, 1_000)).toEqual(done("target_reached"));
    const all = recordSweep(first, { savedTokens: 0, stopped: "nothing_to_fold" });
    expect(planRound(all, 1_001)).toMatchObject({ kind: "sweep", sweep: { stopAtTokens: 1_000 } });
    expect(planRound(all, 1_000)).toEqual(done("nothing_to_fold"));
  });
});

describe("a target that somebody named", () => {
  /** Folds down to it; summaries have the size they aim at. */
  function foldTo(turns: readonly Turn[], targetTokens: number, p: CompactionPolicy) {
    const conversation = new FakeConversation();
    for (const spec of turns.flat()) conversation.append(spec);
    const count = () => countShownTokens(conversation.items);
    let state = startSweep({
      budgetTokens: BUDGET,
      isForced: true,
      stopAtTokens: targetTokens,
      landsNear: true,
    });
    for (;;) {
      const step = planSweep(conversation.items, p, state);
      if (step === null) return { after: count(), stopped: explainStop(conversation.items, p, state) };
      const before = count();
      conversation.fold(step);
      state = recordPass(state, step, { before, after: count() });
    }
  }

  test.each([90_000, 60_000, 30_000, 12_070, 5_000])("of %i is not undershot by much", (target) => {
    const turns = Array.from({ length: 600 }, (): Turn => [user, { tokens: 150 }]);
    const { after, stopped } = foldTo(turns, target, policy({ freshTailCount: 8, maxSweepIterations: 100 }));
    expect(stopped).toBe("target_reached");
    expect(after).toBeLessThanOrEqual(target);
    expect(after).toBeGreaterThanOrEqual(0.8 * target);
  });

  test("is landed at from 80 to 100 %, unless a run of leafMinFanout messages is larger than the gap", () => {
    const p = policy({ freshTailCount: 8, maxSweepIterations: 100, leafMinFanout: 4 });
    const sizes = fc.array(fc.integer({ min: 20, max: 900 }), { minLength: 60, maxLength: 300 });
    fc.assert(
      fc.property(sizes, fc.double({ min: 0.2, max: 0.9, noNaN: true }), (tokens, share) => {
        const turns = tokens.map((size): Turn => [{ role: "user", tokens: 20 }, { tokens: size }]);
        const total = tokens.reduce((sum, size) => sum + size + 20, 0);
        const target = Math.floor(share * total);
        const { after, stopped } = foldTo(turns, target, p);
        if (stopped !== "target_reached" || 0.15 * target <= 4 * 920) return;
        expect(after).toBeLessThanOrEqual(target);
        expect(after).toBeGreaterThanOrEqual(0.8 * target);
      }),
      { numRuns: 200 },
    );
  });

  test("does not shorten folds that only have to come under the threshold", () => {
    const items = messages(300, { tokens: 100 });
    const near = sweep({ stopAtTokens: 29_000, landsNear: true });
    expect(planOver(items, TAIL_OF_ONE, near)?.inputTokens).toBeLessThan(6_000);
    expect(planOver(items, TAIL_OF_ONE, sweep({ stopAtTokens: 29_000 }))?.inputTokens).toBe(20_000);
  });
});

describe("stored summaries", () => {
  test("full leaves are prepared ahead, each once, and published as they are", () => {
    const conversation = new FakeConversation();
    for (let n = 0; n < 500; n++) conversation.append(user);
    const prepared: number[] = [];
    for (;;) {
      const step = planPrepared(conversation.items, POLICY, { reserve: conversation.reserve });
      if (step === null) break;
      prepared.push(step.messages);
      conversation.prepare(step);
    }
    expect(prepared).toEqual([200, 200]);
    const ids = conversation.reserve.map(({ summaryId }) => summaryId);
    const steps = runSweep(conversation, POLICY, sweep());
    expect(steps.filter(({ kind }) => kind === "leaf").map(({ publishId }) => publishId)).toEqual([
      ...ids,
      null,
    ]);
  });

  test("a prepared leaf is passed over once its last tool group has got a late result", () => {
    const conversation = new FakeConversation();
    for (let n = 0; n < 9; n++) conversation.append(user);
    conversation.append({ calls: ["a"] });
    conversation.append(user);
    const small = policy({
      freshTailCount: 1,
      leafChunkTokens: countShownTokens(conversation.items.slice(0, 10)),
    });
    const step = planPrepared(conversation.items, small);
    expect(step).toMatchObject({ startIndex: 0, endIndex: 10 });
    conversation.prepare(step!);
    conversation.append({ role: "tool", results: ["a"] });
    conversation.append(user);
    const { reserve } = conversation;
    const fold = planSweep(conversation.items, small, sweep(), { reserve });
    expect(fold).toMatchObject({ startIndex: 0, endIndex: 9, publishId: null });
  });

  test("a fold never cuts across a reserve summary", () => {
    const reserve = {
      summaryId: "sum_r",
      startPosition: 31 * POSITION_STEP,
      endPosition: 50 * POSITION_STEP,
      messages: 20,
      tokens: 100,
      depth: 3,
      isRoot: false,
    };
    const p = policy({ freshTailCount: 1, leafChunkTokens: 4_000 });
    const plan = (stored: ReserveSummary) => planOver(messages(50), p, sweep(), { reserve: [stored] });
    expect(plan(reserve)).toMatchObject({ startIndex: 0, endIndex: 30 });
    // One that no longer stands for what lies there is in nobody's way.
    expect(plan({ ...reserve, messages: 19 })).toMatchObject({ startIndex: 0, endIndex: 40 });
  });

  test("what a stored leaf leaves over does not keep it from being published", () => {
    const stored = {
      summaryId: "sum_p",
      startPosition: 2 * POSITION_STEP,
      endPosition: 41 * POSITION_STEP,
      messages: 40,
      tokens: 100,
      depth: 0,
      isRoot: false,
    };
    const p = policy({ freshTailCount: 1, leafChunkTokens: 4_000 });
    expect(planOver(messages(50), p, sweep(), { reserve: [stored] })).toMatchObject({
      startIndex: 1,
      endIndex: 41,
      publishId: "sum_p",
    });
  });

  test("messages stranded between summaries are condensed with them, and lie under the root", () => {
    const items = withTail([
      message(1, { tokens: 40 }),
      ...Array.from({ length: 4 }, (_, n) => [
        summary(n * 10 + 2, n * 10 + 10),
        message(n * 10 + 11, { tokens: 40 }),
      ]).flat(),
      summary(42, 50),
    ]);
    const step = planSweep(items, TAIL_OF_ONE, sweep({ stopAtTokens: 10 }));
    expect(step).toMatchObject({
      kind: "condensed",
      phase: "pressure",
      startIndex: 0,
      endIndex: 10,
      depth: 1,
      messages: 50,
    });
    expect(planReserve(items, TAIL_OF_ONE, BUDGET)).toMatchObject({
      isRoot: true,
      messages: 50,
      startPosition: POSITION_STEP,
    });
  });

  test("a root is made over all summaries before the tail", () => {
    const items = withTail(
      Array.from({ length: 4 }, (_, n) => summary(n * 10 + 1, n * 10 + 10, { tokens: 2_000, depth: n % 2 })),
    );
    const step = planReserve(items, TAIL_OF_ONE, BUDGET);
    expect(step).toMatchObject({
      isRoot: true,
      messages: 40,
      depth: 2,
      inputTokens: 8_000,
      targetTokens: 2_000,
    });
    expect(step?.sourceIds).toHaveLength(4);
  });

  test("a root is remade only when more than 15 % of the budget lies between it and the tail", () => {
    const items = withTail(
      Array.from({ length: 12 }, (_, n) => summary(n * 10 + 1, n * 10 + 10, { tokens: 3_000 })),
    );
    const root = (leaves: number) => ({
      summaryId: "sum_root",
      startPosition: POSITION_STEP,
      endPosition: leaves * 10 * POSITION_STEP,
      messages: leaves * 10,
      tokens: 2_000,
      depth: 1,
      isRoot: true,
    });
    const plan = (leaves: number) => planReserve(items, TAIL_OF_ONE, BUDGET, { reserve: [root(leaves)] });
    expect(plan(2)).toBeNull();
    expect(plan(1)).toMatchObject({ isRoot: false, messages: 60 });
    expect(plan(12)).toBeNull();
  });

  describe("in a small window", () => {
    const SMALL = 4_000;
    const plan = (items: readonly CoverItem[], reserve: readonly ReserveSummary[] = []) =>
      planReserve(items, policy({ freshTailCount: 1, turnMaxTokens: 500 }), SMALL, { reserve });
    const standIn = (from: number, to: number, tokens: number, isRoot: boolean): ReserveSummary => ({
      summaryId: `sum_${from}_${tokens}`,
      startPosition: from * POSITION_STEP,
      endPosition: to * POSITION_STEP,
      messages: to - from + 1,
      tokens,
      depth: 1,
      isRoot,
    });

    test("a summary that takes much of it gets a smaller stand-in; a small one is its own", () => {
      const large = summary(1, 100, { tokens: 1_400, depth: 1 });
      expect(plan(withTail([large]))).toMatchObject({ isRoot: true, messages: 100, targetTokens: 600 });
      expect(plan(withTail([large]), [standIn(1, 100, 700, true)])).toBeNull();
      expect(plan(withTail([{ ...large, tokens: 700 }]))).toBeNull();
    });

    test("a root that was made for a larger window gets a smaller one beside it, and no third", () => {
      const items = withTail([summary(1, 50, { tokens: 2_000 }), summary(51, 100, { tokens: 2_000 })]);
      const root = standIn(1, 100, 2_100, true);
      expect(plan(items, [root])).toMatchObject({ isRoot: true, messages: 100, targetTokens: 600 });
      expect(plan(items, [root, standIn(1, 100, 1_500, true)])).toBeNull();
    });

    test("what was folded of a running turn has a stand-in of its own, which is no root", () => {
      const turn = [
        message(101, user),
        summary(102, 120, { tokens: 900 }),
        summary(121, 140, { tokens: 900 }),
      ];
      const items = [summary(1, 100, { tokens: 500, depth: 1 }), ...turn, message(141, { tokens: 900 })];
      const step = plan(items);
      expect(step).toMatchObject({ isRoot: false, messages: 39, targetTokens: 600 });
      expect(step?.startPosition).toBe(102 * POSITION_STEP);
      expect(plan(items, [standIn(102, 140, 700, false)])).toBeNull();
      expect(planReserve(items, policy({ freshTailCount: 1, turnMaxTokens: 500 }), BUDGET)).toBeNull();
    });
  });

  test("a long history is condensed in steps that end in one root, and then rests", () => {
    const conversation = new FakeConversation();
    conversation.items = withTail(
      Array.from({ length: 300 }, (_, n) => summary(n * 10 + 1, n * 10 + 10, { tokens: 2_400 })),
    );
    let steps = 0;
    for (; steps < 100; steps++) {
      const step = planReserve(conversation.items, TAIL_OF_ONE, BUDGET, { reserve: conversation.reserve });
      if (step === null) break;
      expect(step.inputTokens).toBeLessThanOrEqual(POLICY.leafChunkTokens);
      conversation.addReserve(step);
    }
    expect(steps).toBeLessThan(60);
    expect(conversation.reserve.filter(({ isRoot }) => isRoot)).toMatchObject([{ messages: 3_000 }]);
  });
});

/** Runs a sweep to its end and returns its steps. */
function runSweep(conversation: FakeConversation, p: CompactionPolicy, start: SweepState) {
  const steps = [];
  let state = start;
  for (;;) {
    const facts = { boundaries: conversation.boundaries, reserve: conversation.reserve };
    const step = planSweep(conversation.items, p, state, facts);
    if (step === null) return steps;
    const before = countShownTokens(conversation.items, conversation.boundaries);
    conversation.fold(step);
    const after = countShownTokens(conversation.items, conversation.boundaries);
    steps.push(step);
    state = recordPass(state, step, { before, after });
  }
}

describe("whatever is appended and folded", () => {
  type Act =
    | { kind: "turn"; turn: Turn }
    | { kind: "boundary"; retainDepth: number }
    | { kind: "sweep"; isForced: boolean; stopAt: number | null }
    | { kind: "prepare" }
    | { kind: "reserve" };

  const act: fc.Arbitrary<Act> = fc.oneof(
    { weight: 12, arbitrary: turn.map((t): Act => ({ kind: "turn", turn: t })) },
    {
      weight: 1,
      arbitrary: fc.constantFrom(-1, 0, 2).map((retainDepth): Act => ({ kind: "boundary", retainDepth })),
    },
    {
      weight: 3,
      arbitrary: fc
        .record({ isForced: fc.boolean(), stopAt: fc.option(fc.integer({ min: 500, max: 60_000 })) })
        .map((options): Act => ({ kind: "sweep", ...options })),
    },
    { weight: 2, arbitrary: fc.constant<Act>({ kind: "prepare" }) },
    { weight: 2, arbitrary: fc.constant<Act>({ kind: "reserve" }) },
  );

  const smallPolicy = fc
    .record({
      freshTailCount: fc.integer({ min: 1, max: 20 }),
      turnMaxTokens: fc.option(fc.integer({ min: 100, max: 20_000 }), { nil: undefined }),
      leafMinFanout: fc.integer({ min: 2, max: 8 }),
      leafChunkTokens: fc.integer({ min: 500, max: 20_000 }),
      sweepMaxDepth: fc.integer({ min: -1, max: 3 }),
      summaryPrefixTargetTokens: fc.option(fc.integer({ min: 200, max: 8_000 }), { nil: undefined }),
    })
    .map((overrides) => policy({ leafTargetTokens: 400, condensedTargetTokens: 300, ...overrides }));

  /** Two leaves are prepared, and a hidden row stands between them: only one of them may take it along. */
  const hiddenBetweenLeaves: [Act[], CompactionPolicy] = [
    [
      {
        kind: "turn",
        turn: [
          { role: "user", tokens: 5 },
          { role: "other", tokens: 20, hidden: 1 },
          { role: "assistant", tokens: 6_000 },
        ],
      },
      {
        kind: "turn",
        turn: [
          { role: "user", tokens: 5 },
          { role: "assistant", tokens: 5 },
        ],
      },
      { kind: "prepare" },
      { kind: "prepare" },
      { kind: "sweep", isForced: false, stopAt: null },
    ],
    policy({
      freshTailCount: 1,
      leafMinFanout: 2,
      leafChunkTokens: 500,
      sweepMaxDepth: 0,
      leafTargetTokens: 400,
      condensedTargetTokens: 300,
    }),
  ];

  test("the cover holds every message once and in order, and steps keep every rule", () => {
    fc.assert(
      fc.property(fc.array(act, { maxLength: 60 }), smallPolicy, (acts, p) => {
        const conversation = new FakeConversation();
        for (const step of acts) {
          if (step.kind === "turn") for (const spec of step.turn) conversation.append(spec);
          else if (step.kind === "boundary") conversation.addBoundary(step.retainDepth);
          else if (step.kind === "prepare") prepareOne(conversation, p);
          else if (step.kind === "reserve") reserveOne(conversation, p);
          else sweepAndCheck(conversation, p, sweep({ isForced: step.isForced, stopAtTokens: step.stopAt }));
          checkCover(conversation);
        }
      }),
      { numRuns: 150, examples: [hiddenBetweenLeaves] },
    );
  });

  function prepareOne(conversation: FakeConversation, p: CompactionPolicy): void {
    const facts = { boundaries: conversation.boundaries, reserve: conversation.reserve };
    const step = planPrepared(conversation.items, p, facts);
    if (step !== null) conversation.prepare(step);
  }

  function reserveOne(conversation: FakeConversation, p: CompactionPolicy): void {
    const facts = { boundaries: conversation.boundaries, reserve: conversation.reserve };
    const step = planReserve(conversation.items, p, 20_000, facts);
    if (step === null) return;
    expect(step.sourceIds.length).toBeGreaterThan(1);
    conversation.addReserve(step);
  }

  function sweepAndCheck(conversation: FakeConversation, p: CompactionPolicy, start: SweepState): void {
    let state = start;
    let together = planTogether(conversation, p, state);
    for (let passes = 0; ; passes++) {
      expect(passes).toBeLessThanOrEqual(p.maxSweepIterations);
      const facts = { boundaries: conversation.boundaries, reserve: conversation.reserve };
      const { items } = conversation;
      const step = planSweep(items, p, state, facts);
      const [next, ...rest] = together;
      if (next !== undefined) expect(step?.publishId).toBe(next);
      // What was not named to be published together is not a stored leaf.
      else if (step?.kind === "leaf") expect(step.publishId).toBeNull();
      if (step === null) return;
      checkStep(conversation, p, step);
      const before = countShownTokens(items, conversation.boundaries);
      conversation.fold(step);
      const after = countShownTokens(conversation.items, conversation.boundaries);
      if (step.publishId === null) expect(after).toBeLessThan(before);
      state = recordPass(state, step, { before, after });
      together = next === undefined ? planTogether(conversation, p, state) : rest;
    }
  }

  const planTogether = (conversation: FakeConversation, p: CompactionPolicy, state: SweepState) =>
    planStoredLeaves(conversation.items, p, state, {
      boundaries: conversation.boundaries,
      reserve: conversation.reserve,
    }).map(({ publishId }) => publishId);

  function checkStep(
    conversation: FakeConversation,
    p: CompactionPolicy,
    step: NonNullable<ReturnType<typeof planSweep>>,
  ) {
    const { items, boundaries } = conversation;
    const isShown = (item: CoverItem) =>
      item.hidden === 0 &&
      !boundaries.some((b) => b.retainDepth > item.depth && item.endPosition < b.position);
    const tail = findFreshTail(items, p, isShown);
    expect(step.endIndex).toBeLessThanOrEqual(tail.startIndex);
    const run = items.slice(step.startIndex, step.endIndex);
    for (let index = tail.pinned?.startIndex ?? 0; index < (tail.pinned?.endIndex ?? 0); index++)
      expect(run).not.toContain(items[index]);
    const shown = run.filter((item) => item.hidden === 0);
    const depths = new Set(shown.map((item) => item.depth));
    // A condensed summary takes along messages that are left over before its sources.
    if (step.kind === "condensed") depths.delete(-1);
    expect(depths).toEqual(new Set([step.depth - 1]));
    if (step.kind === "condensed") expect(shown.at(-1)?.depth).toBe(step.depth - 1);
    for (const { position } of boundaries)
      expect(step.startPosition >= position || step.endPosition < position).toBe(true);
    const isDivided = (group: readonly CoverItem[]) =>
      boundaries.some(
        (b) => group[0]!.startPosition < b.position && group.at(-1)!.startPosition >= b.position,
      );
    if (step.kind === "leaf")
      for (const group of groupItems(items)) {
        const inside = group.items.filter((item) => run.includes(item)).length;
        if (!isDivided(group.items)) expect([0, group.items.length]).toContain(inside);
      }
  }

  function checkCover(conversation: FakeConversation): void {
    const { items } = conversation;
    const ids = items.flatMap((item) => conversation.idsUnder(item));
    expect(ids).toEqual(Array.from({ length: conversation.next - 1 }, (_, n) => n + 1));
    for (const [index, item] of items.entries()) {
      expect(item.endPosition).toBeGreaterThanOrEqual(item.startPosition);
      const before = items[index - 1];
      if (before) expect(item.startPosition).toBeGreaterThan(before.endPosition);
    }
  }
});

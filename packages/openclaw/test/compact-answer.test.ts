import { describe, expect, test } from "vitest";
import {
  describeOutcome,
  explainRefusal,
  readTrigger,
  type HostFoldResult,
} from "../src/assemble/compact-answer.ts";
import { classifyReason, letsTurnGoOn } from "./host-rules.ts";

const byKind: {
  readonly [Kind in HostFoldResult["kind"]]: readonly Extract<HostFoldResult, { kind: Kind }>[];
} = {
  folded: [true, false].map((targetReached) => ({ kind: "folded", targetReached })),
  shrunk: [{ kind: "shrunk" }],
  "under-target": [{ kind: "under-target" }],
  "no-more": [{ kind: "no-more" }],
  "nothing-stored": [{ kind: "nothing-stored" }],
  cancelled: [{ kind: "cancelled" }],
  failed: [{ kind: "failed", message: "a summary guard timed out" }],
};
const outcomes: readonly HostFoldResult[] = Object.values(byKind).flat();

describe("what the host is told about a compaction", () => {
  test.each(outcomes)("before a turn, $kind lets the turn go on", (outcome) => {
    // Whoever cancels a compaction does not wait for its answer.
    const isExpected = outcome.kind !== "cancelled";
    expect(letsTurnGoOn(describeOutcome(outcome, "budget"))).toBe(isExpected);
    expect(explainRefusal(outcome, "budget") === null).toBe(isExpected);
  });

  test.each(outcomes.filter(({ kind }) => kind !== "failed" && kind !== "cancelled"))(
    "$kind is no failure, whoever asked",
    (outcome) => {
      for (const trigger of ["manual", "overflow", "budget"] as const) {
        const answer = describeOutcome(outcome, trigger);
        expect(answer.ok).toBe(true);
        expect(letsTurnGoOn(answer)).toBe(true);
        expect(answer.reason).not.toMatch(/guard|summary|time/i);
      }
    },
  );

  test("the words are the host's own", () => {
    const classify = (kind: "under-target" | "no-more" | "nothing-stored"): string =>
      classifyReason(describeOutcome({ kind }, "budget").reason);
    expect(classify("under-target")).toBe("below_threshold");
    expect(classify("no-more")).toBe("already_compacted");
    expect(classify("nothing-stored")).toBe("no_compactable_entries");
  });

  test("a person who asked is told what failed", () => {
    const answer = describeOutcome({ kind: "failed", message: "the disk is gone" }, "manual");
    expect(answer).toEqual({ ok: false, compacted: false, reason: "the disk is gone" });
  });

  test("a provider that refused gets a smaller prompt, or the turn is refused", () => {
    for (const outcome of outcomes) {
      const { ok, compacted } = describeOutcome(outcome, "overflow");
      expect(explainRefusal(outcome, "overflow") === null).toBe(ok && compacted);
    }
  });

  test("other reasons of the host count as a model that failed", () => {
    expect([undefined, "manual", "budget", "overflow", "timeout_recovery"].map(readTrigger)).toEqual([
      "manual",
      "manual",
      "budget",
      "overflow",
      "overflow",
    ]);
  });
});

/**
 * Rules between settings: values that are valid individually but cannot work together. Pure. Every rule names both sides, so that a person
 * who changes one of them learns what it may be.
 *
 * Invariant: the defaults break no rule, so resetting a side to its default always ends.
 */
import type { ValueProblem } from "./setting-types.ts";
import type { SettingKey, Settings } from "./settings.ts";

/** One side of a broken rule: what is wrong inside the value of a key. */
export interface ConflictSide extends ValueProblem {
  readonly key: SettingKey;
}

export type Conflict = readonly [ConflictSide, ConflictSide];

/** Why a setting conflicts with others; undefined if it does not. */
export function findConflictOf(key: SettingKey, settings: Settings): ConflictSide | undefined {
  for (const sides of findConflicts(settings)) {
    const side = sides.find((one) => one.key === key);
    if (side !== undefined) return side;
  }
  return undefined;
}

export function* findConflicts(settings: Settings): Generator<Conflict> {
  const { leafTargetTokens: target, leafChunkTokens: chunk } = settings;
  const targetSide = (otherKey: string, other: number): ConflictSide => ({
    key: "leafTargetTokens",
    at: "",
    value: target,
    says: `must be less than ${otherKey}, ${other}: a summary must be shorter than what it is made from`,
  });
  const chunkSide = (key: SettingKey, value: number, at = ""): ConflictSide => ({
    key,
    at,
    value,
    says: `must be greater than leafTargetTokens, ${target}: a summary must be shorter than what it is made from`,
  });
  if (chunk <= target) yield [chunkSide("leafChunkTokens", chunk), targetSide("leafChunkTokens", chunk)];
  for (const [index, { leafChunkTokens }] of settings.contextThresholdOverrides.entries()) {
    if (leafChunkTokens === undefined || leafChunkTokens > target) continue;
    const [key, at] = ["contextThresholdOverrides", `[${index}].leafChunkTokens`] as const;
    yield [chunkSide(key, leafChunkTokens, at), targetSide(`${key}${at}`, leafChunkTokens)];
  }
  const { condensedMinFanout: fanout, condensedMinFanoutHard: hard } = settings;
  if (fanout < hard) {
    yield [
      {
        key: "condensedMinFanout",
        at: "",
        value: fanout,
        says: `must be at least condensedMinFanoutHard, ${hard}`,
      },
      {
        key: "condensedMinFanoutHard",
        at: "",
        value: hard,
        says: `must be at most condensedMinFanout, ${fanout}`,
      },
    ];
  }
}

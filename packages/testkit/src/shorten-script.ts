/**
 * Scripts of a simulation: a seed and the numbers of its steps, each with its own derived seed. A failing script is shortened by omitting steps
 * while it still fails, and reported with the command that replays it.
 */

export interface StepScript {
  readonly seed: number;
  readonly steps: readonly number[];
}

export interface PlayedSteps {
  /** One line for each step that was played. */
  readonly trail: readonly string[];
  /** Empty: no faults. */
  readonly faults: readonly string[];
}

/** A shortened script need not be the shortest, and what failed must be told before anything takes the test for one that hangs. */
const MAX_TRIES = 60;
const MAX_SHORTENING_MS = 180_000;

export const stepsUpTo = (count: number): number[] => Array.from({ length: count }, (_, at) => at + 1);

/** The first of the seeds that a test plays: the usual one, one that is named, or with `LCM_SEED=random` a new one each time. */
export function firstSeed(usual = 1): number {
  const named = process.env["LCM_FIRST_SEED"];
  if (named !== undefined) return Number(named);
  return process.env["LCM_SEED"] === "random" ? 1 + Math.floor(Math.random() * 1_000_000) : usual;
}

/** What a fault is told apart by while a script is shortened: numbers in it change with the steps. */
const kindOf = ({ faults }: PlayedSteps): string =>
  (faults[0] ?? "").split("\n")[0]?.replaceAll(/\d+/g, "#") ?? "";

type Play<S extends StepScript, P extends PlayedSteps> = (script: S) => Promise<P>;

/** Omits runs of steps, shorter and shorter, while the first fault stays the same. */
async function shorten<S extends StepScript, P extends PlayedSteps>(
  script: S,
  failed: P,
  play: Play<S, P>,
): Promise<{ script: S; played: P }> {
  let best = { script: { ...script, steps: script.steps.slice(0, failed.trail.length) }, played: failed };
  const startedAt = performance.now();
  let tries = 0;
  const isTired = (): boolean => tries >= MAX_TRIES || performance.now() - startedAt >= MAX_SHORTENING_MS;
  for (
    let size = Math.ceil(best.script.steps.length / 2);
    size >= 1;
    size = size === 1 ? 0 : Math.ceil(size / 2)
  ) {
    for (let at = 0; at < best.script.steps.length && !isTired();) {
      const steps = best.script.steps.toSpliced(at, size);
      if (steps.length === 0) break;
      tries += 1;
      const shorter = { ...script, steps };
      const played = await play(shorter);
      if (kindOf(played) === kindOf(failed))
        best = { script: { ...shorter, steps: steps.slice(0, played.trail.length) }, played };
      else at += size;
    }
  }
  return best;
}

/** Plays a script; a failure throws an error with the shortened script and the command for it. `closely` finds faults no later than `play`. */
export async function playOrExplain<S extends StepScript, P extends PlayedSteps>(
  script: S,
  file: string,
  play: Play<S, P>,
  closely: Play<S, P> = play,
): Promise<P> {
  const played = await play(script);
  if (played.faults.length === 0) return played;
  // Shortening plays it again and again, which may take many minutes.
  console.error(
    `seed ${script.seed} fails after ${played.trail.length} steps and is shortened now: ${played.faults[0] ?? ""}`,
  );
  const short = await shorten(script, played, closely);
  throw new Error(
    [
      `seed ${script.seed} fails after ${played.trail.length} steps: ${played.faults[0] ?? ""}`,
      `Shortened to ${short.played.trail.length} steps: ${short.played.trail.join(", ")}`,
      ...short.played.faults.slice(0, 10),
      `Play it again: LCM_SEED=${script.seed} LCM_STEPS=${short.script.steps.join(",")} npx vitest run ${file}`,
    ].join("\n"),
  );
}

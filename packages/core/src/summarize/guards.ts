/**
 * Limits the cost of summaries and protects a provider that is down: the spend guard, the daily cap, a breaker and a pause per candidate.
 * All of it is stored, so that it survives a restart and two processes share one state.
 *
 * Invariant: a guard that opens reports it once (`degraded`), and once more when it has closed (`recovered`). A guard whose time is over
 * lets the next call through but counts as open until that call succeeds. If the ledger cannot be read, nothing is let through.
 */
import type { Clock, EventSink } from "../model/events.ts";
import type { Settings } from "../settings/settings.ts";
import type { FoldingStore, Guard, SpendGroup } from "../store/folding.ts";
import { type Candidate, nameCandidate } from "./candidates.ts";
import { findDay } from "./time-of-day.ts";

export interface GuardOptions {
  readonly store: Pick<FoldingStore, "countSpendCalls" | "sumSpend" | "readGuards" | "saveGuard">;
  readonly settings: Pick<
    Settings,
    | "circuitBreakerThreshold"
    | "circuitBreakerCooldownMs"
    | "summaryMaxCallsPerWindow"
    | "summaryMaxTokensPerWindow"
    | "summaryCallWindowMs"
    | "summarySpendBackoffMs"
    | "spendMaxTokensPerDay"
    | "timezone"
  >;
  readonly clock: Pick<Clock, "now">;
  readonly emit: EventSink;
}

const SPEND_GUARD = "spend";
const WINDOW_GUARD = "spend-window";
const DAY_GUARD = "spend-day";
const breakerName = (candidate: Candidate): string => `breaker:${nameCandidate(candidate)}`;
const pauseName = (candidate: Candidate): string => `pause:${nameCandidate(candidate)}`;

const PAUSE_STEP_MS = 15_000;
const MAX_PAUSE_MS = 600_000;

/** One failure is often chance and costs nothing; from the second in a row on, the waits double. */
function pauseAfter(failures: number): number {
  return Math.min(MAX_PAUSE_MS, PAUSE_STEP_MS * (2 ** Math.min(failures - 1, 20) - 1));
}

export class GuardBook {
  readonly #options: GuardOptions;
  /** Changes are serialised, so that two concurrent calls do not lose a failure or report twice. */
  #last: Promise<unknown> = Promise.resolve();

  constructor(options: GuardOptions) {
    this.#options = options;
  }

  /** Whether spending rules allow one more call now. */
  async allowsCall(): Promise<boolean> {
    return this.#safely("read the spend ledger", false, async () => {
      return (
        !(await this.#isDayFull()) && !(await this.#hasCalledTooOften()) && !(await this.#isWindowFull())
      );
    });
  }

  /** Whether the day's tokens allow a call that does not count as one of the summariser's. */
  async allowsTokens(): Promise<boolean> {
    return this.#safely("read the spend ledger", false, async () => !(await this.#isDayFull()));
  }

  /** Whether this candidate may be called now. */
  async allowsCandidate(candidate: Candidate): Promise<boolean> {
    return this.#safely("read the guards", false, async () => {
      const now = this.#options.clock.now();
      const names = [breakerName(candidate), pauseName(candidate)];
      const guards = await this.#options.store.readGuards();
      return !guards.some((guard) => names.includes(guard.name) && guard.openUntil > now);
    });
  }

  /** The provider answered: its key works. */
  async noteAnswer(candidate: Candidate): Promise<void> {
    await this.#close(breakerName(candidate));
  }

  /** The summary was good. */
  async noteAccepted(candidate: Candidate): Promise<void> {
    await this.#close(pauseName(candidate));
  }

  /** The key or the right to use the model was refused. */
  async noteRefused(candidate: Candidate, reason: string): Promise<void> {
    const { circuitBreakerThreshold: threshold, circuitBreakerCooldownMs: cooldownMs } =
      this.#options.settings;
    await this.#update(breakerName(candidate), (before, now) => {
      const failures = before.failures + 1;
      const openUntil = failures >= threshold ? now + cooldownMs : before.openUntil;
      return { ...before, failures, openUntil, reason };
    });
  }

  /** It could not answer, or not well. The provider's retry delay is honoured, within the cooldown of the breaker. */
  async noteTrouble(candidate: Candidate, reason: string, retryAfterMs = 0): Promise<void> {
    const asked = Math.min(retryAfterMs, this.#options.settings.circuitBreakerCooldownMs);
    await this.#update(pauseName(candidate), (before, now) => {
      const failures = before.failures + 1;
      const waitMs = Math.max(pauseAfter(failures), asked);
      return { ...before, failures, openUntil: waitMs > 0 ? now + waitMs : before.openUntil, reason };
    });
  }

  /** The ledger decides, not the stored guard, so that a raised cap takes effect at once. */
  async #isDayFull(): Promise<boolean> {
    const { store, settings, clock } = this.#options;
    const cap = settings.spendMaxTokensPerDay;
    if (cap === null) {
      await this.#close(DAY_GUARD);
      return false;
    }
    const day = findDay(clock.now(), settings.timezone);
    const [sum] = await store.sumSpend({ since: day.start, by: "all" });
    const used = (sum?.inputTokens ?? 0) + (sum?.outputTokens ?? 0);
    if (used < cap) {
      await this.#close(DAY_GUARD);
      return false;
    }
    await this.#open(DAY_GUARD, day.end, `${used} of ${cap} tokens of the day are used`);
    return true;
  }

  /** As for the day: the ledger decides, and the guard only records until when. */
  async #isWindowFull(): Promise<boolean> {
    const { settings, clock } = this.#options;
    const { summaryMaxTokensPerWindow: cap, summaryCallWindowMs: windowMs } = settings;
    const now = clock.now();
    const used = cap === null ? 0 : await this.#sumSummaryTokens(now - windowMs);
    if (cap === null || used < cap) {
      await this.#close(WINDOW_GUARD);
      return false;
    }
    const openUntil = (await this.#findRoom(cap, now - windowMs, now)) + windowMs;
    await this.#open(WINDOW_GUARD, openUntil, `${used} of ${cap} tokens within ${windowMs} ms are used`);
    return true;
  }

  async #sumSummaryTokens(since: number): Promise<number> {
    return sumWindow(await this.#options.store.sumSpend({ since, by: "purpose" })).tokens;
  }

  /** The earliest start of a window with room. A later start never has more in it, so a binary search finds it. */
  async #findRoom(cap: number, full: number, now: number): Promise<number> {
    let [before, after] = [full, now + 1];
    while (after - before > 1) {
      const middle = Math.floor((before + after) / 2);
      if ((await this.#sumSummaryTokens(middle)) < cap) after = middle;
      else before = middle;
    }
    return after;
  }

  async #hasCalledTooOften(): Promise<boolean> {
    const { store, settings, clock } = this.#options;
    const now = clock.now();
    const limit = settings.summaryMaxCallsPerWindow;
    if (limit === null) {
      await this.#close(SPEND_GUARD);
      return false;
    }
    if ((await this.#read(SPEND_GUARD)).openUntil > now) return true;
    const calls = await store.countSpendCalls(now - settings.summaryCallWindowMs);
    if (calls < limit) {
      await this.#close(SPEND_GUARD);
      return false;
    }
    const reason = `${calls} calls within ${settings.summaryCallWindowMs} ms`;
    await this.#open(SPEND_GUARD, now + settings.summarySpendBackoffMs, reason);
    return true;
  }

  async #open(name: string, openUntil: number, reason: string): Promise<void> {
    await this.#update(name, (before, now) =>
      before.openUntil > now ? before : { ...before, openUntil, reason },
    );
  }

  async #close(name: string): Promise<void> {
    await this.#update(name, () => ({ name, failures: 0, openUntil: 0, reason: "" }));
  }

  async #read(name: string): Promise<Guard> {
    const guards = await this.#options.store.readGuards();
    return guards.find((guard) => guard.name === name) ?? { name, failures: 0, openUntil: 0, reason: "" };
  }

  #update(name: string, change: (before: Guard, now: number) => Guard): Promise<void> {
    const turn = this.#last.then(() =>
      this.#safely(`save the guard ${name}`, undefined, async () => {
        const before = await this.#read(name);
        const after = change(before, this.#options.clock.now());
        if (before.failures === after.failures && before.openUntil === after.openUntil) return;
        await this.#options.store.saveGuard(after);
        this.#tell(before, after);
      }),
    );
    this.#last = turn;
    return turn;
  }

  #tell(before: Guard, after: Guard): void {
    if (before.openUntil === 0 && after.openUntil > 0) {
      const until = new Date(after.openUntil).toISOString();
      const message = `summaries are written without ${describeGuard(after.name)} until ${until}: ${after.reason}`;
      this.#options.emit({ kind: "degraded", part: "summariser", message });
    } else if (before.openUntil > 0 && after.openUntil === 0) {
      this.#options.emit({ kind: "recovered", part: "summariser" });
    }
  }

  /** Folding continues when the ledger cannot be written; the host is notified. */
  async #safely<T>(what: string, otherwise: T, work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      const cause = error instanceof Error ? error.message : String(error);
      this.#options.emit({ kind: "degraded", part: "summariser", message: `cannot ${what}: ${cause}` });
      return otherwise;
    }
  }
}

/** What counts toward the limits of a window, from sums by purpose. Calls for vectors are many and small: they count only for the day. */
export function sumWindow(byPurpose: readonly SpendGroup[]): { calls: number; tokens: number } {
  const counted = byPurpose.filter(({ key }) => key !== "embed");
  return {
    calls: counted.reduce((sum, { calls }) => sum + calls, 0),
    tokens: counted.reduce((sum, { inputTokens, outputTokens }) => sum + inputTokens + outputTokens, 0),
  };
}

function describeGuard(name: string): string {
  const colon = name.indexOf(":");
  return colon < 0 ? "a model" : name.slice(colon + 1);
}

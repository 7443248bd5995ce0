/** Model usage and remaining caps, as every door shows them. */
import { sumWindow } from "../summarize/guards.ts";
import type { Engine } from "../engine/engine.ts";
import type { Settings } from "../settings/settings.ts";
import type { Guard, SpendGroup } from "../store/folding.ts";
import { findDay } from "../summarize/time-of-day.ts";
import { formatCount, formatSeconds, formatTime, toOneLine } from "./format.ts";

export const GROUPINGS = ["day", "conversation", "model", "purpose"] as const;

export type Grouping = (typeof GROUPINGS)[number];

interface Caps {
  readonly tokensPerDay: number | null;
  readonly tokensToday: number;
  readonly tokensPerWindow: number | null;
  readonly tokensInWindow: number;
  readonly callsPerWindow: number | null;
  readonly callsInWindow: number;
  readonly windowMs: number;
}

export interface Ledger {
  readonly groups: readonly SpendGroup[];
  readonly total: Omit<SpendGroup, "key">;
  readonly caps: Caps;
  readonly guards: readonly Guard[];
}

export async function readLedger(
  engine: Engine,
  settings: Settings,
  { since, now, by }: { since: number; now: number; by: Grouping },
): Promise<Ledger> {
  const sum = async (from: number): Promise<Ledger["total"]> => {
    const [all] = await engine.spend({ since: from, by: "all" });
    const { calls = 0, inputTokens = 0, outputTokens = 0 } = all ?? {};
    return { calls, inputTokens, outputTokens };
  };
  const today = await sum(findDay(now, settings.timezone).start);
  const window = sumWindow(await engine.spend({ since: now - settings.summaryCallWindowMs, by: "purpose" }));
  return {
    groups: await engine.spend({ since, by }),
    total: await sum(since),
    caps: {
      tokensPerDay: settings.spendMaxTokensPerDay,
      tokensToday: today.inputTokens + today.outputTokens,
      callsPerWindow: settings.summaryMaxCallsPerWindow,
      callsInWindow: window.calls,
      tokensPerWindow: settings.summaryMaxTokensPerWindow,
      tokensInWindow: window.tokens,
      windowMs: settings.summaryCallWindowMs,
    },
    guards: (await engine.status()).guards,
  };
}

export function describeCaps(
  { caps, guards }: Ledger,
  timezone: string,
  paintPaused: (text: string) => string,
): [string, string][] {
  const { tokensPerDay, tokensToday, windowMs } = caps;
  const { tokensPerWindow, tokensInWindow, callsPerWindow, callsInWindow } = caps;
  const limit = (cap: number | null): string => (cap === null ? "no cap" : `of ${formatCount(cap)}`);
  const within = `in ${formatSeconds(windowMs)}`;
  return [
    ["Today", `${formatCount(tokensToday)} tokens, ${limit(tokensPerDay)} (spendMaxTokensPerDay)`],
    [
      "Window",
      `${formatCount(tokensInWindow)} tokens ${within}, ${limit(tokensPerWindow)} (summaryMaxTokensPerWindow)`,
    ],
    ["Calls", `${formatCount(callsInWindow)} ${within}, ${limit(callsPerWindow)} (summaryMaxCallsPerWindow)`],
    ...guards.map((guard): [string, string] => ["Paused", paintPaused(describeGuard(guard, timezone))]),
  ];
}

/** Why models are not called right now. */
export function describeGuard({ name, openUntil, reason }: Guard, timezone: string): string {
  return `${toOneLine(name)} until ${formatTime(openUntil, timezone)}: ${toOneLine(reason)}`;
}

/** `lcm spend`: shows model usage, from the ledger of all calls, and the remaining caps. */
import { Option } from "commander";
import type { Command } from "commander";
import { toAction } from "../../invocation.ts";
import type { Invocation } from "../../invocation.ts";
import {
  countOf,
  describeCaps,
  formatCount,
  formatShare,
  formatTime,
  GROUPINGS,
  parseTime,
  readLedger,
  toIso,
  toOneLine,
  usageError,
} from "@lossless/core/doors";
import type { Grouping, Ledger } from "@lossless/core/doors";
import { terminalColumns } from "../../output.ts";
import { style } from "../../style.ts";
import { renderPairs, renderTable } from "../../table.ts";
import { addExamples } from "../shared.ts";
import { toGuardJson } from "../archive/status.ts";

interface SpendOptions {
  readonly since: string;
  readonly by: Grouping;
}

export function defineSpend(program: Command): void {
  const command = program
    .command("spend")
    .description("Show model usage and remaining caps")
    .option("--since <when>", "7d, 12h, yesterday, or a date such as 2026-02-01", "30d")
    .addOption(new Option("--by <what>", "what to add up by").choices([...GROUPINGS]).default("day"))
    .action(toAction(runSpend));
  addExamples(command, [
    ["lcm spend", "the last 30 days, day by day"],
    ["lcm spend --since 2026-02-01 --by model", "which model took how much"],
  ]);
}

async function runSpend(invocation: Invocation, options: SpendOptions): Promise<void> {
  if (invocation.owner !== undefined) {
    throw usageError("cannot show what one owner has spent: the ledger is kept for the whole archive");
  }
  const { settings } = await invocation.settings();
  const now = Date.now();
  const since = parseSince(options.since, now, settings.timezone);
  const ledger = await invocation.withArchive("read", (engine) =>
    readLedger(engine, settings, { since, now, by: options.by }),
  );
  await invocation.print({
    data: {
      by: options.by,
      since: toIso(since),
      items: ledger.groups,
      total: ledger.total,
      caps: ledger.caps,
      guards: ledger.guards.map(toGuardJson),
    },
    text: () => renderLedger(ledger, options, since, settings.timezone),
  });
}

/** A relative time, or the start of a day in the time zone. */
export function parseSince(text: string, now: number, timezone: string): number {
  return parseTime(text, { now, timezone, option: "--since" });
}

function renderLedger(ledger: Ledger, { by }: SpendOptions, since: number, timezone: string): string {
  const from = `since ${formatTime(since, timezone)}`;
  const head =
    ledger.groups.length === 0
      ? `No model was called ${from}.`
      : `${renderGroups(ledger, by)}\n\n${style.faint(`${countOf(ledger.total.calls, "call")} ${from}`)}`;
  return `${head}\n\n${renderPairs(describeCaps(ledger, timezone, style.warning), style.faint)}`;
}

function renderGroups({ groups, total }: Ledger, by: string): string {
  const toRow = (name: string, { calls, inputTokens, outputTokens }: Ledger["total"]): string[] => [
    toOneLine(name),
    formatCount(calls),
    formatCount(inputTokens),
    formatCount(outputTokens),
    formatShare(inputTokens + outputTokens, total.inputTokens + total.outputTokens),
  ];
  return renderTable(
    [
      { title: by.toUpperCase(), flexible: true, style: style.name },
      { title: "CALLS", align: "right" },
      { title: "TOKENS IN", align: "right" },
      { title: "OUT", align: "right" },
      { title: "SHARE", align: "right", style: style.faint },
    ],
    [
      ...groups.map((group) => toRow(group.key, group)),
      ...(groups.length > 1 ? [toRow("total", total)] : []),
    ],
    { maxWidth: terminalColumns(), styleTitle: style.faint },
  );
}

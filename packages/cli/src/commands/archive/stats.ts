/** `lcm stats` and `lcm metrics`: the agents' activity, from their transcripts, and the cost of our own summaries. */
import { Option } from "commander";
import type { Command } from "commander";
import type { SpendGroup, StatsGroup, StatsGrouping, StatsResult } from "@lossless/core";
import {
  formatCount,
  formatShare,
  makePrintable,
  nameProject,
  readPrices,
  STATS_GROUPINGS,
  sumCost,
  toIso,
  toOneLine,
} from "@lossless/core/doors";
import type { Cost } from "@lossless/core/doors";
import { runCancellable, toAction } from "../../invocation.ts";
import type { Invocation } from "../../invocation.ts";
import { terminalColumns } from "../../output.ts";
import { style } from "../../style.ts";
import { renderTable } from "../../table.ts";
import { addExamples, addOriginOptions, readOrigin, readTimeOption } from "../shared.ts";
import type { OriginChoice } from "../shared.ts";

interface StatsOptions extends OriginChoice {
  readonly by: StatsGrouping;
  readonly model?: string;
  readonly since?: string;
  readonly before?: string;
  readonly prices?: string;
}

export function defineStats(program: Command): void {
  const command = program
    .command("stats")
    .description("Show what your agents did: tokens, cache hits, tools, errors and hours")
    .addOption(new Option("--by <what>", "what to add up by").choices([...STATS_GROUPINGS]).default("day"))
    .option("--model <name>", "only this model")
    .option("--since <when>", "7d, 12h, yesterday, or a date such as 2026-02-01")
    .option("--before <when>", "before then")
    .option("--prices <file>", "prices of models, to show what the tokens cost; see docs/figures.md");
  addOriginOptions(command).action(toAction(runStats));
  addExamples(command, [
    ["lcm stats", "day by day"],
    ["lcm stats --by tool --since 7d", "which tools were called, and which failed"],
    ["lcm stats --by model --prices prices.json", "what each model cost"],
  ]);
  const metrics = program
    .command("metrics")
    .description("Print the figures of the archive and the agents as OpenMetrics")
    .action(toAction(runMetrics));
  addExamples(metrics, [["lcm metrics > lcm.prom", "for a collector of text files"]]);
}

async function runStats(invocation: Invocation, options: StatsOptions): Promise<void> {
  const { by, model } = options;
  const prices = options.prices === undefined ? null : await readPrices(options.prices);
  const origin = await readOrigin(options);
  const since = await readTimeOption(invocation, "--since", options.since);
  const before = await readTimeOption(invocation, "--before", options.before);
  const { result, own, ownModels } = await runCancellable(
    (signal) =>
      invocation.withArchive("read", async (engine) => ({
        result: await engine.stats({ ...invocation.scope, ...origin, by, model, since, before, signal }),
        own: (await engine.spend({ since: since ?? 0, by: "all" }))[0] ?? null,
        ownModels: prices === null ? [] : await engine.spend({ since: since ?? 0, by: "model" }),
      })),
    { isPatient: false, what: "counting" },
  );
  const cost = prices === null ? null : sumCost(result.models, prices);
  const ownCost = prices === null ? null : sumCost(ownModels, prices);
  await invocation.print({
    data: {
      by,
      since: since === undefined ? null : toIso(since),
      items: result.groups,
      total: result.total,
      models: result.models,
      cost,
      ownSummaries: own,
      ownCost,
    },
    text: () => renderStats(result, own, cost, ownCost),
  });
}

const HOUR_MS = 3_600_000;

function renderStats(
  result: StatsResult,
  own: SpendGroup | null,
  cost: Cost | null,
  ownCost: Cost | null,
): string {
  const { by, groups, total } = result;
  if (groups.length === 0) return "No transcripts in this selection.";
  const isTool = by === "tool";
  const nameOf = ({ key }: StatsGroup): string =>
    key === null ? "unknown" : toOneLine(by === "project" ? nameProject(key) : key);
  const row = (name: string, group: StatsGroup): string[] => [
    name,
    ...(isTool
      ? []
      : [
          formatCount(group.requests),
          formatCount(group.inputTokens + group.cacheReadTokens + group.cacheWriteTokens),
          formatCount(group.outputTokens),
          formatCached(group),
        ]),
    formatCount(group.toolCalls),
    formatCount(group.errors),
    ...(isTool ? [] : [(group.activeMs / HOUR_MS).toFixed(1)]),
    formatCount(group.conversations),
  ];
  const numbers = isTool ? [] : ["REQUESTS", "TOKENS IN", "TOKENS OUT", "CACHED"];
  const titles = [...numbers, "CALLS", "ERRORS", ...(isTool ? [] : ["HOURS"]), "CONV."];
  const table = renderTable(
    [
      { title: by.toUpperCase(), flexible: true },
      ...titles.map((title) => ({ title, align: "right" as const })),
    ],
    [...groups.map((group) => row(nameOf(group), group)), row("total", total)],
    { maxWidth: terminalColumns(), styleTitle: style.faint },
  );
  return [table, ...renderCost(cost), describeOwn(own, ownCost)].join("\n\n");
}

/** Share of the prompt tokens served from a cache. */
function formatCached({ inputTokens, cacheReadTokens, cacheWriteTokens }: StatsGroup): string {
  const all = inputTokens + cacheReadTokens + cacheWriteTokens;
  return all === 0 ? "–" : formatShare(cacheReadTokens, all);
}

function renderCost(cost: Cost | null): string[] {
  if (cost === null) return [];
  const by = cost.sources.length === 0 ? "" : `, by ${cost.sources.map(toOneLine).join("; ")}`;
  return [`Cost: ${describeTotal(cost)}${by}.${nameUnpriced(cost)}`];
}

function describeOwn(own: SpendGroup | null, cost: Cost | null): string {
  if (own === null) return style.faint("Our own summaries took no model call.");
  const tokens = `${formatCount(own.inputTokens)} tokens in and ${formatCount(own.outputTokens)} out`;
  const price = cost === null ? "" : `, ${describeTotal(cost)}`;
  return style.faint(
    `Our own summaries took ${formatCount(own.calls)} calls, ${tokens}${price} (lcm spend).${nameUnpriced(cost)}`,
  );
}

const describeTotal = ({ total, currency }: Cost): string => `${total.toFixed(2)} ${toOneLine(currency)}`;

const nameUnpriced = (cost: Cost | null): string =>
  cost === null || cost.unpriced.length === 0
    ? ""
    : ` No price for: ${cost.unpriced.map(toOneLine).join(", ")}.`;

async function runMetrics(invocation: Invocation): Promise<void> {
  const { status, models, spend } = await invocation.withArchive("read", async (engine) => ({
    status: await engine.status(invocation.scope),
    models: (await engine.stats({ ...invocation.scope, by: "model" })).groups,
    spend: await engine.spend({ by: "purpose" }),
  }));
  const gauges = {
    lcm_messages: status.messages,
    lcm_conversations: status.conversations,
    lcm_summaries: status.summaries,
    lcm_database_bytes: status.databaseBytes,
    lcm_files_bytes: status.filesBytes,
    lcm_shown_tokens: status.tokens,
    lcm_index_pending: status.index.kind === "ready" ? status.index.pending : 0,
  };
  const agents = addByLabel(models).flatMap(([label, group]) => {
    const tokens = (kind: string, value: number): string =>
      `lcm_agent_tokens{model="${label}",kind="${kind}"} ${value}`;
    return [
      tokens("input", group.inputTokens),
      tokens("output", group.outputTokens),
      tokens("cache_read", group.cacheReadTokens),
      tokens("cache_write", group.cacheWriteTokens),
    ];
  });
  const own = spend.flatMap(({ key, inputTokens, outputTokens }) => [
    `lcm_own_tokens{purpose="${escapeLabel(String(key))}",kind="input"} ${inputTokens}`,
    `lcm_own_tokens{purpose="${escapeLabel(String(key))}",kind="output"} ${outputTokens}`,
  ]);
  const text = [
    ...Object.entries(gauges).flatMap(([name, value]) => [`# TYPE ${name} gauge`, `${name} ${value}`]),
    "# TYPE lcm_agent_tokens gauge",
    ...agents,
    "# TYPE lcm_own_tokens gauge",
    ...own,
    "# EOF",
    "",
  ].join("\n");
  await invocation.print({ data: { text }, text: () => text });
}

type TokenCounts = Pick<StatsGroup, "inputTokens" | "outputTokens" | "cacheReadTokens" | "cacheWriteTokens">;

/** A series may occur only once: models with the same or no name are added up. */
function addByLabel(groups: readonly StatsGroup[]): [label: string, sum: TokenCounts][] {
  const sums = new Map<string, TokenCounts>();
  for (const group of groups) {
    const label = escapeLabel(group.key ?? "unknown");
    const known = sums.get(label);
    sums.set(label, {
      inputTokens: (known?.inputTokens ?? 0) + group.inputTokens,
      outputTokens: (known?.outputTokens ?? 0) + group.outputTokens,
      cacheReadTokens: (known?.cacheReadTokens ?? 0) + group.cacheReadTokens,
      cacheWriteTokens: (known?.cacheWriteTokens ?? 0) + group.cacheWriteTokens,
    });
  }
  return [...sums];
}

const escapeLabel = (text: string): string =>
  makePrintable(text).replaceAll("\\", "\\\\").replaceAll('"', '\\"').replaceAll("\n", "\\n");

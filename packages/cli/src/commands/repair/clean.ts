/** `lcm clean`: shows ended conversations of sub-agents and scheduled jobs; with `--apply` they are forgotten. */
import { InvalidArgumentError } from "commander";
import type { Command } from "commander";
import type { Cleanable, CleanKind, Receipt } from "@lossless/core/repair";
import { toAction } from "../../invocation.ts";
import type { Invocation } from "../../invocation.ts";
import { countOf, formatBytes, formatCount, formatTime, toOneLine } from "@lossless/core/doors";
import { terminalColumns } from "../../output.ts";
import { style } from "../../style.ts";
import { renderTable } from "../../table.ts";
import { addExamples, toConversationJson } from "../shared.ts";

interface CleanOptions {
  readonly subagents?: boolean;
  readonly cron?: boolean;
  readonly olderThan: number;
  readonly apply?: boolean;
}

const DAY_MS = 86_400_000;

export function defineClean(program: Command): void {
  const command = program
    .command("clean")
    .description("Find ended conversations of sub-agents and scheduled jobs, and remove them on request")
    .option("--subagents", "only those of sub-agents")
    .option("--cron", "only those of scheduled jobs")
    .option("--older-than <days>", "whose last message is at least this many days old", parseDays, 7)
    .option("--apply", "forget them; without this, dry run")
    .action(toAction(runClean));
  addExamples(command, [
    ["lcm clean", "list candidates"],
    ["lcm clean --cron --older-than 30 --apply", "forget runs of jobs older than a month"],
  ]);
  command.addHelpText(
    "after",
    `
Nothing is ever removed by itself. With --apply everything in these conversations is forgotten, as lcm forget does it,
with a receipt. Files that no message names are found and removed by lcm doctor --fix.`,
  );
}

function parseDays(text: string): number {
  const days = Number(text.replace(/d$/, ""));
  if (Number.isFinite(days) && days >= 0 && text.trim() !== "") return days;
  throw new InvalidArgumentError("It must be a number of days.");
}

async function runClean(invocation: Invocation, options: CleanOptions): Promise<void> {
  const { listCleanable } = await import("@lossless/core/repair");
  const { applyForget } = await import("lossless-claw/repair");
  const { settings } = await invocation.settings();
  const before = Date.now() - options.olderThan * DAY_MS;
  const { found, done } = await invocation.withArchive(
    options.apply === true ? "change" : "read",
    async (engine) => {
      const rows = await listCleanable({ engine, kinds: chooseKinds(options), before, ...invocation.scope });
      if (options.apply !== true || rows.length === 0) return { found: rows, done: null };
      const selection = { ...invocation.scope, conversationIds: rows.map((row) => row.conversationId) };
      const request = { engine, databasePath: settings.databasePath, selection };
      return { found: rows, done: await applyForget({ ...request, reason: "cleaned by the operator" }) };
    },
    { thread: true },
  );
  await invocation.print({
    data: {
      applied: done !== null,
      items: found.map((row) => ({ ...toConversationJson(row), kind: row.kind })),
      ...done,
    },
    text: () => renderFound(found, done?.receipt ?? null, settings.timezone),
  });
}

function chooseKinds({ subagents, cron }: CleanOptions): CleanKind[] {
  if (subagents !== true && cron !== true) return ["subagent", "cron"];
  return [
    ...(subagents === true ? (["subagent"] as const) : []),
    ...(cron === true ? (["cron"] as const) : []),
  ];
}

function renderFound(rows: readonly Cleanable[], receipt: Receipt | null, timezone: string): string {
  if (rows.length === 0) return `${style.good("ok")}  nothing to clean`;
  const table = renderTable(
    [
      { title: "TITLE", flexible: true },
      { title: "KIND" },
      { title: "MESSAGES", align: "right" },
      { title: "SIZE", align: "right" },
      { title: "LAST MESSAGE" },
      { title: "ID", align: "right", style: style.name },
    ],
    rows.map((row) => [
      toOneLine(row.heading),
      row.kind,
      formatCount(row.messages),
      formatBytes(row.arrivalBytes),
      formatTime(row.lastAt, timezone),
      String(row.conversationId),
    ]),
    { maxWidth: terminalColumns(), styleTitle: style.faint },
  );
  const end =
    receipt === null
      ? `${countOf(rows.length, "conversation")}. Nothing was done. Add --apply to forget them.`
      : `${style.good("ok")}  ${countOf(receipt.messages.length, "message")} forgotten`;
  return `${table}\n\n${end}`;
}

/** `lcm status`: what is stored, how large it is, and whether anything needs attention. */
import type { Command } from "commander";
import type { StatusReport } from "@lossless/core/engine.ts";
import { toAction } from "../context.ts";
import type { Invocation } from "../context.ts";
import { countOf, formatBytes, formatCount, formatTime, toIso } from "../format.ts";
import { style } from "../style.ts";
import { renderPairs } from "../table.ts";
import { addExamples } from "./shared.ts";

export function defineStatus(program: Command): void {
  const command = program
    .command("status")
    .description("what is stored, how large it is, and whether anything needs attention")
    .action(toAction(runStatus));
  addExamples(command, [
    ["lcm status", "the archive of your settings"],
    ["lcm status --db team.db", "another archive"],
    ["lcm status --owner main --json", "one agent's share, for a program"],
  ]);
}

async function runStatus(invocation: Invocation): Promise<void> {
  const status = await invocation.withArchive("read", (engine) => engine.status(invocation.scope));
  const timezone = await invocation.timezone();
  await invocation.print({ data: toStatusJson(status), text: () => renderStatus(status, timezone) });
}

function toStatusJson({ conversation: _conversation, ...status }: StatusReport): object {
  return { ...status, lastStoredAt: toIso(status.lastStoredAt), lastMessageAt: toIso(status.lastMessageAt) };
}

function renderStatus(status: StatusReport, timezone: string): string {
  const pairs: [string, string][] = [
    [
      "Database",
      `${status.databasePath} (${formatBytes(status.databaseBytes)}, schema ${status.schemaVersion})`,
    ],
    [
      "Conversations",
      `${formatCount(status.conversations)} (${formatCount(status.activeConversations)} active)`,
    ],
    ["Messages", `${formatCount(status.messages)}${describeRevisions(status)}`],
    ["Hidden", describeHidden(status.hidden)],
    ["Summaries", formatCount(status.summaries)],
    ["Tokens shown", formatCount(status.tokens)],
    ["Original size", formatBytes(status.arrivalBytes)],
    [
      "Large files",
      status.largeFiles === 0
        ? "none"
        : `${formatCount(status.largeFiles)} (${formatBytes(status.filesBytes)})`,
    ],
    ["Last message", formatTime(status.lastMessageAt, timezone)],
    ["Last stored", formatTime(status.lastStoredAt, timezone)],
    ["Search index", describeIndex(status)],
  ];
  if (!status.enabled) pairs.unshift(["Storing", style.warning("switched off (enabled: false)")]);
  return renderPairs(pairs, style.faint);
}

const describeRevisions = ({ revisions }: StatusReport): string =>
  revisions === 0 ? "" : ` (${countOf(revisions, "revision")} among them)`;

export function describeHidden(hidden: StatusReport["hidden"]): string {
  const reasons = Object.entries(hidden).filter(([, count]) => count > 0);
  return reasons.length === 0
    ? "none"
    : reasons.map(([reason, count]) => `${formatCount(count)} ${reason}`).join(", ");
}

function describeIndex({ index }: StatusReport): string {
  if (index.kind === "ready") return style.good("ready");
  return style.warning(`degraded: ${index.reason}; run lcm reindex`);
}

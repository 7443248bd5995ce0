/** `lcm conversations list|show`: which conversations there are. */
import type { Command } from "commander";
import { must } from "@lossless/core";
import type { ConversationRow, MessageCounts } from "@lossless/core";
import { toAction } from "../../invocation.ts";
import type { Invocation } from "../../invocation.ts";
import { formatBytes, formatCount, formatTime, toOneLine } from "@lossless/core/doors";
import { terminalColumns } from "../../output.ts";
import { style } from "../../style.ts";
import { renderPairs, renderTable } from "../../table.ts";
import {
  addExamples,
  addOriginOptions,
  parseConversationId,
  parseLimit,
  readOrigin,
  requireConversation,
  toConversationJson,
} from "../shared.ts";
import type { OriginChoice } from "../shared.ts";
import { describeCounts } from "./status.ts";

interface ListOptions extends OriginChoice {
  readonly limit: number;
  readonly after?: string;
  readonly session?: string;
}

export function defineConversations(program: Command): void {
  const group = program.command("conversations").description("List and show conversations");
  const list = group
    .command("list")
    .description("List conversations, newest first")
    .option("--session <key>", "only those of this session key")
    .option("--limit <n>", "maximum number of rows", parseLimit, 50)
    .option("--after <cursor>", "continue after a page");
  addOriginOptions(list).action(toAction(runList));
  addExamples(list, [
    ["lcm conversations list", "the newest 50"],
    ["lcm conversations list --session agent:main:main", "all segments of one session"],
  ]);
  const show = group
    .command("show")
    .description("Show one conversation: session, size and times")
    .argument("<id>", "number of the conversation", parseConversationId)
    .action(toAction(runShow));
  addExamples(show, [["lcm conversations show 1", "everything about conversation 1"]]);
}

async function runList(invocation: Invocation, options: ListOptions): Promise<void> {
  const { limit, after = null, session } = options;
  const origin = await readOrigin(options);
  const page = await invocation.withArchive("read", (engine) =>
    engine.listConversations({
      ...invocation.scope,
      ...origin,
      limit,
      after,
      sessionKey: session,
    }),
  );
  const timezone = await invocation.timezone();
  await invocation.print({
    data: { items: page.items.map(toConversationJson) },
    pagination: { next: page.next, limit },
    text: () => renderList(page.items, page.next, timezone),
  });
}

async function runShow(invocation: Invocation, _options: object, id: number): Promise<void> {
  const { row, counts } = await invocation.withArchive("read", async (engine) => {
    const found = await requireConversation(engine, invocation, id);
    const [counted] = await engine.countMessages({ ...invocation.scope, conversationIds: [id] });
    return { row: found, counts: must(counted, `the counts of conversation ${id}`) };
  });
  const timezone = await invocation.timezone();
  await invocation.print({
    data: { ...toConversationJson(row), counts },
    text: () => renderConversation(row, counts, timezone),
  });
}

function renderList(rows: readonly ConversationRow[], next: string | null, timezone: string): string {
  if (rows.length === 0) return "No conversations.";
  const table = renderTable(
    [
      { title: "ID", align: "right", style: style.name },
      { title: "SESSION", flexible: true },
      { title: "OWNER" },
      { title: "MESSAGES", align: "right" },
      { title: "TOKENS", align: "right" },
      { title: "LAST MESSAGE" },
      { title: "STATE" },
    ],
    rows.map((row) => [
      String(row.conversationId),
      toOneLine(row.sessionKey),
      toOneLine(row.owner),
      formatCount(row.messages),
      formatCount(row.shownTokens),
      formatTime(row.lastAt, timezone),
      describeState(row),
    ]),
    { maxWidth: terminalColumns(), styleTitle: style.faint },
  );
  return next === null ? table : `${table}\n\n${style.faint(`More: --after ${next}`)}`;
}

const ORIGIN_NAMES = [
  ["Agent", "agent"],
  ["Project", "project"],
  ["Branch", "branch"],
  ["Title", "title"],
  ["Model", "model"],
] as const;

function renderConversation(row: ConversationRow, counts: MessageCounts, timezone: string): string {
  return renderPairs(
    [
      ["Conversation", style.name(String(row.conversationId))],
      ["Session key", toOneLine(row.sessionKey)],
      ["Session id", toOneLine(row.sessionId)],
      ["Owner", toOneLine(row.owner)],
      ...ORIGIN_NAMES.flatMap(([name, field]): [string, string][] => {
        const value = row[field];
        return value === null ? [] : [[name, toOneLine(value)]];
      }),
      ["State", describeState(row)],
      ["Messages", describeCounts(counts)],
      ["Tokens shown", formatCount(row.shownTokens)],
      ["Summaries", formatCount(row.summaries)],
      ["Original size", formatBytes(row.arrivalBytes)],
      ["First message", formatTime(row.firstAt, timezone)],
      ["Last message", formatTime(row.lastAt, timezone)],
      ["Created", formatTime(row.createdAt, timezone)],
    ],
    style.faint,
  );
}

function describeState(row: ConversationRow): string {
  if (row.archivedAt === null) return "active";
  return row.archiveCause === null ? "archived" : `archived (${toOneLine(row.archiveCause)})`;
}

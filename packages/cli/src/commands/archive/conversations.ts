/** `lcm conversations list|show`: lists conversations. */
import { Option } from "commander";
import type { Command } from "commander";
import { must } from "@lossless/core";
import type { ConversationOrder, HeadedConversation, MessageCounts } from "@lossless/core";
import { toAction } from "../../invocation.ts";
import type { Invocation } from "../../invocation.ts";
import { formatBytes, formatCount, formatTime, nameProject, toOneLine } from "@lossless/core/doors";
import { terminalColumns } from "../../output.ts";
import { style } from "../../style.ts";
import { renderPairs, renderTable } from "../../table.ts";
import type { Column } from "../../table.ts";
import {
  addExamples,
  addOriginOptions,
  parseConversationId,
  parseLimit,
  readOrigin,
  readTimeOption,
  requireConversation,
  toConversationJson,
} from "../shared.ts";
import type { OriginChoice } from "../shared.ts";
import { describeCounts } from "./status.ts";

interface ListOptions extends OriginChoice {
  readonly limit: number;
  readonly after?: string;
  readonly session?: string;
  readonly model?: string;
  readonly tag?: string;
  readonly since?: string;
  readonly before?: string;
  readonly sort: ConversationOrder;
  readonly hidden?: boolean;
}

const SORTS: readonly ConversationOrder[] = ["newest", "oldest", "project", "agent", "model"];

export function defineConversations(program: Command): void {
  const group = program.command("conversations").description("List and show conversations");
  const list = group
    .command("list")
    .description("List conversations with their titles, newest first")
    .option("--session <key>", "only those of this session key")
    .option("--model <name>", "only those with this model")
    .option("--tag <tag>", "only those with this tag")
    .option("--since <when>", "last message then or later: yesterday, 7d, monday, 2026-02-01")
    .option("--before <when>", "last message before then")
    .addOption(new Option("--sort <order>", "order").choices([...SORTS]).default("newest"))
    .option("--hidden", "also those that lcm hide hid")
    .option("-n, --limit <n>", "maximum number of rows", parseLimit, 50)
    .option("--after <cursor>", "continue after a page");
  addOriginOptions(list).action(toAction(runList));
  addExamples(list, [
    ["lcm conversations list", "the newest 50"],
    ["lcm conversations list --project . --since 7d", "this repository, the last week"],
    ["lcm conversations list --session agent:main:main", "all segments of one session"],
  ]);
  const show = group
    .command("show")
    .description("Show one conversation: title, origin, size and times")
    .argument("<id>", "number of the conversation", parseConversationId)
    .action(toAction(runShow));
  addExamples(show, [["lcm conversations show 1", "everything about conversation 1"]]);
}

async function runList(invocation: Invocation, options: ListOptions): Promise<void> {
  const { limit, after = null, session, model, tag, sort, hidden = false } = options;
  const origin = await readOrigin(options);
  const since = await readTimeOption(invocation, "--since", options.since);
  const before = await readTimeOption(invocation, "--before", options.before);
  const page = await invocation.withArchive("read", (engine) =>
    engine.listConversations({
      ...invocation.scope,
      ...origin,
      limit,
      after,
      sessionKey: session,
      model,
      tag: tag?.toLowerCase(),
      since,
      before,
      order: sort,
      unlisted: hidden,
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

type ListColumn = Column & { readonly cell: (row: HeadedConversation) => string };

function renderList(rows: readonly HeadedConversation[], next: string | null, timezone: string): string {
  if (rows.length === 0) return "No conversations.";
  const columns = listColumns(timezone).filter(({ title, cell }) => tellsSomething(title, rows.map(cell)));
  const table = renderTable(
    columns,
    rows.map((row) => columns.map(({ cell }) => cell(row))),
    { maxWidth: terminalColumns(), styleTitle: style.faint },
  );
  return next === null ? table : `${table}\n\n${style.faint(`More: --after ${next}`)}`;
}

/** The columns people look for come first, ids last. */
const listColumns = (timezone: string): ListColumn[] => [
  {
    title: "TITLE",
    flexible: true,
    cell: (row) => `${row.pinnedAt === null ? "" : "* "}${toOneLine(row.heading)}`,
  },
  { title: "PROJECT", dropped: 2, cell: ({ project }) => nameProject(project) },
  { title: "AGENT", dropped: 3, cell: ({ agent }) => toOneLine(agent ?? "") },
  { title: "BRANCH", dropped: 5, cell: ({ branch }) => toOneLine(branch ?? "") },
  { title: "TAGS", dropped: 4, cell: ({ tags }) => toOneLine(tags.join(" ")) },
  { title: "OWNER", dropped: 1, cell: ({ owner }) => toOneLine(owner) },
  { title: "STATE", dropped: 6, cell: describeState },
  { title: "MESSAGES", align: "right", dropped: 8, cell: (row) => formatCount(row.messages) },
  { title: "TOKENS", align: "right", dropped: 9, cell: (row) => formatCount(row.shownTokens) },
  { title: "FIRST", dropped: 10, cell: (row) => formatTime(row.firstAt, timezone) },
  { title: "LAST", cell: (row) => formatTime(row.lastAt, timezone) },
  {
    title: "ID",
    align: "right",
    style: style.name,
    cell: (row) => String(row.conversationId),
  },
];

/** These columns are shown only if rows differ in them, the others if they are not empty. */
const ONLY_DIFFERENT: ReadonlySet<string> = new Set(["OWNER", "STATE"]);

function tellsSomething(title: string, cells: readonly string[]): boolean {
  const different = new Set(cells);
  return ONLY_DIFFERENT.has(title) ? different.size > 1 : different.size > 1 || cells[0] !== "";
}

const ORIGIN_NAMES = [
  ["Agent", "agent"],
  ["Project", "project"],
  ["Branch", "branch"],
  ["Agent's title", "title"],
  ["Model", "model"],
] as const;

function renderConversation(row: HeadedConversation, counts: MessageCounts, timezone: string): string {
  return renderPairs(
    [
      ["Conversation", `${style.title(toOneLine(row.heading))} ${style.name(String(row.conversationId))}`],
      ["Session key", toOneLine(row.sessionKey)],
      ["Session id", toOneLine(row.sessionId)],
      ["Owner", toOneLine(row.owner)],
      ...ORIGIN_NAMES.flatMap(([name, field]): [string, string][] => {
        const value = row[field];
        return value === null ? [] : [[name, toOneLine(value)]];
      }),
      ...(row.tags.length === 0 ? [] : [["Tags", toOneLine(row.tags.join(", "))] as const]),
      ...(row.pinnedAt === null ? [] : [["Pinned", formatTime(row.pinnedAt, timezone)] as const]),
      ...(row.unlistedAt === null
        ? []
        : [["Hidden from lists", formatTime(row.unlistedAt, timezone)] as const]),
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

function describeState(row: HeadedConversation): string {
  if (row.archivedAt === null) return "active";
  return row.archiveCause === null ? "archived" : `archived (${toOneLine(row.archiveCause)})`;
}

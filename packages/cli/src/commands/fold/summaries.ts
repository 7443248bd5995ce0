/** `lcm summaries list|show|tree`: the summary graph of a conversation. */
import { Argument, Option } from "commander";
import type { Command } from "commander";
import { EngineError, formatMessageId } from "@lossless/core";
import type { Engine, SummaryNode, SummaryRow, SummaryState } from "@lossless/core";
import { toAction } from "../../invocation.ts";
import type { Invocation } from "../../invocation.ts";
import {
  countOf,
  drawTree,
  formatCount,
  formatShare,
  formatSpan,
  formatTime,
  readGraph,
  toIso,
  toOneLine,
} from "@lossless/core/doors";
import { renderStored, terminalColumns } from "../../output.ts";
import { style } from "../../style.ts";
import { renderPairs, renderTable } from "../../table.ts";
import type { Column } from "../../table.ts";
import {
  addConversationOptions,
  addExamples,
  chooseConversation,
  parseLimit,
  parseSummaryName,
} from "../shared.ts";
import type { ConversationChoice } from "../shared.ts";

interface ListOptions extends ConversationChoice {
  readonly limit: number;
  readonly after?: string;
  readonly state?: SummaryState;
}

const STATES: readonly SummaryState[] = ["cover", "reserve", "prepared", "retired"];

export function defineSummaries(program: Command): void {
  const group = program.command("summaries").description("List and show summaries");
  const list = addConversationOptions(group.command("list"))
    .description("List summaries in the order of their messages")
    .addOption(new Option("--state <state>", "only those in this state").choices([...STATES]))
    .option("--limit <n>", "maximum number of rows", parseLimit, 50)
    .option("--after <cursor>", "continue after a page")
    .action(toAction(runList));
  addExamples(list, [
    ["lcm summaries list --conversation 1", "the first page"],
    ["lcm summaries list --session agent:main:main --state reserve", "stand-ins for tighter budgets"],
  ]);
  list.addHelpText("after", STATES_HELP);
  const show = group
    .command("show")
    .description("Show one summary: text, sources and what was made from it")
    .argument("<id>", "the summary, such as sum_0123456789abcdef", parseSummaryName)
    .action(toAction(runShow));
  addExamples(show, [["lcm summaries show sum_0123456789abcdef", "everything about one summary"]]);
  const tree = addConversationOptions(group.command("tree"))
    .description("Show the graph: every summary above its sources")
    .option("--all", "include replaced ones")
    .addArgument(new Argument("[id]", "only what this summary was made from").argParser(parseSummaryName))
    .action(toAction(runTree));
  addExamples(tree, [
    ["lcm summaries tree --conversation 1", "the whole graph"],
    ["lcm summaries tree sum_0123456789abcdef", "the part below one summary"],
  ]);
  tree.addHelpText(
    "after",
    `${STATES_HELP}\nEach summary is drawn once: ↑2 after a name says that two of its sources are drawn above.`,
  );
}

const STATES_HELP = `
FOR is the number of messages it covers. States: cover (part of the folded conversation), reserve (a stand-in for
smaller budgets), prepared (made ahead, not in use yet), retired (replaced). It can also be stale (what it covers
has changed since), extractive (written without a model), root (stood for everything folded when it was made).`;

async function runList(invocation: Invocation, options: ListOptions): Promise<void> {
  const { limit, after = null, state } = options;
  const page = await invocation.withArchive("read", async (engine) => {
    const { conversationId } = await chooseConversation(engine, invocation, options);
    return engine.listSummaries({
      ...invocation.scope,
      conversationId,
      limit,
      after,
      state,
    });
  });
  const timezone = await invocation.timezone();
  await invocation.print({
    data: { items: page.items.map(toSummaryJson) },
    pagination: { next: page.next, limit },
    text: () => renderList(page.items, page.next, timezone),
  });
}

function renderList(rows: readonly SummaryRow[], next: string | null, timezone: string): string {
  if (rows.length === 0) return "No summaries.";
  const table = renderTable(
    [{ title: "ID", style: style.name }, ...FACT_COLUMNS],
    rows.map((row) => [row.summaryId, ...describeFacts(row, timezone)]),
    { maxWidth: terminalColumns(), styleTitle: style.faint },
  );
  return next === null ? table : `${table}\n\n${style.faint(`More: --after ${next}`)}`;
}

/** The columns after the name in every table of summaries; short enough for a tree on a small terminal. */
const FACT_COLUMNS: readonly Column[] = [
  { title: "DEPTH", align: "right" },
  { title: "FOR", align: "right" },
  { title: "TOKENS", align: "right" },
  { title: "TIME", style: style.faint },
  { title: "STATE", flexible: true, style: style.warning },
];

function describeFacts(row: SummaryRow, timezone: string): string[] {
  return [
    String(row.depth),
    formatCount(row.messages),
    formatCount(row.tokens),
    formatSpan(row.earliestAt, row.latestAt, timezone),
    [row.state, ...listMarks(row)].join(", "),
  ];
}

const listMarks = ({ isStale, level, isRoot }: SummaryRow): string[] => [
  ...(isStale ? ["stale"] : []),
  ...(level === "extractive" ? ["extractive"] : []),
  ...(isRoot ? ["root"] : []),
];

async function runTree(
  invocation: Invocation,
  options: ConversationChoice & { readonly all?: boolean },
  id: string | undefined,
): Promise<void> {
  const { graph, conversation } = await invocation.withArchive("read", async (engine) => {
    const top = id === undefined ? null : await requireSummary(engine, invocation, id);
    const choice = top === null ? options : { conversation: top.conversationId };
    const chosen = await chooseConversation(engine, invocation, choice);
    return { conversation: chosen, graph: await readGraph(engine, invocation.scope, chosen.conversationId) };
  });
  const lines = drawTree(graph, id ?? null, { withRetired: options.all ?? false });
  const timezone = await invocation.timezone();
  await invocation.print({
    data: {
      conversationId: conversation.conversationId,
      items: lines.map(({ node, level }) => ({ level, ...toNodeJson(node) })),
    },
    text: () => {
      if (lines.length === 0) return "No summaries.";
      return renderTable(
        [{ title: "SUMMARY", style: style.name }, ...FACT_COLUMNS],
        lines.map(({ prefix, node, sourcesAbove }) => [
          `${prefix}${node.summaryId}${sourcesAbove > 0 ? ` ↑${sourcesAbove}` : ""}`,
          ...describeFacts(node, timezone),
        ]),
        { maxWidth: terminalColumns(), styleTitle: style.faint },
      );
    },
  });
}

interface Shown {
  readonly node: SummaryNode;
  readonly sources: readonly SummaryNode[];
  readonly derived: readonly SummaryNode[];
}

async function runShow(invocation: Invocation, _options: object, id: string): Promise<void> {
  const shown = await invocation.withArchive("read", async (engine) => {
    const node = await requireSummary(engine, invocation, id);
    const readAll = async (ids: readonly string[]): Promise<SummaryNode[]> => {
      const nodes: SummaryNode[] = [];
      for (const each of ids) nodes.push(await requireSummary(engine, invocation, each));
      return nodes;
    };
    return { node, sources: await readAll(node.sourceIds), derived: await readAll(node.derivedIds) };
  });
  const timezone = await invocation.timezone();
  await invocation.print({
    data: { ...toNodeJson(shown.node), content: shown.node.content },
    text: () => renderShown(shown, timezone),
  });
}

async function requireSummary(
  engine: Engine,
  { scope }: Invocation,
  summaryId: string,
): Promise<SummaryNode> {
  const node = await engine.readSummary({ ...scope, summaryId });
  if (node !== null) return node;
  throw new EngineError("not_found", `cannot find summary ${summaryId}`, {
    hint: "lcm summaries list shows every summary of a conversation",
  });
}

function renderShown({ node, sources, derived }: Shown, timezone: string): string {
  const marks = listMarks(node);
  const pairs: [string, string][] = [
    ["Summary", style.name(node.summaryId)],
    ["Conversation", String(node.conversationId)],
    ["Kind", `${node.kind}, depth ${node.depth}`],
    ["State", `${node.state}${marks.length === 0 ? "" : ` (${style.warning(marks.join(", "))})`}`],
    ["Covers", describeCoverage(node)],
    ["Time", formatSpan(node.earliestAt, node.latestAt, timezone)],
    [
      "Tokens",
      `${formatCount(node.tokens)} from ${formatCount(node.sourceTokens)} (${formatShare(node.tokens, node.sourceTokens)})`,
    ],
    ["Written", `${formatTime(node.createdAt, timezone)}, ${describeWriter(node)}`],
  ];
  if (node.previousId !== null) pairs.push(["Previous context", style.name(node.previousId)]);
  if (node.fileIds.length > 0) pairs.push(["Large files", node.fileIds.join(", ")]);
  return [
    renderPairs(pairs, style.faint),
    ...renderNeighbours("Made from", sources, timezone),
    ...renderNeighbours("Made into", derived, timezone),
    `${style.faint("Text")}\n${renderStored(node.content)}`,
  ].join("\n\n");
}

function describeWriter({ level, model }: SummaryNode): string {
  if (model === level) return `${level} (no model)`;
  return model === "" ? level : `${level}, by ${toOneLine(model)}`;
}

function describeCoverage({ messages, messageIds }: SummaryNode): string {
  const count = countOf(messages, "message");
  const [first, last] = [messageIds[0], messageIds.at(-1)];
  if (first === undefined || last === undefined) return count;
  const ends =
    first === last ? formatMessageId(first) : `${formatMessageId(first)} to ${formatMessageId(last)}`;
  const unread = messageIds.length - messages;
  return `${count}, ${ends}${unread > 0 ? `; ${formatCount(unread)} hidden ones below it were not summarised` : ""}`;
}

function renderNeighbours(title: string, nodes: readonly SummaryNode[], timezone: string): string[] {
  if (nodes.length === 0) return [];
  const table = renderTable(
    [{ title: "ID", style: style.name }, ...FACT_COLUMNS],
    nodes.map((node) => [node.summaryId, ...describeFacts(node, timezone)]),
    { maxWidth: terminalColumns(), styleTitle: style.faint },
  );
  return [`${style.faint(title)}\n${table}`];
}

function toSummaryJson(row: SummaryRow): object {
  return {
    id: row.summaryId,
    conversationId: row.conversationId,
    kind: row.kind,
    depth: row.depth,
    state: row.state,
    messages: row.messages,
    descendants: row.descendantCount,
    tokens: row.tokens,
    sourceTokens: row.sourceTokens,
    earliestAt: toIso(row.earliestAt),
    latestAt: toIso(row.latestAt),
    model: row.model,
    level: row.level,
    isStale: row.isStale,
    isRoot: row.isRoot,
    createdAt: toIso(row.createdAt),
    previousId: row.previousId,
  };
}

function toNodeJson(node: SummaryNode): object {
  return {
    ...toSummaryJson(node),
    sourceIds: node.sourceIds,
    derivedIds: node.derivedIds,
    messageIds: node.messageIds.map(formatMessageId),
    fileIds: node.fileIds,
  };
}

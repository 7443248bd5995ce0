/** `lcm search`: full text over all messages; the answer says how it was found and how much more there is. */
import type { Command } from "commander";
import { EngineError } from "@lossless/core/model/errors.ts";
import type { SearchAnswer, SearchResultHit } from "@lossless/core/retrieve/search.ts";
import { toAction } from "../context.ts";
import type { Invocation } from "../context.ts";
import { countOf, formatCount, formatTime, makePrintable, toIso } from "../format.ts";
import { terminalColumns } from "../output.ts";
import { style } from "../style.ts";
import { wrapToWidth } from "../width.ts";
import {
  addConversationOptions,
  addExamples,
  findBySession,
  parseLimit,
  parseOffset,
  renderCommandLine,
  requireConversation,
} from "./shared.ts";
import type { ConversationChoice } from "./shared.ts";

interface SearchOptions extends ConversationChoice {
  readonly limit: number;
  readonly offset: number;
  readonly db?: string;
}

export function defineSearch(program: Command): void {
  const command = addConversationOptions(program.command("search"))
    .description("find messages by their words, in any language")
    .argument("<query...>", 'what to look for; "quotes" keep words together')
    .option("--limit <n>", "how many at most", parseLimit, 10)
    .option("--offset <n>", "skip this many", parseOffset, 0)
    .action(toAction(runSearch));
  addExamples(command, [
    ["lcm search why did we choose sqlite", "a question as you would ask it"],
    [`lcm search '"connection refused"' --limit 3`, "a phrase"],
    ["lcm search parseConfigFile --conversation 2", "an identifier, in one conversation"],
  ]);
}

async function runSearch(
  invocation: Invocation,
  options: SearchOptions,
  words: readonly string[],
): Promise<void> {
  const query = words.join(" ");
  const { limit, offset } = options;
  const answer = await invocation.withArchive("read", async (engine) => {
    const ids = await chooseScope(engine, invocation, options);
    return engine.search({
      ...invocation.scope,
      query,
      limit,
      offset,
      ...(ids === null ? {} : { conversationIds: ids }),
    });
  });
  const end = offset + answer.hits.length;
  const next = answer.hits.length > 0 && end < answer.total ? String(end) : null;
  const timezone = await invocation.timezone();
  await invocation.print({
    data: { items: answer.hits.map(toHitJson), rule: answer.rule, total: answer.total },
    pagination: { next, limit, total: answer.total },
    text: () =>
      renderAnswer(answer, {
        query,
        timezone,
        more: next === null ? null : renderMore(query, options, next),
      }),
  });
}

async function chooseScope(
  engine: Parameters<typeof findBySession>[0],
  invocation: Invocation,
  choice: ConversationChoice,
): Promise<number[] | null> {
  if (choice.conversation !== undefined) {
    return [(await requireConversation(engine, invocation, choice.conversation)).conversationId];
  }
  if (choice.session === undefined) return null;
  const segments = await engine.listConversations({
    ...invocation.scope,
    sessionKey: choice.session,
    limit: 200,
  });
  if (segments.items.length > 0) return segments.items.map((row) => row.conversationId);
  const found = await findBySession(engine, invocation, choice.session);
  if (found !== null) return [found.conversationId];
  throw new EngineError("not_found", `cannot search session ${choice.session}: there is no such session`, {
    hint: "lcm conversations list shows every session",
  });
}

function toHitJson(hit: SearchResultHit): object {
  return { ...hit, createdAt: toIso(hit.createdAt) };
}

export interface RenderAnswer {
  readonly query: string;
  readonly timezone: string;
  /** The command that shows the next page. */
  readonly more: string | null;
}

export function renderAnswer(answer: SearchAnswer, { query, timezone, more }: RenderAnswer): string {
  const parts = [
    style.faint(describeRule(answer, query)),
    ...answer.hits.map((hit) => renderHit(hit, timezone)),
  ];
  if (more !== null) parts.push(style.faint(`More: ${more}`));
  return parts.join("\n\n");
}

function describeRule({ rule, total, hits }: SearchAnswer, query: string): string {
  if (rule === "empty") return "There is nothing to look for in this question.";
  if (total === 0) return `Nothing found for ${JSON.stringify(query)}.`;
  const shown =
    hits.length < total
      ? `${formatCount(hits.length)} of ${countOf(total, "message")}`
      : countOf(total, "message");
  return rule === "strict"
    ? `${shown} with every term`
    : `No message has every term; ${shown} with some of them, the best first`;
}

function renderHit(hit: SearchResultHit, timezone: string): string {
  const facts = `${hit.role}, ${formatTime(hit.createdAt, timezone)}, conversation ${hit.conversationId}`;
  const columns = terminalColumns();
  const lines = renderSnippet(hit, columns === null ? null : columns - 2);
  return [`${style.name(hit.id)}  ${style.faint(facts)}`, ...lines.map((line) => `  ${line}`)].join("\n");
}

/** The snippet with its matches marked: broken into lines of so many columns, or one line when there is no limit. */
export function renderSnippet(
  { snippet, ranges }: Pick<SearchResultHit, "snippet" | "ranges">,
  columns: number | null,
): string[] {
  // Both replacements keep every place where it is, so that the ranges stay right.
  const plain = makePrintable(snippet.replaceAll(/\s/gu, " "));
  const lines = columns === null ? [plain] : wrapToWidth(plain, columns);
  let from = 0;
  return lines.map((line) => {
    const at = plain.indexOf(line, from);
    from = at + line.length;
    return markRanges(line, at, ranges);
  });
}

function markRanges(line: string, at: number, ranges: SearchResultHit["ranges"]): string {
  let marked = "";
  let done = 0;
  for (const range of ranges) {
    const start = Math.max(done, range.start - at);
    const end = Math.min(line.length, range.end - at);
    if (start >= end) continue;
    marked += line.slice(done, start) + style.match(line.slice(start, end));
    done = end;
  }
  return marked + line.slice(done);
}

function renderMore(query: string, options: SearchOptions, offset: string): string {
  const { conversation, session, db } = options;
  const words = ["lcm", "search", query, "--offset", offset, "--limit", String(options.limit)];
  if (conversation !== undefined) words.push("--conversation", String(conversation));
  if (session !== undefined) words.push("--session", session);
  if (db !== undefined) words.push("--db", db);
  return renderCommandLine(words);
}

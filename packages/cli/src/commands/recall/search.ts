/**
 * `lcm search`: finds messages, summaries and lines of files by words or by a regular expression. The result says which rule found it, how much
 * there is, and how to see more; an empty result is not an error.
 */
import {
  countOf,
  EXIT_CANCELLED,
  formatCount,
  formatTime,
  makePrintable,
  nameProject,
  parseTime,
  SHELL_WORDS,
  toOneLine,
  usageError,
  wrapToWidth,
} from "@lossless/core/doors";
import { wordNote } from "@lossless/core";
import type {
  Engine,
  FoundConversation,
  GrepHit,
  GrepRequest,
  GrepResult,
  GrepScope,
  GrepSort,
} from "@lossless/core";
import { InvalidArgumentError, Option } from "commander";
import type { Command } from "commander";
import { runCancellable, toAction } from "../../invocation.ts";
import type { Invocation } from "../../invocation.ts";
import { terminalColumns } from "../../output.ts";
import { style } from "../../style.ts";
import { addReachOptions, chooseReach, renderFollowUp, renderHead, withIsoTimes } from "./recall-shared.ts";
import type { ReachChoice } from "./recall-shared.ts";
import { findEmbed } from "./embed.ts";
import { addExamples, parseOffset } from "../shared.ts";

const SCOPES: readonly GrepScope[] = ["messages", "summaries", "both", "files"];
const SORTS: readonly GrepSort[] = ["recency", "relevance", "hybrid"];
const ROLES = ["user", "assistant", "tool", "system", "other"];
const MAX_HITS = 200;

interface SearchOptions extends ReachChoice {
  readonly regex?: boolean;
  readonly scope?: GrepScope;
  readonly files?: boolean;
  readonly since?: string;
  readonly before?: string;
  readonly role?: string;
  readonly sort?: GrepSort;
  readonly includeRecall?: boolean;
  readonly limit: number;
  readonly offset: number;
}

export function defineSearch(program: Command): void {
  const command = program
    .command("search")
    .description("Search messages and summaries by words, in any language, or by a regular expression")
    .argument("<query...>", 'what to look for; "quotes" keep words together')
    .option("--regex", "match as a regular expression")
    .addOption(new Option("--scope <what>", "where to look (default: both)").choices([...SCOPES]))
    .addOption(new Option("--files", "in large files, line by line").conflicts("scope"))
    .option("--since <when>", "written then or later: yesterday, 7d, monday, 2026-02-01")
    .option("--before <when>", "written before then")
    .addOption(new Option("--role <role>", "only messages of this role").choices(ROLES))
    .addOption(
      new Option(
        "--sort <order>",
        "order (default: newest first when all terms are found, else best first)",
      ).choices([...SORTS]),
    )
    .option("--include-recall", "include calls and results of the lcm tools")
    .option("-n, --limit <n>", "maximum number of rows", parseHits, 10)
    .option("--after <n>", "continue after this many", parseOffset)
    .addOption(
      new Option("--offset <n>", "the former name of --after").argParser(parseOffset).default(0).hideHelp(),
    );
  addReachOptions(command).action(toAction(runSearch));
  addExamples(command, [
    ["lcm search why did we choose sqlite", "a question as you would ask it"],
    [`lcm search '"connection refused"' --since yesterday`, "a phrase, in what is new"],
    ["lcm search retry budget --project . --agent claude-code", "in what Claude Code did in this repository"],
    ["lcm search parseConfigFile --conversation 2", "an identifier, in one conversation"],
    [`lcm search --regex 'retry in \\d+ ?s' --role tool`, "a regular expression, in what tools said"],
    ["lcm search --files ECONNREFUSED", "the lines of large files"],
  ]);
  command.addHelpText(
    "after",
    `
You can type a question as you would ask it; only quotes have a special meaning. Each hit has an id; lcm show opens
it. A regular expression is case-sensitive and tests everything in scope; if it has no hit, its words are searched. In
files the query is searched literally. With vectors (lcm embed) messages are also found by meaning, unless every
keyword is found.`,
  );
}

function parseHits(text: string): number {
  const limit = Number(text);
  if (Number.isInteger(limit) && limit >= 1 && limit <= MAX_HITS && text.trim() !== "") return limit;
  throw new InvalidArgumentError(`It must be a whole number from 1 to ${MAX_HITS}; --after shows more.`);
}

async function runSearch(
  invocation: Invocation,
  typed: SearchOptions & { readonly after?: number },
  words: readonly string[],
): Promise<void> {
  const query = words.join(" ");
  const options = { ...typed, offset: typed.after ?? typed.offset };
  const scope = chooseScope(options);
  const timezone = await invocation.timezone();
  const times = readTimes(options, timezone);
  const embed =
    options.regex === true || scope === "files" || scope === "summaries" ? null : await findEmbed(invocation);
  const find = (signal?: AbortSignal): Promise<GrepResult> =>
    invocation.withArchive(
      // The cost of a vector is recorded, which writes.
      embed === null ? "read" : "change",
      async (engine) =>
        engine.grep({
          ...(await buildRequest(engine, invocation, options)),
          ...times,
          pattern: query,
          scope,
          signal,
        }),
      { embed },
    );
  // Full text is done before a key is pressed; a regular expression runs in a thread, a model elsewhere, and both can be cancelled.
  const isLong = options.regex === true || scope === "files" || embed !== null;
  const answer = isLong
    ? await runCancellable(
        async (signal) => {
          const found = await find(signal);
          if (signal.aborted) process.exitCode = EXIT_CANCELLED;
          return found;
        },
        { isPatient: true, what: "the search" },
      )
    : await find();
  await printAnswer(invocation, answer, { query, options, timezone });
}

/** Only messages have a role, so giving one excludes summaries. */
function chooseScope({ scope, files, role }: SearchOptions): GrepScope {
  const chosen = files === true ? "files" : scope;
  if (role === undefined) return chosen ?? "both";
  if (chosen === undefined || chosen === "messages") return "messages";
  throw usageError(
    `cannot use --role with the scope ${chosen}: only messages have one`,
    "Leave out --role, or use --scope messages",
  );
}

function readTimes(
  { since, before }: SearchOptions,
  timezone: string,
): Pick<GrepRequest, "since" | "before"> {
  const now = Date.now();
  return {
    since: since === undefined ? undefined : parseTime(since, { now, timezone, option: "--since" }),
    before: before === undefined ? undefined : parseTime(before, { now, timezone, option: "--before" }),
  };
}

async function buildRequest(
  engine: Engine,
  invocation: Invocation,
  options: SearchOptions,
): Promise<Omit<GrepRequest, "pattern">> {
  const { regex = false, role, sort, limit, offset, includeRecall = false } = options;
  return {
    ...(await chooseReach(engine, invocation, options)),
    mode: regex ? "regex" : "full_text",
    limit,
    after: `at_${offset}`,
    includeRecall,
    withHeadings: true,
    role,
    sort,
  };
}

interface Asked {
  readonly query: string;
  readonly options: SearchOptions;
  readonly timezone: string;
}

async function printAnswer(invocation: Invocation, answer: GrepResult, asked: Asked): Promise<void> {
  const { hits, mode, scope, rule, total, isTotalExact, complete, truncated, searched, conversations } =
    answer;
  const next = answer.next === null ? null : answer.next.replace("at_", "");
  const notes = answer.notes.map((note) => wordNote(note, SHELL_WORDS));
  await invocation.print({
    data: {
      items: hits.map(withIsoTimes),
      rule,
      total,
      isTotalExact,
      complete,
      mode,
      scope,
      searched,
      truncated,
      notes,
      conversations: conversations.map(withIsoTimes),
    },
    pagination: { next, limit: asked.options.limit, total },
    text: () => renderAnswer(answer, notes, asked, next),
  });
}

function renderAnswer(
  answer: GrepResult,
  notes: readonly string[],
  asked: Asked,
  next: string | null,
): string {
  const [first] = answer.hits;
  const origins = new Map(answer.conversations.map((found) => [found.conversationId, nameOrigin(found)]));
  const head = [style.faint(describeRule(answer, asked)), ...notes.map((note) => style.warning(note))];
  const more = [
    ...(next === null ? [] : [`More: ${renderMore(asked, next)}`]),
    ...(first === undefined ? [] : [`Read: ${renderFollowUp(openHit(first), pickArchive(asked.options))}`]),
  ];
  return [
    head.join("\n"),
    ...answer.hits.map((hit) => renderHit(hit, origins.get(hit.conversationId) ?? [], asked.timezone)),
    ...(more.length === 0 ? [] : [style.faint(more.join("\n"))]),
  ].join("\n\n");
}

const NOUNS: Readonly<Record<GrepScope, readonly [one: string, many: string]>> = {
  messages: ["message", "messages"],
  summaries: ["summary", "summaries"],
  both: ["message or summary", "messages and summaries"],
  files: ["line of a file", "lines of files"],
};

const ORDERS: Readonly<Record<GrepSort, string>> = {
  recency: "the newest first",
  relevance: "the best first",
  hybrid: "the best and newest first",
};

function describeRule(answer: GrepResult, { query, options }: Asked): string {
  const { rule, total, hits, scope } = answer;
  if (rule === "empty") return "There is nothing to look for in this question.";
  if (total === 0) return `Nothing found for ${JSON.stringify(query)} in ${answer.searched}.`;
  const count = `${answer.isTotalExact ? "" : "at least "}${countOf(total, ...NOUNS[scope])}`;
  if (hits.length === 0) return `Only ${count} found: nothing after ${options.offset}.`;
  const from = options.offset + 1;
  const page = from === 1 ? formatCount(hits.length) : `${from}–${from - 1 + hits.length}`;
  const shown = hits.length < total ? `${page} of ${count}` : count;
  return `${shown} ${describeMatch(answer, options)}`;
}

function describeMatch({ rule, scope }: GrepResult, { regex, sort }: SearchOptions): string {
  if (rule === "regex") {
    const how = regex === true ? "matching the expression" : "with it as written";
    return scope === "files" ? how : `${how}, ${ORDERS.recency}`;
  }
  if (rule === "fused") return `by their words and their meaning, ${ORDERS[sort ?? "relevance"]}`;
  const isStrict = rule === "strict";
  const order = ORDERS[sort ?? (isStrict ? "recency" : "relevance")];
  return `${isStrict ? "with every term" : "with some of the terms"}, ${order}`;
}

/** Its title, then its origin; the ids needed to continue there come last. */
const nameOrigin = ({ heading, project, agent, sessionId, conversationId }: FoundConversation): string[] => [
  ...(heading === undefined ? [] : [`"${toOneLine(heading)}"`]),
  ...(project === null ? [] : [nameProject(project)]),
  `conversation ${conversationId}`,
  ...(agent === null ? [] : [toOneLine(agent), `session ${toOneLine(sessionId)}`]),
];

function renderHit(hit: GrepHit, origin: readonly string[], timezone: string): string {
  const columns = terminalColumns();
  const lines = renderSnippet(hit, columns === null ? null : columns - 2);
  return [
    renderHead(hit.id, [...describeHit(hit, timezone), ...origin]),
    ...lines.map((line) => `  ${line}`),
  ].join("\n");
}

function describeHit(hit: GrepHit, timezone: string): string[] {
  const where = [
    hit.type === "summary"
      ? `${formatTime(hit.earliestAt, timezone)} to ${formatTime(hit.latestAt, timezone)}`
      : formatTime(hit.createdAt, timezone),
    ...(hit.foundBy.includes("words") || !hit.foundBy.includes("vector") ? [] : ["found by its meaning"]),
  ];
  if (hit.type === "message") return [hit.role, ...where];
  if (hit.type === "summary") return [`${hit.kind} summary`, `depth ${hit.depth}`, ...where];
  return [`${toOneLine(hit.fileName ?? "file")}:${hit.line}`, ...where];
}

/** The arguments of `lcm` that show a hit in full. */
function openHit(hit: GrepHit): string[] {
  if (hit.type !== "file") return ["show", hit.id];
  return ["show", hit.id, "--lines", `${Math.max(1, hit.line - 5)}-${hit.line + 5}`];
}

/** The snippet with its matches marked: wrapped to this many columns, or one line without a limit. */
export function renderSnippet(
  { snippet, ranges }: Pick<GrepHit, "snippet" | "ranges">,
  columns: number | null,
): string[] {
  // Both replacements keep every offset, so that the ranges stay valid.
  const plain = makePrintable(snippet.replaceAll(/\s/gu, " "));
  const lines = columns === null ? [plain] : wrapToWidth(plain, columns);
  let from = 0;
  return lines.map((line) => {
    const at = plain.indexOf(line, from);
    from = at + line.length;
    return markRanges(line, at, ranges);
  });
}

function markRanges(line: string, at: number, ranges: GrepHit["ranges"]): string {
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

function renderMore({ query, options }: Asked, offset: string): string {
  const { scope, since, before, role, sort, limit } = options;
  const flags = Object.entries({
    regex: options.regex,
    files: options.files,
    "include-recall": options.includeRecall,
  }).flatMap(([name, isSet]) => (isSet === true ? [`--${name}`] : []));
  const values = Object.entries({ scope, since, before, role, sort }).flatMap(([name, value]) =>
    value === undefined ? [] : [`--${name}`, value],
  );
  const words = ["search", ...flags, ...values, "--after", offset, "--limit", String(limit)];
  // After "--" a query that begins with a dash is not an option.
  return renderFollowUp(words, options, query.startsWith("-") ? ["--", query] : [query]);
}

/** Only the archive and the owner: an id needs no other scope. */
const pickArchive = ({ db, owner }: ReachChoice): ReachChoice => ({
  db,
  owner,
});

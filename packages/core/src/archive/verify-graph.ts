/**
 * Checks every summary: its text is what was stored, its counts and spans match its sources, and its sources exist. Each summary is checked
 * against its direct sources only; those are checked in turn.
 */
import { equalBytes } from "./equal-bytes.ts";
import { groupBy, Pages } from "./pages.ts";
import { read, together } from "./plan.ts";
import type { Asking } from "./plan.ts";
import type { SourceSpan, SummarySpan } from "./reads.ts";
import { hashSummary, total } from "./summary.ts";
import type { Row } from "./tables.ts";
import type { Problems } from "./verify-problems.ts";

/** Each summary comes with its text and its sources, a dozen or two. */
const PAGE_SUMMARIES = 64;

const COLUMNS = [
  "summary_id",
  "conversation_id",
  "kind",
  "depth",
  "state",
  "start_pos",
  "start_seq",
  "end_pos",
  "end_seq",
  "messages",
  "descendant_count",
  "tokens",
  "content",
  "hash",
  "model",
  "level",
  "stale",
  "created_at",
  "previous_id",
] as const;

/** Of the summaries of one conversation. */
const INDEXED_ORDER = ["state", "depth", "start_pos", "summary_id"] as const;

type CheckedSummary = Pick<Row<"summaries">, (typeof COLUMNS)[number]>;

export function* checkGraph(problems: Problems, conversationId?: number): Asking<void> {
  const pages = new Pages("summaries", {
    columns: COLUMNS,
    // An order that has an index: otherwise each page would sort all the rest.
    ...(conversationId === undefined
      ? { order: ["summary_id"] as const }
      : { order: INDEXED_ORDER, where: { conversation_id: conversationId } }),
    limit: PAGE_SUMMARIES,
  });
  for (let page; (page = yield* pages.next()).length > 0;) {
    const [spans, before] = yield* together(
      read.sourceSpans(page.map((row) => row.summary_id)),
      read.summaries(page.flatMap((row) => row.previous_id ?? [])),
    );
    const sources = groupBy(spans, "summary_id");
    const previous = new Map(before.map((row) => [row.summary_id, row]));
    for (const summary of page)
      checkSummary(
        summary,
        sources.get(summary.summary_id) ?? [],
        previous.get(summary.previous_id ?? ""),
        problems,
      );
  }
}

function checkSummary(
  summary: CheckedSummary,
  sources: readonly SourceSpan[],
  previous: SummarySpan | undefined,
  problems: Problems,
): void {
  const id = summary.summary_id;
  if (!equalBytes(hashSummary(summary), summary.hash))
    problems.add("altered", id, `${id} is not what was stored: its hash does not match`);
  // If it is missing, the hash shows it, or it is still to come.
  if (previous && !isBefore(previous, summary)) {
    problems.add(
      "graph",
      id,
      `the previous context of ${id}, ${summary.previous_id}, does not come before it`,
    );
  }
  if (sources.length === 0) {
    problems.add("graph", id, `${id} leads to no message`);
    return;
  }
  // Below an unused summary, messages are hidden, shown and added; only its text stays as it was.
  const isUnused = summary.state === "retired" || (summary.stale === 1 && summary.state !== "cover");
  const derived = deriveFromSources(sources);
  for (const column of isUnused ? ALWAYS_DERIVED : DERIVED)
    if (summary[column] !== derived[column])
      problems.add(
        "graph",
        id,
        `${column} of ${id} is ${summary[column]}, its sources say ${derived[column]}`,
      );
  if (summary.state === "cover" && summary.stale === 0 && sources.some((source) => source.stale === 1)) {
    problems.add("graph", id, `${id} is not marked stale, but one of its sources is`);
  }
  if (sources.some((source, i) => source.ordinal !== i)) {
    problems.add("graph", id, `the sources of ${id} are not numbered consecutively`);
  }
}

const isBefore = (previous: SummarySpan, summary: CheckedSummary): boolean =>
  previous.conversation_id === summary.conversation_id &&
  (previous.end_pos < summary.start_pos ||
    (previous.end_pos === summary.start_pos && previous.end_seq < summary.start_seq));

const ALWAYS_DERIVED = ["kind", "depth"] as const;
const DERIVED = [
  ...ALWAYS_DERIVED,
  "start_pos",
  "start_seq",
  "end_pos",
  "end_seq",
  "messages",
  "descendant_count",
] as const;

function deriveFromSources(
  sources: readonly SourceSpan[],
): Record<(typeof DERIVED)[number], number | string | undefined> {
  const first = sources[0];
  const last = sources.at(-1);
  const depths = sources.flatMap(({ depth }) => depth ?? []);
  return {
    kind: depths.length > 0 ? "condensed" : "leaf",
    depth: depths.length > 0 ? Math.max(...depths) + 1 : 0,
    start_pos: first?.start_pos,
    start_seq: first?.start_seq,
    end_pos: last?.end_pos,
    end_seq: last?.end_seq,
    messages: total(sources, ({ messages, hidden_now }) => messages ?? (hidden_now === 0 ? 1 : 0)),
    descendant_count: total(sources, ({ descendant_count: below }) => (below === null ? 0 : below + 1)),
  };
}

export function* checkSummaryCount(
  conversation: Pick<Row<"conversations">, "conversation_id" | "summary_count">,
  problems: Problems,
): Asking<void> {
  const { conversation_id: id, summary_count: stored } = conversation;
  const counted = yield* read.count("summaries", { conversation_id: id });
  if (counted === stored) return;
  const name = `conversation ${id}`;
  problems.add("counter", name, `summary_count of ${name} is ${stored}, counted ${counted}`);
}

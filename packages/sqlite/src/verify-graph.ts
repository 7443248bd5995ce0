/**
 * Checks every summary: its text is what was stored, its counts and spans follow from its sources, and its sources exist. Walks one
 * summary at a time over its direct sources only; that each of those is right is checked at its own turn.
 */
import { hashSummary } from "@lossless/core/adapter";
import type { Row as TableRow } from "@lossless/core/ports";
import type { Connection, Row } from "./connection.ts";
import { equalBytes } from "./verify-bytes.ts";
import type { Problems } from "./verify-problems.ts";

const SUMMARIES = "SELECT * FROM summaries WHERE ?1 IS NULL OR conversation_id = ?1 ORDER BY summary_id";
const SOURCES = `
  SELECT l.ordinal, m.position AS start_pos, m.seq AS start_seq, m.position AS end_pos, m.seq AS end_seq, NULL AS depth,
         CASE WHEN m.hidden_now = 0 THEN 1 ELSE 0 END AS messages, 0 AS below, 0 AS stale
  FROM summary_messages l JOIN messages m USING (message_id) WHERE l.summary_id = ?1
  UNION ALL
  SELECT p.ordinal, s.start_pos, s.start_seq, s.end_pos, s.end_seq, s.depth, s.messages, s.descendant_count + 1, s.stale
  FROM summary_parents p JOIN summaries s ON s.summary_id = p.parent_summary_id WHERE p.summary_id = ?1
  ORDER BY 1`;
/** What was given as previous context, but does not end before this one begins. One that is missing is seen by the hash, or still to come. */
const WRONG_PREVIOUS = `
  SELECT 1 AS found FROM summaries p JOIN summaries s ON s.previous_id = p.summary_id
  WHERE s.summary_id = ? AND (s.conversation_id <> p.conversation_id OR (p.end_pos, p.end_seq) >= (s.start_pos, s.start_seq))`;
const SUMMARY_COUNT = "SELECT count(*) AS n FROM summaries WHERE conversation_id = ?";

type SummaryRow = TableRow<"summaries">;

export function checkGraph(
  connection: Connection,
  problems: Problems,
  conversationId: number | null = null,
): void {
  for (const summary of connection.database
    .prepare(SUMMARIES)
    .iterate(conversationId) as Iterable<SummaryRow>) {
    const id = summary.summary_id;
    checkText(summary, id, problems);
    if (summary.previous_id !== null && connection.get(WRONG_PREVIOUS, id)) {
      problems.add(
        "graph",
        id,
        `the previous context of ${id}, ${summary.previous_id}, does not come before it`,
      );
    }
    const sources = connection.all(SOURCES, id);
    if (sources.length === 0) {
      problems.add("graph", id, `${id} leads to no message`);
      continue;
    }
    for (const [column, value] of Object.entries(deriveFromSources(sources))) {
      // Below a summary that is no longer used, messages are hidden, shown and added; only its text stays as it was.
      const isUnused = summary.state === "retired" || (summary.stale === 1 && summary.state !== "cover");
      if (isUnused && column !== "depth" && column !== "kind") continue;
      const stored = summary[column as keyof SummaryRow];
      if (stored !== value) {
        problems.add("graph", id, `${column} of ${id} is ${stored}, its sources say ${value}`);
      }
    }
    if (summary.state === "cover" && summary.stale === 0 && sources.some((source) => source.stale === 1)) {
      problems.add("graph", id, `${id} does not count as stale, but something it was made from does`);
    }
    if (sources.some((source, i) => source.ordinal !== i)) {
      problems.add("graph", id, `the sources of ${id} are not numbered one after the other`);
    }
  }
}

export function checkSummaryCount(connection: Connection, conversation: Row, problems: Problems): void {
  const id = conversation.conversation_id as number;
  const counted = connection.get<{ n: number }>(SUMMARY_COUNT, id)?.n ?? 0;
  if (counted !== conversation.summary_count) {
    problems.add(
      "counter",
      `conversation ${id}`,
      `summary_count of conversation ${id} is ${conversation.summary_count}, counted ${counted}`,
    );
  }
}

function checkText(summary: SummaryRow, id: string, problems: Problems): void {
  if (!equalBytes(hashSummary(summary), summary.hash))
    problems.add("altered", id, `${id} is not what was stored: its hash does not match`);
}

function deriveFromSources(sources: readonly Row[]): Record<string, unknown> {
  const first = sources[0];
  const last = sources.at(-1);
  const depths = sources.map((source) => source.depth as number | null).filter((depth) => depth !== null);
  const sum = (column: string): number =>
    sources.reduce((total, source) => total + (source[column] as number), 0);
  return {
    kind: depths.length > 0 ? "condensed" : "leaf",
    depth: depths.length > 0 ? Math.max(...depths) + 1 : 0,
    start_pos: first?.start_pos,
    start_seq: first?.start_seq,
    end_pos: last?.end_pos,
    end_seq: last?.end_seq,
    messages: sum("messages"),
    descendant_count: sum("below"),
  };
}

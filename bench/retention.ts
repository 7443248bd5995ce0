/**
 * What is still in the context after folding, without a model, compared with baselines of the same size: the last turns, plain truncation, and
 * the host's own summary. Several measures, so that none can be gamed: identifiers the agent uses after a compaction; answers to questions;
 * planted facts after three compactions; and the table of the documents for 10 to 100 turns.
 *
 * `npm run bench -- retention [--json] [--untouched] [--show] [needs | questions | facts | turns]...`: `--untouched` also measures the held-out
 * sessions; `--show` prints our contexts at the size of the host's summaries, to be read by a person.
 */
import type { BenchResult, BenchTable } from "./report.ts";
import { measureFacts } from "./retention-facts.ts";
import type { Row } from "./retention-figures.ts";
import { measureNeeds } from "./retention-needs.ts";
import { measureQuestions, measureTurns } from "./retention-questions.ts";

interface Part {
  readonly title: string;
  readonly absent: string;
  readonly measure: (args: readonly string[]) => Promise<Row[]>;
}

const PARTS: Readonly<Record<string, Part>> = {
  needs: {
    title: "Identifiers used later",
    absent: "no transcripts under ../shared/data",
    measure: (args) =>
      measureNeeds({ untouched: args.includes("--untouched"), show: args.includes("--show") }),
  },
  questions: {
    title: "Answers to questions",
    absent: "no questions under ../shared/data",
    measure: measureQuestions,
  },
  facts: {
    title: "Planted facts after three compactions",
    absent: "no sample session",
    measure: measureFacts,
  },
  turns: {
    title: "The table of the documents",
    absent: "no questions under ../shared/data",
    measure: measureTurns,
  },
};

export async function run(args: readonly string[] = []): Promise<BenchResult> {
  const named = args.filter((arg) => !arg.startsWith("--"));
  const unknown = named.find((name) => !(name in PARTS));
  if (unknown !== undefined)
    throw new Error(`there is no part "${unknown}": name ${Object.keys(PARTS).join(", ")}`);
  const tables: BenchTable[] = [];
  const skipped: string[] = [];
  for (const [name, { title, absent, measure }] of Object.entries(PARTS)) {
    if (named.length > 0 && !named.includes(name)) continue;
    const rows = await measure(args);
    if (rows.length === 0) skipped.push(`${title}: skipped, ${absent}`);
    else tables.push({ title, rows });
  }
  return { name: "retention", rows: [], tables, notes: [...skipped, ...NOTES] };
}

const NOTES = [
  "Identifiers: paths, code names and hashes that occur before the cut and that the agent itself writes after it, without the user typing them first. Ours: imported, folded and assembled by the engine, given nothing but the budget (characters / 4 as tokens), the mean of five runs with other ids; host: its own summary, with its last 32,000 characters in the columns with a tail; last: the newest text of that size. Room: characters of our context. Told: share of these in summaries. Names: the largest share of the summaries of one context that is lists of names. NO: below 1.5 × and 1.15 × the host, or more than a quarter of names.",
  "Our context: stored, folded and assembled by the engine, for a budget of the given share of the history. Due: folded when due; right after such a fold a context takes about half of its budget, because it is to grow until the next one. Requested: folded on request down to that size. Folded: by the summariser alone, to the size of our context.",
  "Size: of our context beside the history; folded, last turns and truncated have exactly the same in the tables of questions and facts.",
  "One recall: what a single call with the fact's question finds in the archive, without a model.",
  "Questions and facts: share of the words of the answer (as its evidence spells them) that are in the context; whole: answers of which every word is there.",
];

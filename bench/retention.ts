/**
 * What is still in the context after folding, without a model, against rivals of the same size: the last turns, blunt truncation, and
 * the summary the host itself wrote. Several measures, so that none can be gamed: identifiers the agent goes on to use after a real
 * compaction; answers to questions; planted facts after three compactions; and the table of the documents for 10 to 100 turns.
 *
 * `npm run bench -- retention [--show]`: `--show` prints the folded text of each real compaction, to be read by a person.
 */
import type { BenchResult, BenchTable } from "./report.ts";
import { measureFacts } from "./retention-facts.ts";
import type { Row } from "./retention-figures.ts";
import { measureCompactions, measureCuts } from "./retention-identifiers.ts";
import { measureQuestions, measureTurns } from "./retention-questions.ts";

const NO_TRANSCRIPTS = "no transcripts under ../shared/data";
const NO_QUESTIONS = "no questions under ../shared/data";

export async function run(args: readonly string[] = []): Promise<BenchResult> {
  const tables: BenchTable[] = [];
  const skipped: string[] = [];
  const add = (title: string, rows: readonly Row[], why: string): void => {
    if (rows.length === 0) skipped.push(`${title}: skipped, ${why}`);
    else tables.push({ title, rows });
  };
  add(
    "Identifiers used after real compactions",
    await measureCompactions(args.includes("--show")),
    NO_TRANSCRIPTS,
  );
  add("Identifiers used after ordinary places of long sessions", await measureCuts(), NO_TRANSCRIPTS);
  add("Answers to questions", await measureQuestions(), NO_QUESTIONS);
  add("Planted facts after three compactions", await measureFacts(), "no sample session");
  add("The table of the documents", await measureTurns(), NO_QUESTIONS);
  return { name: "retention", rows: [], tables, notes: [...skipped, ...NOTES] };
}

const NOTES = [
  "Identifiers: words with the shape of code (paths, symbols, file names, hashes, flags) that occur before the cut and in the agent's own text and tool calls after it. Kept: they occur in the context.",
  "Our context: stored, folded and assembled by the engine, for a budget of the host's summary with a tail of 32,000 characters, or of the given share of the history. Right after a fold it takes about half of its budget, because it is to grow until the next one; same size, size of: our largest context of at most that size, whatever its budget. Folded: by the summariser alone, to the size of the host's summary, or of our context.",
  "Size: of our context beside the history; folded, last turns and truncated have exactly the same in the tables of questions and facts.",
  "One recall: what a single call with the fact's question finds in the archive, without a model.",
  "Questions and facts: share of the words of the answer (as its evidence spells them) that are in the context; whole: answers of which every word is there.",
];

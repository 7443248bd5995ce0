/**
 * The compression table of the documents, for 10, 30, 50 and 100 turns: the size of our context, and how much of the answers is still in it. A
 * separate part of the retention benchmark, because it is the part people want and takes less than two minutes.
 *
 * `npm run bench -- compression [--json]`
 */
import type { BenchResult } from "./report.ts";
import { measureTurns } from "./retention-questions.ts";

export async function run(): Promise<BenchResult> {
  const rows = await measureTurns();
  const notes = rows.length === 0 ? ["skipped: no questions under ../shared/data"] : NOTES;
  return { name: "compression", rows, notes };
}

const NOTES = [
  "A turn is a question and its answer. Compression: how much smaller our context is than the history; kept: the share of the words of each answer, as its evidence spells them, that are in the context. Last turns: the newest part of the history, of the same size. Without a model.",
];

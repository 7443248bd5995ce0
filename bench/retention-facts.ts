/**
 * Planted facts of the sample session (names, numbers, paths, decisions and constraints): which are still in the context after three
 * compactions. Without a model.
 */
import { existsSync, readFileSync } from "node:fs";
import path from "node:path";
import { estimateTextTokens } from "@lossless/core";
import { viewMessage } from "@lossless/core/testing";
import type { SourceLine } from "@lossless/core/testing";
import { assembleAfterFolding } from "./engine-context.ts";
import type { EngineContext } from "./engine-context.ts";
import { mean, percent, shareIn } from "./retention-figures.ts";
import type { Row } from "./retention-figures.ts";
import { asSummary, asText, cutChunks, fold, leafTarget } from "./retention-fold.ts";

interface Fact {
  readonly id: string;
  readonly class: string;
  readonly question: string;
  readonly must: readonly string[];
}

const SAMPLE = path.resolve(import.meta.dirname, "../packages/cli/sample");
const SHARES = [0.1, 0.2];

/** Three compactions: at each third of the session everything so far is folded again, including the older fold. */
export async function measureFacts(): Promise<Row[]> {
  const file = path.join(SAMPLE, "sample-session.jsonl");
  if (!existsSync(file)) return [];
  const facts = JSON.parse(readFileSync(path.join(SAMPLE, "facts.json"), "utf8")) as Fact[];
  const entries = readSession(file);
  const history = asText(entries);
  const rows: Row[] = [];
  for (const share of SHARES) {
    const stages = splitInThree(entries).map((third) =>
      third.map(({ id, line }) => ({ eventId: id, bytes: Buffer.from(line) })),
    );
    const budgetTokens = Math.floor(estimateTextTokens(history) * share);
    const questions = facts.map((fact) => fact.question);
    for (const when of ["due", "requested"] as const) {
      const ours = await assembleAfterFolding(stages, budgetTokens, when, questions);
      rows.push({
        facts: facts.length,
        "folded for": `${percent(share)}, ${when}`,
        ...scoreFacts(facts, entries, ours),
      });
    }
  }
  return rows;
}

function scoreFacts(facts: readonly Fact[], entries: readonly Entry[], ours: EngineContext): Row {
  const history = asText(entries);
  const chars = ours.text.length;
  const contexts = {
    "our context": ours.text,
    folded: foldThrice(entries, chars),
    "last turns": history.slice(-chars),
    truncated: history.slice(0, chars),
  };
  const columns = Object.entries(contexts).map(([name, context]) => [
    name,
    percent(meanShare(facts, context)),
  ]);
  const recalled = facts.map((fact, i) => shareIn(ours.recalled[i] ?? "", fact.must));
  const together = facts.map((fact, i) => shareIn(`${ours.text}\n${ours.recalled[i] ?? ""}`, fact.must));
  return {
    size: percent(chars / history.length),
    ...(Object.fromEntries(columns) as Row),
    "one recall": percent(mean(recalled)),
    "context and recall": percent(mean(together)),
    ...byClass(facts, ours.text),
  };
}

function splitInThree<T>(entries: readonly T[]): T[][] {
  const third = Math.ceil(entries.length / 3);
  return [0, 1, 2].map((i) => entries.slice(i * third, (i + 1) * third));
}

const meanShare = (facts: readonly Fact[], context: string): number =>
  mean(facts.map((fact) => shareIn(context, fact.must)));

/** The share of each class of facts that our context keeps. */
function byClass(facts: readonly Fact[], context: string): Row {
  const classes = Map.groupBy(facts, (fact) => fact.class);
  return Object.fromEntries(
    [...classes].map(([name, members]) => [`${name}s`, percent(meanShare(members, context))]),
  );
}

function foldThrice(sources: readonly SourceLine[], chars: number): string {
  let folded: SourceLine[] = [];
  for (const [i, third] of splitInThree(sources).entries()) {
    const fresh = cutChunks(third).map((chunk, nth) =>
      asSummary(fold(chunk.sources, 0, leafTarget(chunk.tokens)), chunk.sources[0]?.at ?? null, nth),
    );
    const all = [...folded, ...fresh];
    folded = [asSummary(fold(all, 1 + i, Math.floor(chars / 4)), all[0]?.at ?? null, i)];
  }
  return folded[0]?.text ?? "";
}

interface Entry extends SourceLine {
  readonly line: string;
}

function readSession(file: string): Entry[] {
  const sources: Entry[] = [];
  for (const line of readFileSync(file, "utf8").split("\n")) {
    const view = viewMessage(Buffer.from(line));
    if (line === "" || !view.isMessage) continue;
    const parts = view.parts.filter((part) => part.type !== "reasoning");
    sources.push({
      id: String(sources.length),
      kind: "message",
      role: view.role,
      at: view.createdAt ?? null,
      text: parts.map((part) => part.text).join("\n"),
      parts,
      line,
    });
  }
  return sources;
}

/**
 * Does a question as typed find the messages with its answer? Stores the conversations of the evaluation sets through the engine, searches every
 * question with `grep`, and prints recall, rank and empty results per set and category beside the baselines. One default for all sets. `--out
 * DIR` writes run files that the scorer of the data folder accepts; `--set NAME` runs one; `--plain` stores turns without their sessions and
 * times. Rankings are chosen on every other conversation of a set, the first included, and confirmed on the rest: the halves are rows.
 * `--vectors` compares words alone with words and the vectors of a small local model (`recall-vectors.ts`).
 */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { openEngine } from "lossless-claw";
import type { Engine } from "@lossless/core";
import { importPaths } from "@lossless/interchange";
import { findSharedData } from "@lossless/testkit";
import { ask, askSet, HALVES, OWNER, score, takeHalf } from "./recall-questions.ts";
import type { Asked, Timed } from "./recall-questions.ts";
import { compareVectors } from "./recall-vectors.ts";
import type { BenchResult } from "./report.ts";

const SETS = ["locomo", "realtalk", "beam100k", "memdaily_zh", "beam500k", "longmemeval_sample", "probes"];
/** Recall@10 and MRR of plain FTS5 with stems and OR, and the goal; for Chinese recall@5 of single characters. */
const BASELINES: Record<string, string> = {
  locomo: ".626 / .460 (goal .77 / .53)",
  realtalk: ".456 / .372 (goal .51 / .42)",
  beam100k: ".405 / .323 (goal .49 / .40)",
  memdaily_zh: "R@5 .859 (goal .88)",
  probes: "R@10 .863 (goal .99)",
};

export async function run(args: readonly string[]): Promise<BenchResult> {
  const data = findSharedData();
  const name = "recall of plain questions";
  if (data === null)
    return { name, rows: [], notes: ["the evaluation data is not here; nothing was measured"] };
  if (args.includes("--vectors")) return compareVectors(data, args);
  const option = (flag: string): string | undefined =>
    args.includes(flag) ? args[args.indexOf(flag) + 1] : undefined;
  const out = option("--out");
  const only = option("--set");
  const rows: Record<string, string | number>[] = [];
  for (const set of SETS.filter((candidate) => only === undefined || candidate === only)) {
    const folder = mkdtempSync(path.join(tmpdir(), "lossless-recall-"));
    const engine = await openEngine({ database: path.join(folder, "lcm.db"), thread: false });
    try {
      const asked =
        set === "probes"
          ? await askProbes(engine, data)
          : await askSet(engine, data, set, { isPlain: args.includes("--plain") });
      rows.push(...scoreSet(set, asked));
      if (out !== undefined) writeRun(out, set, asked);
    } finally {
      await engine.close();
      rmSync(folder, { recursive: true, force: true });
    }
  }
  return {
    name,
    rows,
    notes: ["baseline: FTS5 with stems, OR, stop words removed, R@10 / MRR; ms: mean per question"],
  };
}

async function askProbes(engine: Engine, data: string): Promise<Timed[]> {
  const probes = JSON.parse(readFileSync(path.join(data, "probes", "known_item.json"), "utf8")) as {
    file: string;
    type: string;
    query: string;
    gold: string[];
  }[];
  const files = new Map<string, ImportedFile>();
  for (const file of new Set(probes.map((probe) => probe.file)))
    files.set(file, await importFile(engine, path.join(data, file)));
  const asked: Timed[] = [];
  for (const [id, { file, type, query, gold }] of probes.entries()) {
    const { key, lines } = files.get(file) as ImportedFile;
    const { ranked, ...found } = await ask(engine, key, query);
    asked.push({
      id: String(id),
      category: type,
      evidence: gold,
      ranked: ranked.map((event) => lines.get(event) ?? event),
      ...found,
    });
  }
  return asked;
}

interface ImportedFile {
  readonly key: string;
  /** Lines without an id are identified by their number. */
  readonly lines: ReadonlyMap<string, string>;
}

async function importFile(engine: Engine, file: string): Promise<ImportedFile> {
  await importPaths({ engine, paths: [file], owner: OWNER });
  const { items } = await engine.listConversations({ limit: 1 });
  const { conversationId = 0, sessionKey: key = "" } = items[0] ?? {};
  const stored = await engine.listMessages({ conversationId, limit: 10_000 });
  const numbered = stored.items.map(({ eventId }, line) => [eventId, `L${line}`] as const);
  return { key, lines: new Map(numbered.filter(([eventId]) => eventId.startsWith("line:"))) };
}

function scoreSet(set: string, asked: readonly Timed[]): Record<string, string | number>[] {
  const categories = [...Map.groupBy(asked, ({ category }) => category)].toSorted(([a], [b]) =>
    a < b ? -1 : 1,
  );
  const all = { set, category: "all", ...score(asked), baseline: BASELINES[set] ?? "" };
  const halved = HALVES.flatMap((category, half) => {
    const some = takeHalf(asked, half);
    return some.length === 0 ? [] : [{ set, category, ...score(some) }];
  });
  return [all, ...halved, ...categories.map(([category, some]) => ({ set, category, ...score(some) }))];
}

function writeRun(folder: string, set: string, asked: readonly Asked[]): void {
  mkdirSync(folder, { recursive: true });
  const lines = asked.map(({ id, ranked }) => JSON.stringify({ id, ranked }));
  writeFileSync(path.join(folder, `${set}.jsonl`), `${lines.join("\n")}\n`);
}

/**
 * What vectors add to words: `npm run bench -- recall --vectors` asks the questions of three sets twice, by words alone and with the vectors of
 * a small local model, and says whether the goal holds. The model is installed from the registry into a temporary folder, or taken from
 * the folder that follows the option. `--set NAME` runs one set.
 */
import { existsSync } from "node:fs";
import path from "node:path";
import { openEngine } from "lossless-claw";
import { resolveSettings } from "@lossless/core";
import { openEmbed } from "@lossless/models";
import { installLocalModel, LOCAL_MODEL } from "@lossless/testkit/local-model.ts";
import { makeTemporaryFolder } from "@lossless/testkit/temporary.ts";
import { askSet, HALVES, score, takeHalf } from "./recall-questions.ts";
import type { Timed } from "./recall-questions.ts";
import type { BenchResult } from "./report.ts";

const SETS = ["locomo", "realtalk", "beam100k"];
/** No set may lose more than this by vectors, and their mean R@10 must gain so much. */
const MAX_LOSS = 0.005;
const MIN_GAIN = 0.01;

export async function compareVectors(data: string, args: readonly string[]): Promise<BenchResult> {
  const name = "recall of plain questions, by words alone and with vectors";
  using temporary = makeTemporaryFolder();
  const named = args[args.indexOf("--vectors") + 1];
  const folder = named === undefined || named.startsWith("-") ? temporary.file(".") : named;
  const problem = existsSync(path.join(folder, "node_modules", LOCAL_MODEL.model))
    ? null
    : installLocalModel(folder);
  if (problem !== null) return { name, rows: [], notes: [`${problem}; nothing was measured`] };
  const only = args.includes("--set") ? args[args.indexOf("--set") + 1] : undefined;
  const asked: Compared[] = [];
  for (const set of SETS.filter((candidate) => only === undefined || candidate === only)) {
    const ask = (hasVectors: boolean): Promise<Timed[]> => askAll(data, set, hasVectors ? folder : null);
    asked.push({ set, words: await ask(false), vectors: await ask(true) });
  }
  return {
    name,
    rows: HALVES.flatMap((half, at) => compareHalf(asked, half, at)),
    notes: [
      `goal: no set more than ${MAX_LOSS} below words alone in R@10 or MRR, and mean R@10 at least ${MIN_GAIN} above; weights are chosen on one half of the conversations and confirmed on the other`,
      "near: questions for which vectors found something",
    ],
  };
}

interface Compared {
  readonly set: string;
  readonly words: readonly Timed[];
  readonly vectors: readonly Timed[];
}

/** Asks every question of a set, with vectors if a folder has the model. */
async function askAll(data: string, set: string, modelFolder: string | null): Promise<Timed[]> {
  using folder = makeTemporaryFolder();
  const embedding = modelFolder === null ? {} : { embedding: { folder: modelFolder, ...LOCAL_MODEL } };
  const { settings } = resolveSettings({
    env: {},
    config: { databasePath: folder.file("lcm.db"), ...embedding },
  });
  const engine = await openEngine({
    database: folder.file("lcm.db"),
    settings,
    thread: false,
    embed: modelFolder === null ? null : openEmbed({ settings, env: {} }),
  });
  try {
    return await askSet(engine, data, set, { isPlain: false, hasVectors: modelFolder !== null });
  } finally {
    await engine.close();
  }
}

function compareHalf(asked: readonly Compared[], half: string, at: number): BenchResult["rows"] {
  const sets = asked.map(({ set, words, vectors }) => {
    const some = takeHalf(vectors, at);
    const near = some.filter(({ hasNear }) => hasNear).length;
    return { set, near, questions: some.length, words: score(takeHalf(words, at)), vectors: score(some) };
  });
  const rows = sets.map(({ set, questions, near, words, vectors }) => ({
    half,
    set,
    questions,
    near,
    "R@10 words": words["R@10"],
    "R@10 vectors": vectors["R@10"],
    "MRR words": words.MRR,
    "MRR vectors": vectors.MRR,
    holds: (["R@10", "MRR"] as const).every((name) => vectors[name] >= words[name] - MAX_LOSS) ? "yes" : "NO",
  }));
  const mean = (kind: "words" | "vectors", name: "R@10" | "MRR"): number =>
    Number((sets.reduce((sum, one) => sum + one[kind][name], 0) / sets.length).toFixed(4));
  if (rows.length < SETS.length) return rows;
  return [
    ...rows,
    {
      half,
      set: "mean",
      questions: sets.reduce((sum, one) => sum + one.questions, 0),
      near: sets.reduce((sum, one) => sum + one.near, 0),
      "R@10 words": mean("words", "R@10"),
      "R@10 vectors": mean("vectors", "R@10"),
      "MRR words": mean("words", "MRR"),
      "MRR vectors": mean("vectors", "MRR"),
      holds: mean("vectors", "R@10") >= mean("words", "R@10") + MIN_GAIN ? "yes" : "NO",
    },
  ];
}

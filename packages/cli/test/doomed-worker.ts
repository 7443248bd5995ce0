/**
 * A worker that kills itself: so many steps after the first answer of a model, where a step is the beginning or the end of a call of the store. Every
 * answer is written to a file in the moment it is given, so that somebody else can say what was asked twice.
 */
import { createHash } from "node:crypto";
import { appendFileSync } from "node:fs";
import { resolveSettings } from "@lossless/core";
import type { Complete, Embed } from "@lossless/core";
import { makeOpenEngine } from "@lossless/core/ports";
import { watchStores } from "@lossless/testkit/watched-store.ts";
import { openStore } from "lossless-claw";
import { WorkerRounds } from "../src/commands/fold/worker-rounds.ts";

export interface DoomedOrders {
  readonly database: string;
  /** A line for each answer: what it was about. The last line of a worker that died: `dead`, and how many steps after its last answer. */
  readonly log: string;
  /** Null: it ends by itself. */
  readonly stepsAfterAnswer: number | null;
  /** How far ahead its clock is: what a killed worker has claimed has run out. */
  readonly aheadMs: number;
}

const BUDGET = 4_000;
const MAX_NAMES = 30;

const orders = JSON.parse(process.argv[2] ?? "") as DoomedOrders;
let stepsLeft = Number.POSITIVE_INFINITY;
let sinceAnswer = 0;

function step(): void {
  sinceAnswer += 1;
  if (stepsLeft-- > 1) return;
  appendFileSync(orders.log, `dead ${sinceAnswer}\n`);
  process.kill(process.pid, "SIGKILL");
}

function note(what: string, asked: string): void {
  sinceAnswer = 0;
  appendFileSync(orders.log, `${what} ${createHash("sha256").update(asked).digest("hex")}\n`);
  if (orders.stepsAfterAnswer !== null && stepsLeft === Number.POSITIVE_INFINITY)
    stepsLeft = orders.stepsAfterAnswer;
}

/** Repeats names in its sources, which the gate asks for. */
const complete: Complete = async ({ system, user, model }) => {
  note("text", `${system}\n${user}`);
  const names = [...new Set(user.match(/fact-\d+-\d+/g))].slice(0, MAX_NAMES);
  return {
    kind: "text",
    text: `The team worked on these in that time: ${names.join(" ")}.\nExpand for details about: facts`,
    model: model ?? { provider: "test", model: "tiny" },
    inputTokens: 1_000,
    outputTokens: 100,
  };
};

const embed: Embed = async ({ texts }) => {
  note("vectors", texts.join("\n"));
  return {
    kind: "vectors",
    vectors: texts.map((text) => Float32Array.of(text.length, 1)),
    usage: { inputTokens: 10 },
  };
};

const openWatched = watchStores(openStore, async (_verb, run) => {
  step();
  const result = await run();
  step();
  return result;
});

const { settings } = resolveSettings({
  env: {},
  config: {
    databasePath: orders.database,
    summaryModel: "test/tiny",
    leafChunkTokens: 1_000,
    leafTargetTokens: 300,
    embedding: { model: "tiny-vectors", baseUrl: "http://127.0.0.1:9/v1" },
  },
});
const engine = await makeOpenEngine({ openStore: openWatched, workerUrl: new URL(import.meta.url) })({
  database: orders.database,
  thread: false,
  settings,
  complete,
  embed,
  clock: {
    now: () => Date.now() + orders.aheadMs,
    random: (size) => crypto.getRandomValues(new Uint8Array(size)),
  },
});
const rounds = new WorkerRounds({
  engine,
  budgetTokens: BUDGET,
  embeds: true,
  signal: new AbortController().signal,
  onEvent: (event) => {
    if (event.kind === "failed") throw event.error;
  },
});
while (await rounds.run());
await engine.close();

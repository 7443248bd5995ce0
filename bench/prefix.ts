/**
 * How much of a request a provider's prompt cache can reuse from the previous request: a conversation of 1,000 turns of about 1,000 tokens
 * passes through the engine turn by turn, stored, folded in idle time when due, assembled. The result is the longest prefix that two requests
 * have in common, byte for byte in the JSON of their messages, as a share of the later request's tokens.
 *
 * `npm run bench -- prefix [--windows 200000,64000,32000] [--turns 1000]`
 */
import { estimateTextTokens } from "@lossless/core";
import { openEngine } from "lossless-claw";
import type { ContextMessage, Engine } from "@lossless/core";
import { makeTemporaryFolder } from "@lossless/testkit/temporary.ts";
import { MessageSource, TURN_MESSAGES } from "./archive-messages.ts";
import type { GeneratedMessage } from "./archive-messages.ts";
import { median, round, showProgress } from "./history.ts";
import type { BenchResult } from "./report.ts";

type Row = Record<string, string | number>;

const DEFAULT_WINDOWS = [200_000, 64_000, 32_000];
const DEFAULT_TURNS = 1_000;
const TURN_TOKENS = 1_000;
/** Only the window of the goal has one. */
const GOAL_WINDOW = 200_000;
const MIN_SHARE = 0.95;
const SESSION = { key: "agent:main:bench", id: "bench", owner: "main" };

export async function run(args: readonly string[] = []): Promise<BenchResult> {
  const windows = readNumbers(args, "--windows") ?? DEFAULT_WINDOWS;
  const [turns = DEFAULT_TURNS] = readNumbers(args, "--turns") ?? [];
  const rows: Row[] = [];
  for (const window of windows) rows.push(await measureWindow(window, turns));
  showProgress("");
  return { name: "prefix", rows, notes: NOTES };
}

const NOTES = [
  "Shared: the mean share of a request's tokens that are a byte-identical prefix of the request before. Broken: requests that share less than half.",
  "Folds per 100 turns: requests before which a fold changed the context.",
  "Summaries are extractive: no model is asked. Folding happens between two turns, as in the background of a host.",
];

function readNumbers(args: readonly string[], name: string): number[] | null {
  const at = args.indexOf(name);
  if (at < 0) return null;
  const numbers = (args[at + 1] ?? "").split(",").map(Number);
  if (numbers.some((number) => !Number.isInteger(number) || number < 1)) {
    throw new Error(`cannot measure ${name} ${args[at + 1]}: name whole numbers, with commas between`);
  }
  return numbers;
}

async function measureWindow(window: number, turns: number): Promise<Row> {
  using folder = makeTemporaryFolder("lossless-bench-");
  const engine = await openEngine({ database: folder.file("lcm.db"), thread: false });
  try {
    const times: number[] = [];
    const shares: number[] = [];
    const tokens: number[] = [];
    const source = new TurnSource();
    let before: Request | null = null;
    let revision = "";
    let folds = 0;
    let stored = 0;
    for (let turn = 1; turn <= turns; turn++) {
      showProgress(`${window} tokens: turn ${turn}/${turns}`);
      stored += await playTurn(engine, source, window);
      const start = performance.now();
      const context = await engine.assemble({ conversationId: 1, budgetTokens: window });
      times.push(performance.now() - start);
      const request = new Request(context?.messages ?? []);
      if (before !== null) shares.push(request.shareWith(before));
      tokens.push(request.tokens);
      before = request;
      const [, current = ""] = (context?.epoch ?? "").split(":");
      if (turn > 1 && current !== revision) folds++;
      revision = current;
    }
    const { summaries } = await engine.status();
    const shared = shares.reduce((sum, share) => sum + share, 0) / shares.length;
    return {
      window,
      turns,
      "stored tokens": stored,
      "mean request": round(tokens.reduce((sum, count) => sum + count, 0) / tokens.length),
      "largest request": Math.max(...tokens),
      summaries,
      "folds per 100 turns": round((100 * folds) / turns, 1),
      "assemble ms": round(median(times), 1),
      shared: `${(100 * shared).toFixed(1)} %`,
      broken: shares.filter((share) => share < 0.5).length,
      ...(window === GOAL_WINDOW
        ? { goal: `≥ ${100 * MIN_SHARE} %`, holds: shared >= MIN_SHARE ? "yes" : "NO" }
        : {}),
    };
  } finally {
    await engine.close();
  }
}

/** Stores a turn, then does due folds before the next request. */
async function playTurn(engine: Engine, source: TurnSource, budgetTokens: number): Promise<number> {
  const messages = source.take();
  await engine.ingest({
    session: SESSION,
    messages: messages.map(({ eventId, message }) => ({ eventId, message })),
  });
  await engine.maintain({ conversationId: 1, budgetTokens });
  return messages.reduce((sum, { text }) => sum + estimateTextTokens(text), 0);
}

/** Turns of about the same size: as many exchanges as needed. */
class TurnSource {
  readonly #source = new MessageSource(1);
  #owed = 0;

  take(): GeneratedMessage[] {
    const turn: GeneratedMessage[] = [];
    this.#owed += TURN_TOKENS;
    do {
      const messages = this.#source.take(TURN_MESSAGES);
      turn.push(...messages);
      for (const { text } of messages) this.#owed -= estimateTextTokens(text);
    } while (this.#owed > 0);
    return turn;
  }
}

/** A request: the JSON of each message, and its tokens. */
class Request {
  readonly tokens: number;
  readonly #texts: readonly string[];
  readonly #counts: readonly number[];

  constructor(messages: readonly ContextMessage[]) {
    this.#texts = messages.map((message) => JSON.stringify(message));
    this.#counts = this.#texts.map(countOnce);
    this.tokens = this.#counts.reduce((sum, count) => sum + count, 0);
  }

  shareWith(before: Request): number {
    let shared = 0;
    for (const [at, text] of this.#texts.entries()) {
      const other = before.#texts[at] ?? "";
      if (other === text) shared += this.#counts[at] ?? 0;
      else return (shared + estimateTextTokens(text.slice(0, countEqual(text, other)))) / this.tokens;
    }
    return 1;
  }
}

const counts = new Map<string, number>();

/** Cached: most messages recur in the next request. */
function countOnce(text: string): number {
  let count = counts.get(text);
  if (count === undefined) {
    if (counts.size > 10_000) counts.clear();
    count = estimateTextTokens(text);
    counts.set(text, count);
  }
  return count;
}

function countEqual(a: string, b: string): number {
  let at = 0;
  while (at < a.length && a[at] === b[at]) at++;
  return at;
}

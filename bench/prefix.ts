/**
 * How much of a request a provider's prompt cache can reuse from the previous request: a conversation of 1,000 turns of about 1,000 tokens
 * passes through the engine turn by turn, stored, folded in idle time when due, assembled. The result is the longest prefix that two requests
 * have in common, byte for byte in the JSON of their messages, as a share of the later request's tokens. Within an epoch nothing of it may change.
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

const DEFAULT_WINDOWS = [200_000, 64_000, 32_000];
const DEFAULT_TURNS = 1_000;
const TURN_TOKENS = 1_000;
/** The share of a request that must be the prefix of the one before: folds are rarer in a large window. */
const MIN_SHARE = { large: 0.95, small: 0.75 };
const LARGE_WINDOW = 200_000;
/** What smaller windows must reach over the default number of turns; a shorter conversation begins with large steps. */
const LONG_SHARES = new Map([
  [64_000, 0.93],
  [32_000, 0.853],
]);
const SESSION = { key: "agent:main:bench", id: "bench", owner: "main" };

export async function run(args: readonly string[] = []): Promise<BenchResult> {
  const windows = readNumbers(args, "--windows") ?? DEFAULT_WINDOWS;
  const [turns = DEFAULT_TURNS] = readNumbers(args, "--turns") ?? [];
  const measured: MeasuredWindow[] = [];
  for (const window of windows) measured.push(await measureWindow(window, turns));
  showProgress("");
  if (!measured.every(isReached)) process.exitCode = 1;
  return { name: "prefix", rows: measured.map(renderWindow), notes: NOTES };
}

const NOTES = [
  "Shared: the mean share of a request's tokens that are a byte-identical prefix of the request before. Broken: requests that share less than half.",
  "Changed: requests with other bytes than the one before in the same epoch, the last message left out, because the next may be joined to it.",
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

export interface MeasuredWindow {
  readonly window: number;
  readonly turns: number;
  readonly stored: number;
  /** Tokens of each request. */
  readonly tokens: readonly number[];
  readonly summaries: number;
  readonly folds: number;
  readonly assembleMs: number;
  /** The mean share of a request that is the prefix of the one before. */
  readonly shared: number;
  /** Requests that share less than half. */
  readonly broken: number;
  /** Requests whose front has other bytes than that of the one before in the same epoch. */
  readonly changed: number;
}

const leastShare = (window: number): number => (window >= LARGE_WINDOW ? MIN_SHARE.large : MIN_SHARE.small);

export const isKept = ({ window, shared, changed }: MeasuredWindow): boolean =>
  changed === 0 && shared >= leastShare(window);

const goalOf = ({ window, turns }: MeasuredWindow): number =>
  (turns >= DEFAULT_TURNS ? LONG_SHARES.get(window) : undefined) ?? leastShare(window);

const isReached = (measured: MeasuredWindow): boolean =>
  isKept(measured) && measured.shared >= goalOf(measured);

const renderWindow = (measured: MeasuredWindow): Record<string, string | number> => ({
  window: measured.window,
  turns: measured.turns,
  "stored tokens": measured.stored,
  "mean request": round(measured.tokens.reduce((sum, count) => sum + count, 0) / measured.tokens.length),
  "largest request": Math.max(...measured.tokens),
  summaries: measured.summaries,
  "folds per 100 turns": round((100 * measured.folds) / measured.turns, 1),
  "assemble ms": round(measured.assembleMs, 1),
  shared: `${(100 * measured.shared).toFixed(1)} %`,
  broken: measured.broken,
  changed: measured.changed,
  goal: `≥ ${round(100 * goalOf(measured), 1)} %, changed 0`,
  holds: isReached(measured) ? "yes" : "NO",
});

export async function measureWindow(
  window: number,
  turns: number,
  { folds: isFolded }: { readonly folds: boolean } = { folds: true },
): Promise<MeasuredWindow> {
  using folder = makeTemporaryFolder("lossless-bench-");
  const engine = await openEngine({ database: folder.file("lcm.db"), thread: false });
  try {
    const times: number[] = [];
    const shares: number[] = [];
    const tokens: number[] = [];
    const source = new TurnSource();
    let before: Request | null = null;
    let epoch = "";
    let [folds, changed, stored] = [0, 0, 0];
    for (let turn = 1; turn <= turns; turn++) {
      showProgress(`${window} tokens: turn ${turn}/${turns}`);
      stored += await playTurn(engine, source);
      // As in the idle time of a host.
      if (isFolded) await engine.maintain({ conversationId: 1, budgetTokens: window });
      const start = performance.now();
      const context = await engine.assemble({ conversationId: 1, budgetTokens: window });
      times.push(performance.now() - start);
      const request = new Request(context?.messages ?? []);
      const current = context?.epoch ?? "";
      if (before !== null) {
        shares.push(request.shareWith(before));
        if (revisionOf(current) !== revisionOf(epoch)) folds++;
        if (current === epoch && !request.continues(before)) changed++;
      }
      tokens.push(request.tokens);
      before = request;
      epoch = current;
    }
    const { summaries } = await engine.status();
    return {
      window,
      turns,
      stored,
      tokens,
      summaries,
      folds,
      assembleMs: median(times),
      shared: shares.reduce((sum, share) => sum + share, 0) / shares.length,
      broken: shares.filter((share) => share < 0.5).length,
      changed,
    };
  } finally {
    await engine.close();
  }
}

/** The part of an epoch that changes with every fold. */
const revisionOf = (epoch: string): string => epoch.split(":")[1] ?? "";

async function playTurn(engine: Engine, source: TurnSource): Promise<number> {
  const messages = source.take();
  await engine.ingest({
    session: SESSION,
    messages: messages.map(({ eventId, message }) => ({ eventId, message })),
  });
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

  /** Whether it begins with all of another one but its last message. */
  continues(before: Request): boolean {
    return before.#texts.slice(0, -1).every((text, at) => text === this.#texts[at]);
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

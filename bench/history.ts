/**
 * Long conversations for the benchmarks of folding and assembling: short messages, stored fast, and a summariser that takes no time. They
 * measure the engine itself; no model and no extractive summariser is involved.
 */
import { estimateTextTokens, resolveSettings } from "@lossless/core";
import type { ConversationRow, Engine, SessionRef, Settings } from "@lossless/core";
import type { Store } from "@lossless/core/ports";
import { createLocalEngine } from "@lossless/core/testing";
import { SqliteStore } from "@lossless/sqlite";
import type { Summarize } from "@lossless/core/testing";
import { makeRandom } from "@lossless/testkit/random.ts";
import { makeTemporaryFolder } from "@lossless/testkit/temporary.ts";

const SESSION: SessionRef = { key: "agent:main:bench", id: "bench", owner: "main" };
const BATCH = 2_000;
/** Short enough to be stored without compression: a million of them in about a minute. */
const SHORT_WORDS = 4;
const START_MS = Date.UTC(2026, 0, 5, 8);

const WORDS =
  `queue worker retry the of and to in is it for on with as this be at by not from are if we can will file error test so an but
   has when which all run code was line set use new value one then out do no up only after call type read name its data path check
   return first into build change more need fix should list same state time before now see result must back where message server`
    .trim()
    .split(/\s+/);

/** One archive in its own folder, whose summaries take no time. */
export class Archive {
  readonly path: string;
  readonly store: Store;
  readonly engine: Engine;
  readonly settings: Settings;
  #folder = makeTemporaryFolder("lossless-bench-");
  #random = makeRandom(3);
  #stored = 0;

  constructor() {
    this.path = this.#folder.file("lcm.db");
    this.settings = resolveSettings({
      env: {},
      config: { databasePath: this.path, sweepDeadlineMs: 3_600_000 },
    }).settings;
    this.store = new SqliteStore({ path: this.path, filesDir: this.#folder.file("files"), create: true });
    const { store, settings } = this;
    this.engine = createLocalEngine({ store, settings, summarize: summarizeInstantly });
  }

  get stored(): number {
    return this.#stored;
  }

  /** Appends short messages, alternating user and assistant. */
  async addShort(count: number, onProgress: (stored: number) => void = () => undefined): Promise<void> {
    for (let left = count; left > 0; left -= BATCH) {
      const messages = Array.from({ length: Math.min(BATCH, left) }, () => this.#makeShort());
      await this.add(messages);
      onProgress(this.#stored);
    }
  }

  async add(messages: readonly { eventId: string; bytes: Uint8Array }[]): Promise<void> {
    await this.engine.ingest({ session: SESSION, messages });
    this.#stored += messages.length;
  }

  /** Forces indexing now: it normally runs shortly after storing and must not count in the measurement. */
  async settle(): Promise<void> {
    await this.store.flushIndex();
  }

  async conversation(): Promise<ConversationRow> {
    const conversation = await this.store.readConversation(1);
    if (!conversation) throw new Error("cannot measure: nothing was stored");
    return conversation;
  }

  async close(): Promise<void> {
    await this.engine.close();
    this.#folder[Symbol.dispose]();
  }

  #made = 0;

  #makeShort(): { eventId: string; bytes: Uint8Array } {
    const n = ++this.#made;
    const role = n % 2 === 1 ? "user" : "assistant";
    const message = {
      role,
      content: makeText(this.#random.below, SHORT_WORDS),
      timestamp: START_MS + n * 1_000,
    };
    return { eventId: `short-${n}`, bytes: Buffer.from(JSON.stringify(message)) };
  }
}

function makeText(below: (limit: number) => number, words: number): string {
  let text = "";
  for (let i = 0; i < words; i++) text += `${WORDS[below(WORDS.length)]} `;
  return text.trimEnd();
}

const texts = new Map<number, string>();

/** A text of about this many tokens; made once, so that making it does not count in the measurement. */
export function textOf(tokens: number): string {
  let text = texts.get(tokens);
  if (text === undefined) {
    const { below } = makeRandom(tokens);
    text = makeText(below, tokens);
    while (estimateTextTokens(text) > tokens) text = text.slice(0, text.lastIndexOf(" "));
    texts.set(tokens, text);
  }
  return text;
}

const summarizeInstantly: Summarize = (request) => {
  const content = textOf(Math.floor(request.targetTokens / 100) * 100);
  return Promise.resolve({ content, tokens: request.targetTokens, model: "bench/instant", level: "normal" });
};

/** Processor time of this process so far: unlike wall time it excludes the load of other processes. */
export function processorMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
}

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1
    ? (sorted[middle] ?? 0)
    : ((sorted[middle - 1] ?? 0) + (sorted[middle] ?? 0)) / 2;
}

export const round = (value: number, digits = 0): number => Number(value.toFixed(digits));

export const judge = (value: number, limit: number): Record<string, string> => ({
  goal: `≤ ${limit}`,
  holds: value <= limit ? "yes" : "NO",
});

/** `--sizes 2000,20000`: whole numbers from 2,000 up. */
export function readSizes(args: readonly string[], defaults: readonly number[]): number[] {
  const at = args.indexOf("--sizes");
  if (at < 0) return [...defaults];
  const text = args[at + 1] ?? "";
  const sizes = text.split(",").map(Number);
  if (sizes.some((size) => !Number.isInteger(size) || size < 2_000)) {
    throw new Error(`cannot measure --sizes ${text}: name whole numbers from 2000 up, with commas between`);
  }
  return sizes;
}

/** `--rounds 24` */
export function readRounds(args: readonly string[], rounds: number): number {
  const at = args.indexOf("--rounds");
  const given = at < 0 ? rounds : Number(args[at + 1]);
  if (!Number.isInteger(given) || given < 1)
    throw new Error(`cannot measure --rounds ${args[at + 1]}: name a whole number`);
  return given;
}

/** Progress is printed only for people: the table and the JSON stay clean. */
export function showProgress(text: string): void {
  if (process.stderr.isTTY) process.stderr.write(`\r\u001b[K${text}`);
}

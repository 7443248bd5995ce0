/**
 * A host that runs for long, as a process of its own: turns, contexts, searches, folds, something forgotten now and then, new sessions, and the
 * archive closed and opened again. From time to time it sends its parent a sample: what it holds, and what each kind of call cost since the last one.
 *
 * A call costs the processor time of all threads of this process: what others do on the machine does not count.
 */
import { readdirSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { makeRandom } from "@lossless/testkit/random.ts";
import { openEngine, resolveSettings } from "../src/index.ts";
import type { Engine } from "../src/index.ts";

export interface LastingOrders {
  readonly database: string;
  /** Whichever comes last. */
  readonly minutes: number;
  readonly cycles: number;
  readonly samples: number;
}

/** Samples are taken when nothing is under way. */
export interface LastingSample {
  readonly seconds: number;
  readonly cycles: number;
  readonly messages: number;
  readonly heapMb: number;
  readonly memoryMb: number;
  /** Open file descriptors where the system tells, and what keeps the event loop alive. */
  readonly files: number;
  readonly handles: number;
  /** Milliseconds of each call since the sample before. */
  readonly calls: Readonly<Record<string, readonly number[]>>;
}

const SETTINGS = resolveSettings({
  env: {},
  config: { freshTailCount: 8, leafChunkTokens: 2_000, leafTargetTokens: 300, condensedTargetTokens: 400 },
}).settings;
const BUDGET_TOKENS = 12_000;
const CYCLES_PER_SESSION = 40;
const CYCLES_PER_FORGET = 8;
const CYCLES_PER_OPENING = 20;
/** Forgetting writes the whole file again, so that no freed page holds the text: its cost is divided by the size of the archive. */
const FORGET = "forget, for a thousand messages";
const SYLLABLES = "ban der fol gim har jel kom lun mar nep or pas quil ros sev tan ul vor wex yar".split(" ");
/** The regular expressions' worker and the index wait a moment before they rest. */
const REST_MS = 100;

const random = makeRandom(21);
const WORDS = Array.from({ length: 3_000 }, () =>
  Array.from({ length: 2 + random.below(2) }, () => random.pick(SYLLABLES)).join(""),
);
/** Few words often, most of them rarely. */
const drawWord = (): string => WORDS[Math.floor(WORDS.length ** random.next()) - 1] ?? "the";
const drawText = (words: number): string => Array.from({ length: words }, drawWord).join(" ");

class LastingHost {
  readonly #database: string;
  readonly #calls: Record<string, number[]> = {};
  #engine: Engine | null = null;
  #cycle = 0;
  #stored: number[] = [];

  constructor(database: string) {
    this.#database = database;
  }

  get cycles(): number {
    return this.#cycle;
  }

  get #session(): { key: string; id: string; owner: string } {
    const id = `session-${Math.floor(this.#cycle / CYCLES_PER_SESSION)}`;
    return { key: `agent:main:${id}`, id, owner: "main" };
  }

  async #time<T>(name: string, work: () => Promise<T>): Promise<T> {
    const before = process.cpuUsage();
    const result = await work();
    const { user, system } = process.cpuUsage(before);
    (this.#calls[name] ??= []).push((user + system) / 1000);
    return result;
  }

  async open(): Promise<Engine> {
    this.#engine = await openEngine({ database: this.#database, settings: SETTINGS });
    return this.#engine;
  }

  async close(): Promise<void> {
    await this.#engine?.close();
    this.#engine = null;
  }

  async playCycle(): Promise<void> {
    const engine = this.#engine ?? (await this.#time("open", () => this.open()));
    const session = this.#session;
    const conversationId = await this.#time("turn", () => this.#storeTurn(engine));
    await this.#time("assemble", () => engine.assemble({ conversationId, budgetTokens: BUDGET_TOKENS }));
    await engine.flushIndex();
    await this.#time("search", () => engine.grep({ session, pattern: drawText(2), mode: "full_text" }));
    await engine.grep({ session, pattern: `${drawWord()}\\s+${drawWord()}`, timeoutMs: 1_000 });
    if (this.#cycle % 4 === 3)
      await this.#time("fold", () => engine.compact({ conversationId, budgetTokens: BUDGET_TOKENS }));
    if (this.#cycle % CYCLES_PER_FORGET === CYCLES_PER_FORGET - 1)
      await this.#time(FORGET, () =>
        engine.forget({ messageIds: [random.pick(this.#stored)], reason: "soak" }),
      );
    this.#cycle += 1;
    if (this.#cycle % CYCLES_PER_OPENING === 0) await this.close();
  }

  async #storeTurn(engine: Engine): Promise<number> {
    const id = (step: number): string => `${this.#cycle}-${step}`;
    const call = `call-${this.#cycle}`;
    const messages = [
      { role: "user", content: drawText(30) },
      { role: "assistant", content: [{ type: "toolCall", id: call, name: "bash", arguments: {} }] },
      { role: "toolResult", toolCallId: call, toolName: "bash", content: drawText(100 + random.below(400)) },
      { role: "assistant", content: drawText(60) },
    ].map((message, step) => ({ eventId: id(step), message }));
    const { conversationId, results } = await engine.ingest({
      session: this.#session,
      messages,
      turn: { advancementKey: `turn-${this.#cycle}` },
    });
    // What is forgotten is of the last hundred turns, so that this list does not grow.
    this.#stored = [...this.#stored, ...results.map(({ messageId }) => messageId)].slice(-400);
    return conversationId;
  }

  /** With the engine closed: then only what was left behind is open. */
  async sample(startedAt: number): Promise<LastingSample> {
    const engine = this.#engine ?? (await this.open());
    const { messages } = await engine.status();
    await this.close();
    await sleep(REST_MS);
    globalThis.gc?.();
    const { heapUsed, external, rss } = process.memoryUsage();
    const calls = Object.fromEntries(
      Object.entries(this.#calls).map(([name, times]) => {
        const share = name === FORGET ? messages / 1000 : 1;
        return [name, times.splice(0).map((time) => time / share)];
      }),
    );
    return {
      seconds: (performance.now() - startedAt) / 1000,
      cycles: this.#cycle,
      messages,
      heapMb: (heapUsed + external) / 1e6,
      memoryMb: rss / 1e6,
      files: process.platform === "linux" ? readdirSync("/proc/self/fd").length : 0,
      handles: process.getActiveResourcesInfo().length,
      calls,
    };
  }
}

async function last({ database, minutes, cycles, samples }: LastingOrders): Promise<void> {
  const host = new LastingHost(database);
  const startedAt = performance.now();
  const share = (): number =>
    Math.min(
      cycles === 0 ? 1 : host.cycles / cycles,
      minutes === 0 ? 1 : (performance.now() - startedAt) / 60_000 / minutes,
    );
  for (let taken = 0; taken < samples;) {
    await host.playCycle();
    if (share() * samples < taken + 1) continue;
    taken += 1;
    process.send?.(await host.sample(startedAt));
  }
  await host.close();
}

if (process.argv[1] === import.meta.filename && process.send) {
  process.on("disconnect", () => process.exit(0));
  await last(JSON.parse(process.argv[2] ?? "{}") as LastingOrders);
  process.disconnect();
}

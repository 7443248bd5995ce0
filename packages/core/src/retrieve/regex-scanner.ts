/**
 * Runs regular expressions over many texts in a thread that is ended when a pattern takes too long. The thread keeps texts by group (a
 * conversation) up to a limit, so that a second search reads only what is new; left alone for a while, it ends and gives its memory back.
 */
import { setImmediate } from "node:timers/promises";
import { Worker } from "node:worker_threads";
import { readSearchText } from "../message/normalize.ts";
import type { ScannedText } from "../store/recall.ts";
import type {
  FromScanner,
  ScanFilter,
  ScanMatch,
  ScanMessages,
  ScanText,
  ScanTexts,
  ToScanner,
} from "./regex-worker.ts";

/** About so many characters of text the thread keeps; what is on its way when they are reached is kept too. */
const KEPT_CHARS = 64_000_000;
const IDLE_MS = 120_000;

/** Messages of one group that are new since the last search, oldest first. */
export interface GroupTexts {
  readonly group: number;
  /** Continues behind the last one that was kept. */
  read(afterSeq: number): AsyncIterable<readonly ScannedText[]>;
}

export interface ScanOutcome {
  readonly matches: ScanMatch[];
  readonly tested: number;
  /** Set when it was stopped before everything had been tested. */
  readonly stopped: "timeout" | "aborted" | null;
}

interface Limits {
  readonly deadline: number;
  readonly signal?: AbortSignal | undefined;
}

export class RegexScanner {
  #workerUrl: URL;
  #worker: Worker | null = null;
  /** A thread takes a while to start; until then texts are read here. */
  #isReady = false;
  #keptSeq = new Map<number, number>();
  #keptChars = 0;
  /** Set when there was no room for a text. */
  #isFull = false;
  #nextJob = 1;
  #idle: NodeJS.Timeout | null = null;
  #queue: Promise<unknown> = Promise.resolve();

  constructor(
    workerUrl: URL = new URL(
      import.meta.url.endsWith(".ts") ? "./regex-worker.ts" : "./regex-worker.js",
      import.meta.url,
    ),
  ) {
    this.#workerUrl = workerUrl;
  }

  /** Tests texts; one pattern at a time. */
  scan(pattern: string, texts: readonly ScanText[], limits: Limits): Promise<ScanOutcome> {
    return this.#enqueue(() =>
      this.#run({ pattern, texts: toColumns(texts), groups: [], filter: {} }, limits),
    );
  }

  /** Tests all texts of groups, reading only those the thread does not have. */
  scanGroups(
    pattern: string,
    groups: readonly GroupTexts[],
    filter: ScanFilter,
    limits: Limits,
  ): Promise<ScanOutcome> {
    return this.#enqueue(() => this.#scanGroups(pattern, groups, filter, limits));
  }

  /** Whether the thread has the texts of all groups, but for those that are new. */
  keepsAll(groups: readonly number[]): boolean {
    return !this.#isFull && groups.every((group) => this.#keptSeq.has(group));
  }

  /** Forgets all texts, once the search that is running has ended. */
  drop(): Promise<void> {
    return this.#enqueue(() => this.#end());
  }

  async close(): Promise<void> {
    if (this.#idle) clearTimeout(this.#idle);
    await this.#end();
  }

  #enqueue<T>(work: () => Promise<T>): Promise<T> {
    const result = this.#queue.then(work);
    this.#queue = result.catch(() => undefined);
    return result;
  }

  async #scanGroups(
    pattern: string,
    groups: readonly GroupTexts[],
    filter: ScanFilter,
    limits: Limits,
  ): Promise<ScanOutcome> {
    const total: { matches: ScanMatch[]; tested: number } = { matches: [], tested: 0 };
    const add = (outcome: ScanOutcome): ScanOutcome["stopped"] => {
      total.matches.push(...outcome.matches);
      total.tested += outcome.tested;
      return outcome.stopped;
    };
    const kept: number[] = [];
    for (const { group, read } of groups) {
      let stopped: ScanOutcome["stopped"] = null;
      for await (const page of read(this.#keptSeq.get(group) ?? 0)) {
        // What the thread says is heard between two pages.
        await setImmediate();
        if (!this.#keep(group, page)) {
          const texts = this.#pack(page);
          stopped = add(await this.#run({ pattern, texts, groups: [], filter }, limits));
        } else if (isOver(limits)) stopped = "timeout";
        if (stopped !== null) return { ...total, stopped };
      }
      if (this.#keptSeq.has(group)) kept.push(group);
    }
    const stopped = add(await this.#run({ pattern, texts: toColumns([]), groups: kept, filter }, limits));
    return { ...total, stopped };
  }

  /** Hands messages to the thread for good, while there is room. */
  #keep(group: number, page: readonly ScannedText[]): boolean {
    // Once a page found no room, none behind it may: what is kept of a group must have no gap.
    this.#isFull ||= this.#keptChars >= KEPT_CHARS;
    if (this.#isFull) return false;
    this.#post({ kind: "keep", group, texts: this.#pack(page) });
    this.#keptSeq.set(group, page.at(-1)?.seq ?? 0);
    return true;
  }

  #pack(page: readonly ScannedText[]): ScanTexts | ScanMessages {
    const arrivals = page.map(({ arrival }) => arrival);
    const rest = {
      ids: page.map(({ messageId }) => messageId),
      createdAts: page.map(({ createdAt }) => createdAt),
      roles: page.map(({ role }) => role),
    };
    return this.#isReady
      ? { ...rest, arrivals }
      : { ...rest, texts: arrivals.map((arrival) => readSearchText(arrival)) };
  }

  #run(job: Omit<ToScanner & { kind: "scan" }, "kind" | "job">, limits: Limits): Promise<ScanOutcome> {
    const id = this.#nextJob++;
    const matches: ScanMatch[] = [];
    let tested = 0;
    const worker = this.#open();
    return new Promise((resolve, reject) => {
      const finish = (stopped: ScanOutcome["stopped"]): void => {
        clearTimeout(timer);
        limits.signal?.removeEventListener("abort", abort);
        worker.off("message", receive);
        worker.off("error", fail);
        worker.unref();
        this.#restLater();
        resolve({ matches, tested, stopped });
      };
      const stop = (why: "timeout" | "aborted") => (): void => void this.#end().then(() => finish(why));
      const abort = stop("aborted");
      const fail = (error: Error): void => {
        void this.#end();
        clearTimeout(timer);
        reject(error);
      };
      const receive = (message: FromScanner): void => {
        if (message.kind === "kept" || message.kind === "ready" || message.job !== id) return;
        if (message.kind === "done") return finish(null);
        for (const match of message.matches) matches.push(match);
        tested += message.tested;
      };
      const timer = setTimeout(stop("timeout"), Math.max(1, limits.deadline - Date.now()));
      worker.ref();
      worker.on("message", receive);
      worker.on("error", fail);
      limits.signal?.addEventListener("abort", abort, { once: true });
      if (limits.signal?.aborted) abort();
      else this.#post({ kind: "scan", job: id, ...job });
    });
  }

  #post(message: ToScanner): void {
    this.#open().postMessage(message);
  }

  #open(): Worker {
    if (this.#idle) clearTimeout(this.#idle);
    this.#worker ??= this.#start();
    this.#worker.unref();
    return this.#worker;
  }

  #start(): Worker {
    const worker = new Worker(this.#workerUrl, { name: "lossless-regex" });
    worker.on("message", (message: FromScanner) => {
      if (worker !== this.#worker) return;
      if (message.kind === "kept") this.#keptChars += message.chars;
      if (message.kind === "ready") this.#isReady = true;
    });
    return worker;
  }

  #restLater(): void {
    if (this.#idle) clearTimeout(this.#idle);
    this.#idle = setTimeout(() => void this.#end(), IDLE_MS);
    this.#idle.unref();
  }

  /** Ends the thread, whatever it is doing. */
  async #end(): Promise<void> {
    const worker = this.#worker;
    this.#worker = null;
    this.#isReady = false;
    this.#keptSeq.clear();
    this.#keptChars = 0;
    this.#isFull = false;
    await worker?.terminate();
  }
}

function toColumns(texts: readonly ScanText[]): ScanTexts {
  return {
    ids: texts.map(({ id }) => id),
    createdAts: texts.map(({ createdAt }) => createdAt),
    roles: texts.map(({ role }) => role),
    texts: texts.map(({ text }) => text),
  };
}

const isOver = ({ deadline }: Limits): boolean => Date.now() >= deadline;

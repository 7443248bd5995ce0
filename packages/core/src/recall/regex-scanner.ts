/**
 * Runs regular expressions over texts in a thread that is ended when a pattern takes too long. The thread caches texts up to a limit, so
 * that a second search reads only the others; when idle for a while, it ends and frees its memory.
 */
import { Worker } from "node:worker_threads";
import type { FromScanner, ScanMatch, ScanTexts } from "./regex-worker.ts";

const IDLE_MS = 120_000;
/** What a text was read from is garbage at once. The default lets 100 MB of it pile up. */
const YOUNG_GENERATION_MB = 12;

export interface ScanText {
  readonly key: number;
  readonly createdAt: number;
  readonly text: string;
}

export interface ScanResult {
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
  /** Texts in the thread's cache. */
  readonly #kept = new Set<number>();
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

  /** Starts the thread, so that it is ready when the first texts have been found. */
  prepare(): void {
    if (this.#worker !== null) return;
    this.#open();
    this.#restLater();
  }

  /** Tests texts; one call at a time. */
  scan(pattern: string, texts: readonly ScanText[], limits: Limits): Promise<ScanResult> {
    const columns = {
      keys: texts.map(({ key }) => key),
      createdAts: texts.map(({ createdAt }) => createdAt),
      texts: texts.map(({ text }) => text),
    };
    return this.#enqueue(() => this.#run(pattern, columns, limits, false));
  }

  /**
   * Tests documents of the archive, which are cached while there is room. Those that were reported as cached and are not are read again.
   */
  scanDocuments(
    pattern: string,
    { keys, createdAts, texts }: ScanTexts,
    limits: Limits,
    read: (keys: readonly number[]) => Promise<ReadonlyMap<number, string>>,
  ): Promise<ScanResult> {
    return this.#enqueue(async () => {
      const lost = keys.filter((key, at) => texts[at] === null && !this.#kept.has(key));
      const again = lost.length === 0 ? new Map<number, string>() : await read(lost);
      const whole = texts.map((text, at) => text ?? again.get(keys[at] as number) ?? null);
      return this.#run(pattern, { keys, createdAts, texts: whole }, limits, true);
    });
  }

  #enqueue<T>(work: () => Promise<T>): Promise<T> {
    const result = this.#queue.then(work);
    this.#queue = result.catch(() => undefined);
    return result;
  }

  keeps(key: number): boolean {
    return this.#kept.has(key);
  }

  /** Drops all texts, once the running search has ended. */
  drop(): Promise<void> {
    return this.#enqueue(() => this.#end());
  }

  async close(): Promise<void> {
    if (this.#idle) clearTimeout(this.#idle);
    await this.#end();
  }

  #run(pattern: string, texts: ScanTexts, limits: Limits, keeps: boolean): Promise<ScanResult> {
    const id = this.#nextJob++;
    const matches: ScanMatch[] = [];
    let tested = 0;
    const worker = this.#open();
    return new Promise((resolve, reject) => {
      const finish = (stopped: ScanResult["stopped"]): void => {
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
        if (message.job !== id) return;
        if (message.kind === "done") {
          for (const key of message.kept) this.#kept.add(key);
          return finish(null);
        }
        for (const match of message.matches) matches.push(match);
        tested += message.tested;
      };
      const timer = setTimeout(stop("timeout"), Math.max(1, limits.deadline - Date.now()));
      worker.ref();
      worker.on("message", receive);
      worker.on("error", fail);
      limits.signal?.addEventListener("abort", abort, { once: true });
      if (limits.signal?.aborted) abort();
      else worker.postMessage({ job: id, pattern, keeps, ...texts });
    });
  }

  #open(): Worker {
    if (this.#idle) clearTimeout(this.#idle);
    this.#worker ??= new Worker(this.#workerUrl, {
      name: "lossless-regex",
      resourceLimits: { maxYoungGenerationSizeMb: YOUNG_GENERATION_MB },
    });
    this.#worker.unref();
    return this.#worker;
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
    this.#kept.clear();
    await worker?.terminate();
  }
}

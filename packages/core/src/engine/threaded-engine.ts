/**
 * The engine in worker threads: the same methods as the local one, each call one message to a worker and one back. One worker writes and
 * reads the cover; another, opened when first needed, serves search and proofs. So neither a slow query nor a lock wait ever blocks the
 * host's thread, and no search delays a commit. The table of verbs declares which worker serves what; nothing here knows any verb.
 */
import { Worker } from "node:worker_threads";
import type { Complete, CompleteResult } from "../model/complete.ts";
import type { Embed, EmbedResult } from "../model/embed.ts";
import { EngineError } from "../model/errors.ts";
import type { EventSink } from "../model/events.ts";
import { READER_PORT, VERBS, WRITER_PORT } from "./engine.ts";
import type { Engine } from "./engine.ts";
import type { WriterPort } from "./state.ts";
import { deserializeError, serializeError } from "./thread-messages.ts";
import type { FromWorker, HostCall, CallResult, ToWorker, WorkerStart } from "./thread-messages.ts";
import { joinRequest, makeMethods, splitRequest } from "./verb.ts";
import type { Callbacks, Verb } from "./verb.ts";

export interface ThreadOptions {
  readonly start: Omit<WorkerStart, "isReader">;
  readonly workerUrl: URL;
  readonly onEvent?: EventSink;
  readonly complete?: Complete | null;
  readonly embed?: Embed | null;
}

/** What the caller's thread does for its workers. */
interface HostPorts extends Pick<ThreadOptions, "onEvent" | "complete" | "embed"> {
  /** Has the writing thread serve a verb of its port. */
  readonly callWriter: (verb: keyof WriterPort, request: unknown, signal: AbortSignal) => Promise<unknown>;
}

interface Pending {
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: Error) => void;
  readonly onProgress: Callbacks["onProgress"];
}

/** The objects of a call are garbage as soon as it ends. The default lets 100 MB pile up, and a smaller limit slows no call. */
const YOUNG_GENERATION_MB = 8;

/** One worker and the calls waiting for its result. */
class EngineThread {
  #worker: Worker;
  #pending = new Map<number, Pending>();
  #nextId = 1;
  /** The requests of this worker to the caller's thread, by request id. */
  #served = new Map<number, AbortController>();
  #ended: Error | null = null;

  private constructor(worker: Worker) {
    this.#worker = worker;
  }

  static async open(workerUrl: URL, start: WorkerStart, host: HostPorts): Promise<EngineThread> {
    const worker = new Worker(workerUrl, {
      workerData: start,
      name: start.isReader ? "lossless-reader" : "lossless-engine",
      resourceLimits: { maxYoungGenerationSizeMb: YOUNG_GENERATION_MB },
    });
    const thread = new EngineThread(worker);
    const ready = new Promise<void>((resolve, reject) => {
      worker.on("message", (message: FromWorker) => {
        if (message.kind === "ready") resolve();
        else if (message.kind === "failed") reject(deserializeError(message.error));
        else thread.#receive(message, host);
      });
      worker.on("error", (error: Error) => {
        thread.#end(error);
        reject(error);
      });
      worker.on("exit", () => {
        const error = new EngineError("database_closed", "cannot use the engine: it was closed");
        thread.#end(error);
        reject(error);
      });
    });
    try {
      await ready;
    } catch (error) {
      await worker.terminate();
      throw error;
    }
    // An idle engine must not keep a process alive; calls in progress do.
    worker.unref();
    return thread;
  }

  call(name: string, verb: Verb, request: unknown): Promise<unknown> {
    if (this.#ended) return Promise.reject(this.#ended);
    if (!verb.post) return this.#post(name, splitRequest(verb, request), []);
    try {
      const { request: sent, transfer } = verb.post(request as never);
      return this.#post(name, { sent }, transfer);
    } catch (error) {
      return Promise.reject(error as Error);
    }
  }

  #post(
    verb: string,
    { sent, signal, onProgress }: ReturnType<typeof splitRequest>,
    transfer: readonly ArrayBuffer[],
  ): Promise<unknown> {
    const id = this.#nextId++;
    const message: ToWorker = {
      kind: "call",
      id,
      verb,
      request: sent,
      wantsProgress: onProgress !== undefined,
    };
    const cancel = (): void => this.#worker.postMessage({ kind: "cancel", id } satisfies ToWorker);
    return new Promise((resolve, reject) => {
      const settle = (): void => {
        this.#pending.delete(id);
        signal?.removeEventListener("abort", cancel);
        if (this.#pending.size === 0) this.#worker.unref();
      };
      this.#pending.set(id, {
        resolve: (value) => (settle(), resolve(value)),
        reject: (error) => (settle(), reject(error)),
        onProgress,
      });
      this.#worker.ref();
      this.#worker.postMessage(message, transfer);
      if (signal?.aborted) cancel();
      signal?.addEventListener("abort", cancel, { once: true });
    });
  }

  #receive(message: FromWorker, host: HostPorts): void {
    if (message.kind === "events") return message.events.forEach((event) => host.onEvent?.(event));
    if (message.kind === "ask-host") return void this.#serve(message.id, message.call, host);
    if (message.kind === "cancel-host") return this.#served.get(message.id)?.abort();
    if (message.kind === "ready" || message.kind === "failed") return;
    const pending = this.#pending.get(message.id);
    if (message.kind === "progress") pending?.onProgress?.(message.done, message.total);
    else if (message.kind === "result") {
      message.events.forEach((event) => host.onEvent?.(event));
      pending?.resolve(message.value);
    } else pending?.reject(deserializeError(message.error));
  }

  async #serve(id: number, call: HostCall, host: HostPorts): Promise<void> {
    const controller = new AbortController();
    this.#served.set(id, controller);
    const outcome = await serveWorker(call, host, controller.signal);
    this.#served.delete(id);
    this.#worker.postMessage({ kind: "served", id, outcome } satisfies ToWorker);
  }

  #end(error: Error): void {
    this.#ended ??= error;
    for (const pending of this.#pending.values()) pending.reject(error);
  }
}

async function serveWorker(call: HostCall, host: HostPorts, signal: AbortSignal): Promise<CallResult> {
  if (call.port !== "writer") return { value: await callModelSafely(call, host, signal) };
  try {
    return { value: await host.callWriter(call.verb, call.request, signal) };
  } catch (error) {
    return { error: serializeError(error) };
  }
}

/** A model port must not throw; if one does, it counts as an ordinary failure. */
async function callModelSafely(
  call: Exclude<HostCall, { port: "writer" }>,
  { complete, embed }: HostPorts,
  signal: AbortSignal,
): Promise<CompleteResult | EmbedResult> {
  try {
    const answer =
      call.port === "complete" ? complete?.(call.request, signal) : embed?.(call.request, signal);
    return (await answer) ?? { kind: "failure", failure: "unavailable", message: "no model is configured" };
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    return { kind: "failure", failure: "unavailable", message };
  }
}

export async function openThreadedEngine({ start, workerUrl, ...models }: ThreadOptions): Promise<Engine> {
  const host: HostPorts = {
    ...models,
    callWriter: (name, sent, signal) => {
      const verb = WRITER_PORT[name];
      return writer.call(name, verb, joinRequest(verb, sent, { signal }));
    },
  };
  const writer = await EngineThread.open(workerUrl, { ...start, isReader: false }, host);
  const threads = new Threads(writer, () => {
    const store = { ...start.store, readOnly: true, create: false };
    return EngineThread.open(workerUrl, { ...start, store, isReader: true }, host);
  });
  return makeMethods(VERBS, (name, verb, request) => threads.serve(name, verb, request));
}

/** The two threads, and which of them serves a call. */
class Threads {
  readonly #writer: EngineThread;
  readonly #openReader: () => Promise<EngineThread>;
  #reader: Promise<EngineThread> | null = null;
  /** The reading thread cannot write, so the writing one flushes the index whenever there may be unindexed messages. */
  #mayBeUnindexed = true;
  #flushing: Promise<unknown> = Promise.resolve();

  constructor(writer: EngineThread, openReader: () => Promise<EngineThread>) {
    this.#writer = writer;
    this.#openReader = openReader;
  }

  /** Not async itself: a suspended function keeps its arguments alive, and several large batches may be in progress. */
  serve(name: string, verb: Verb, request: unknown): Promise<unknown> {
    if (verb.thread === "reader") return this.#read(name, verb, request);
    if (verb.thread === "every") return this.#callEvery(name, verb);
    if (verb.erasesTexts) return this.#erase(name, verb, request);
    return this.#writer.call(name, verb, request).finally(() => {
      this.#mayBeUnindexed = true;
    });
  }

  async #read(name: string, verb: Verb, request: unknown): Promise<unknown> {
    if (verb.flushedIndex) await this.#flushIndex();
    return (await (this.#reader ??= this.#openOnce())).call(name, verb, request);
  }

  /** An archive that could not be opened is tried again at the next call. */
  #openOnce(): Promise<EngineThread> {
    const reader = this.#openReader();
    reader.catch(() => {
      if (this.#reader === reader) this.#reader = null;
    });
    return reader;
  }

  /** Callers that arrive while a flush is in progress wait for the same one. */
  #flushIndex(): Promise<unknown> {
    if (this.#mayBeUnindexed) {
      this.#mayBeUnindexed = false;
      const flushing = this.#writer.call("flushIndex", VERBS.flushIndex, undefined);
      flushing.catch(() => (this.#mayBeUnindexed = true));
      this.#flushing = flushing;
    }
    return this.#flushing;
  }

  async #erase(name: string, verb: Verb, request: unknown): Promise<unknown> {
    const result = await this.#writer.call(name, verb, request);
    await (await this.#findReader())?.call("dropTexts", READER_PORT.dropTexts, undefined);
    this.#mayBeUnindexed = true;
    return result;
  }

  async #callEvery(name: string, verb: Verb): Promise<unknown> {
    await (await this.#findReader())?.call(name, verb, undefined);
    return this.#writer.call(name, verb, undefined);
  }

  /** The reading thread, if there is one. */
  async #findReader(): Promise<EngineThread | null> {
    return (await this.#reader?.catch(() => null)) ?? null;
  }
}

/**
 * The engine behind threads: the same face as `LocalEngine`, every call one message to a worker and one back. One worker writes and
 * reads the cover; another, opened when first needed, serves search and proofs, so that neither a slow query nor a lock wait ever stops
 * the host's thread, and no search delays a commit.
 */
import { Worker } from "node:worker_threads";
import type { IngestRequest, IngestResult } from "./ingest.ts";
import type { Engine, ProgressFn } from "./engine.ts";
import { postArrivals } from "./post-arrivals.ts";
import { deserializeError } from "./thread-messages.ts";
import type { FromWorker, ModelCall, ToWorker, WorkerStart } from "./thread-messages.ts";
import { listBuffers } from "../bulk/index.ts";
import type { Complete, CompleteResult } from "../model/complete.ts";
import type { Embed, EmbedResult } from "../model/embed.ts";
import { EngineError } from "../model/errors.ts";
import type { EventSink } from "../model/events.ts";
import { checkQuestion } from "../retrieve/ask.ts";
import type { AskAnswer, AskRequest } from "../retrieve/ask.ts";
import type { GrepAnswer, GrepRequest } from "../retrieve/grep.ts";
import { NO_MEANING } from "../retrieve/meaning.ts";
import type { Meaning } from "../retrieve/meaning.ts";

export interface ThreadOptions {
  readonly start: WorkerStart;
  readonly workerUrl: URL;
  readonly onEvent?: EventSink;
  readonly complete?: Complete | null;
  readonly embed?: Embed | null;
}

interface Pending {
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: Error) => void;
  readonly onProgress: ProgressFn | undefined;
}

/** What a call leaves behind is garbage at once. The default lets 100 MB of it pile up, and no call is slower for less. */
const YOUNG_GENERATION_MB = 8;

/** One worker and the calls that wait for its answer. */
class EngineThread {
  #worker: Worker;
  #pending = new Map<number, Pending>();
  #nextId = 1;
  #completing = new Map<number, AbortController>();
  #ended: Error | null = null;

  private constructor(worker: Worker) {
    this.#worker = worker;
  }

  static async open(options: ThreadOptions, name: string): Promise<EngineThread> {
    const worker = new Worker(options.workerUrl, {
      workerData: options.start,
      name,
      resourceLimits: { maxYoungGenerationSizeMb: YOUNG_GENERATION_MB },
    });
    const thread = new EngineThread(worker);
    const ready = new Promise<void>((resolve, reject) => {
      worker.on("message", (message: FromWorker) => {
        if (message.kind === "ready") resolve();
        else if (message.kind === "failed") reject(deserializeError(message.error));
        else thread.#receive(message, options);
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
    // An idle engine must not keep a process alive; calls under way do.
    worker.unref();
    return thread;
  }

  call(method: string, request: unknown, options: CallOptions = {}): Promise<unknown> {
    if (this.#ended) return Promise.reject(this.#ended);
    const id = this.#nextId++;
    const { onProgress, signal, transfer } = options;
    const message: ToWorker = { kind: "call", id, method, request, wantsProgress: onProgress !== undefined };
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
      this.#worker.postMessage(message, transfer ?? []);
      if (signal?.aborted) cancel();
      signal?.addEventListener("abort", cancel, { once: true });
    });
  }

  #receive(message: FromWorker, options: ThreadOptions): void {
    if (message.kind === "events") return message.events.forEach((event) => options.onEvent?.(event));
    if (message.kind === "complete") return void this.#complete(message.id, message.call, options);
    if (message.kind === "complete-cancel") return this.#completing.get(message.id)?.abort();
    if (message.kind === "ready" || message.kind === "failed") return;
    const pending = this.#pending.get(message.id);
    if (message.kind === "progress") pending?.onProgress?.(message.done, message.total);
    else if (message.kind === "result") {
      message.events.forEach((event) => options.onEvent?.(event));
      pending?.resolve(message.value);
    } else pending?.reject(deserializeError(message.error));
  }

  async #complete(id: number, call: ModelCall, options: ThreadOptions): Promise<void> {
    const controller = new AbortController();
    this.#completing.set(id, controller);
    const result = await callSafely(call, options, controller.signal);
    this.#completing.delete(id);
    this.#worker.postMessage({ kind: "completed", id, result } satisfies ToWorker);
  }

  #end(error: Error): void {
    this.#ended ??= error;
    for (const pending of this.#pending.values()) pending.reject(error);
  }
}

/** A model port must not throw; one that does is a failure like any other. */
async function callSafely(
  call: ModelCall,
  { complete, embed }: ThreadOptions,
  signal: AbortSignal,
): Promise<CompleteResult | EmbedResult> {
  try {
    const answer =
      call.port === "complete" ? complete?.(call.request, signal) : embed?.(call.request, signal);
    return (await answer) ?? { kind: "failure", failure: "unavailable", message: "no model is configured" };
  } catch (error) {
    return {
      kind: "failure",
      failure: "unavailable",
      message: error instanceof Error ? error.message : String(error),
    };
  }
}

interface CallOptions {
  readonly onProgress?: ProgressFn | undefined;
  readonly signal?: AbortSignal | undefined;
  readonly transfer?: ArrayBuffer[];
}

/** Calls that may take long and write nothing: they go to the second thread. */
const READER_CALLS = new Set<keyof Engine>([
  "search",
  "grep",
  "describe",
  "expand",
  "verify",
  "readMessage",
  "readFile",
  "readSummary",
  "listMessages",
  "listMessageIds",
  "readOutline",
  "locateMessage",
  "listConversations",
  "listSummaries",
  "readGraph",
  "status",
  "countMessages",
  "measureStorage",
  "spend",
  "listDebts",
  "listPublished",
  "listFilePaths",
  "listFiles",
  "readVersions",
  "findUnproven",
  "isForgettingOpen",
  "planForget",
  "embedStatus",
]);

/** Calls that read the full-text index, or look for events, and want what was stored a moment ago to be found. */
const INDEX_CALLS = new Set<keyof Engine>([
  "search",
  "grep",
  "expand",
  "ask",
  "verify",
  "status",
  "findUnproven",
  "planForget",
]);

/** Files and summaries have no vectors, and what holds every keyword needs none. */
function canUseMeaning({ mode, scope }: GrepRequest, { rule }: GrepAnswer): boolean {
  const isSearchable = scope === undefined || scope === "both" || scope === "messages";
  return mode === "full_text" && isSearchable && (rule === "relaxed" || rule === "empty");
}

export async function openThreadedEngine(options: ThreadOptions): Promise<Engine> {
  const writer = await EngineThread.open(options, "lossless-engine");
  let reader: Promise<EngineThread> | null = null;
  /** The reading thread cannot write, so the writing one is asked to settle the index whenever something may have been stored. */
  let isUnsettled = true;
  let settling: Promise<unknown> = Promise.resolve();
  const openReader = (): Promise<EngineThread> => {
    const { start } = options;
    reader ??= EngineThread.open(
      { ...options, start: { ...start, store: { ...start.store, readOnly: true, create: false } } },
      "lossless-reader",
    );
    return reader;
  };
  const call = async (
    method: keyof Engine,
    request: object,
    isOnReader = READER_CALLS.has(method),
  ): Promise<unknown> => {
    const { onProgress, signal, ...rest } = request as { onProgress?: ProgressFn; signal?: AbortSignal };
    // What a sub-agent reads is charged to its grant, which is a write.
    const isReading = isOnReader && !("delegated" in rest && rest.delegated === true);
    if (isReading && INDEX_CALLS.has(method)) {
      if (isUnsettled) {
        isUnsettled = false;
        settling = writer.call("settleIndex", {});
      }
      // Whoever comes while another caller's settling is under way waits for the same.
      await settling;
    }
    const thread = isReading ? await openReader() : writer;
    try {
      return await thread.call(method, rest, { onProgress, signal });
    } finally {
      if (!isReading) isUnsettled = true;
    }
  };
  const embedQuestion = async (text: string, signal?: AbortSignal): Promise<Meaning> =>
    (await call("embedQuestion", { text, ...(signal ? { signal } : {}) })) as Meaning;
  /** A function of its own, because one that waits keeps all it was given, and several batches may be under way. */
  const hand = (request: IngestRequest): Promise<unknown> => {
    const { prepared } = request;
    if (prepared !== undefined) return writer.call("ingest", request, { transfer: listBuffers(prepared) });
    const { messages, transfer } = postArrivals(request.messages);
    return writer.call("ingest", { ...request, messages }, { transfer });
  };
  const own = {
    async ingest(request: IngestRequest): Promise<IngestResult> {
      try {
        return (await hand(request)) as IngestResult;
      } finally {
        isUnsettled = true;
      }
    },
    /** Words are searched beside the writes. Only where they do not settle it is a vector asked for, and written down what it cost. */
    async grep(request: GrepRequest): Promise<GrepAnswer> {
      const found = (await call("grep", { ...request, meaning: NO_MEANING })) as GrepAnswer;
      if (!options.embed || !canUseMeaning(request, found)) return found;
      const meaning = await embedQuestion(request.pattern, request.signal);
      return (await call("grep", { ...request, meaning })) as GrepAnswer;
    },
    /** The search runs beside the writes; only what a model call spends is written. */
    async ask(request: AskRequest): Promise<AskAnswer> {
      const meaning = options.embed
        ? await embedQuestion(checkQuestion(request), request.signal)
        : NO_MEANING;
      const found = (await call("ask", { ...request, meaning, withoutModel: true }, true)) as AskAnswer;
      if (!options.complete || request.withoutModel || found.passages.length === 0) return found;
      return (await call("ask", { ...request, gathered: found })) as AskAnswer;
    },
    async close(): Promise<void> {
      const opened = await reader;
      await opened?.call("close", {});
      await writer.call("close", {});
    },
  };
  return new Proxy(own as unknown as Engine, {
    get: (target, name) =>
      Reflect.get(target, name) ??
      // A promise would take an object with `then` for another promise.
      (name === "then" ? undefined : (request: object = {}) => call(name as keyof Engine, request)),
  });
}

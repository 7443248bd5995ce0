/**
 * Vectors by a model on this machine, without a server. The user names a folder with installed packages, the package that loads models and the
 * package or name of the model; none of them is a dependency, and nothing is downloaded: a package missing from the folder is an error. The
 * model runs in its own thread, because its computation would block the caller's.
 *
 * A loader is a package that exports `createEmbedder({ folder, model })`, which returns a function from texts to vectors; or one that works like
 * `@energetic-ai/embeddings`, with `initModel(modelSource)` and a model package that exports `modelSource`.
 */
import { Worker } from "node:worker_threads";
import type { Embed, EmbedResult } from "@lossless/core";
import { makeFailure } from "./failures.ts";

export interface LocalModel {
  readonly folder: string;
  readonly loader: string;
  readonly model: string;
}

type Answer =
  | { readonly id: number; readonly vectors: readonly (readonly number[])[] }
  | { readonly id: number; readonly problem: string };

export function openLocalEmbed(model: LocalModel): Embed {
  let thread: ModelThread | null = null;
  return async ({ texts }, signal) => {
    thread ??= new ModelThread(model, () => (thread = null));
    return thread.embed(texts, signal);
  };
}

/** One thread with a loaded model. It does not keep the process alive while idle. */
class ModelThread {
  readonly #worker: Worker;
  readonly #name: string;
  readonly #waiting = new Map<number, (result: EmbedResult) => void>();
  #last = 0;

  constructor(model: LocalModel, onEnd: () => void) {
    this.#name = `${model.model} by ${model.loader} in ${model.folder}`;
    this.#worker = new Worker(`(${serve.toString()})()`, {
      eval: true,
      workerData: model,
      name: "lossless-embed",
    });
    this.#worker.unref();
    this.#worker.on("message", (answer: Answer) => this.#settle(answer));
    const end = (why: string): void => {
      onEnd();
      for (const id of this.#waiting.keys()) this.#settle({ id, problem: why });
    };
    this.#worker.on("error", (error: Error) => end(error.message));
    this.#worker.on("exit", (code) => end(`its thread ended with ${code}`));
  }

  embed(texts: readonly string[], signal: AbortSignal): Promise<EmbedResult> {
    const id = ++this.#last;
    const { promise, resolve } = Promise.withResolvers<EmbedResult>();
    const cancel = (): void => resolve(makeFailure("aborted", "the call was cancelled"));
    if (signal.aborted) cancel();
    signal.addEventListener("abort", cancel, { once: true });
    this.#waiting.set(id, resolve);
    this.#worker.ref();
    this.#worker.postMessage({ id, texts });
    return promise.finally(() => signal.removeEventListener("abort", cancel));
  }

  #settle(answer: Answer): void {
    const resolve = this.#waiting.get(answer.id);
    this.#waiting.delete(answer.id);
    if (this.#waiting.size === 0) this.#worker.unref();
    resolve?.(
      "problem" in answer
        ? makeFailure("invalid_response", `cannot use ${this.#name}: ${answer.problem}`)
        : {
            kind: "vectors",
            vectors: answer.vectors.map((vector) => Float32Array.from(vector)),
            // It is free, so it does not count towards the daily tokens.
            usage: { inputTokens: 0 },
          },
    );
  }
}

/** The code of the thread. It is passed as text, so that it works from source and bundled alike: it must not use anything outside itself. */
function serve(): void {
  type Texts = readonly string[];
  type Vectors = readonly (readonly number[])[];
  type Embedder = (texts: Texts) => Promise<Vectors>;
  interface Loader {
    readonly createEmbedder?: (model: { folder: string; model: string }) => Promise<Embedder> | Embedder;
    readonly initModel?: (source: unknown) => Promise<{ embed: Embedder }>;
  }
  const { parentPort, workerData } = process.getBuiltinModule("node:worker_threads");
  const { createRequire } = process.getBuiltinModule("node:module");
  const { join } = process.getBuiltinModule("node:path");
  const { folder, loader, model } = workerData as { folder: string; loader: string; model: string };
  const require = createRequire(join(folder, "package.json"));

  async function load(): Promise<Embedder> {
    const found = require(loader) as Loader;
    if (found.createEmbedder !== undefined) return await found.createEmbedder({ folder, model });
    if (found.initModel === undefined)
      throw new Error(`${loader} exports neither createEmbedder nor initModel`);
    const { modelSource } = require(model) as { modelSource?: unknown };
    // Without its own source, the loader would download a model.
    if (typeof modelSource !== "function") throw new Error(`${model} exports no modelSource`);
    const loaded = await found.initModel(modelSource);
    return (texts) => loaded.embed(texts);
  }

  let embedder: Promise<Embedder> | null = null;
  parentPort?.on("message", ({ id, texts }: { id: number; texts: Texts }) => {
    embedder ??= load();
    embedder
      .then((embed) => embed(texts))
      .then(
        (vectors) => parentPort.postMessage({ id, vectors }),
        (error: unknown) => {
          const [problem = ""] = (error instanceof Error ? error.message : String(error)).split("\n");
          parentPort.postMessage({ id, problem });
        },
      );
  });
}

/**
 * Fills a space: every message that should have a vector gets one, in batches. A new space is filled by walking through all messages; from
 * then on only pending messages are read. A batch is stored as soon as its vectors are there; messages without one stay pending, or the
 * next walk finds them. So however a run ends, the next one resumes where it stopped.
 */
import { setTimeout as wait } from "node:timers/promises";
import { callEmbedding, cutToChars, failWith } from "./embedding-call.ts";
import type { Embedded } from "./embedding-call.ts";
import { EngineError } from "../model/errors.ts";
import { OwnWords } from "../recall/own-words.ts";
import type { SpendRecord } from "../store/folding.ts";
import { keepTrying } from "../store/keep-trying.ts";
import type { StoreVectors, StoreVectorsResult, VectorSpace } from "../store/vectors.ts";
import type { ModelFailure } from "../summarize/model-call.ts";
import { emitSpend } from "../summarize/spend.ts";
import type { EngineState } from "./state.ts";

export interface EmbedMessagesResult {
  /** `filled`: nothing is left. `busy`: another process fills the space. `stopped`: see `failure`; without one, it was cancelled. */
  readonly kind: "filled" | "busy" | "stopped";
  /** Messages that got a vector, or were found to have no text. */
  readonly embedded: number;
  /** Messages that could not be read, or whose text the model refuses at any length. */
  readonly skipped: number;
  readonly calls: number;
  readonly inputTokens: number;
  readonly failure: Pick<ModelFailure, "failure" | "message"> | null;
}

export interface FillRequest {
  readonly model: string;
  /** Reads every message, even in a space that was filled before. */
  readonly isWhole: boolean;
  readonly signal: AbortSignal;
  /** Called with the number of messages done so far. */
  readonly onProgress: (done: number) => void;
}

/** One call has at most this many texts, and about this many characters. */
const BATCH_TEXTS = 32;
const BATCH_CHARS = 64_000;
/** A longer message is embedded by its beginning. The usual models read about 8,000 tokens. */
const MAX_CHARS = 6_000;
/** A model that accepts less than this is not usable for messages. */
const MIN_CHARS = 200;
const PAGE = 2_000;
const CALL_TIMEOUT_MS = 120_000;
const MAX_TRIES = 5;
const MAX_RETRY_MS = 60_000;
/** A filler that has not renewed its lease for this long is dead; a live one renews far more often. */
const LEASE_MS = 30_000;
const RENEW_MS = 10_000;
/** Failures that may be temporary. */
const PASSING: ReadonlySet<string> = new Set(["rate_limited", "unavailable", "timeout"]);
const ABORTED = failWith("aborted", "the caller cancelled it");

interface MessageInput {
  readonly messageId: number;
  readonly text: string;
}

/** One run over the messages of an archive, and what it has done. */
export class VectorFill {
  readonly #engine: EngineState;
  readonly #request: FillRequest;
  readonly #holder: string;
  #spaceId = 0;
  #done = 0;
  #embedded = 0;
  #skipped = 0;
  #callCount = 0;
  #inputTokens = 0;
  /** Messages that get no vector for now. */
  #passed: number[] = [];
  /** Messages that need none. */
  #unwanted: number[] = [];

  constructor(engine: EngineState, request: FillRequest) {
    this.#engine = engine;
    this.#request = request;
    this.#holder = Buffer.from(engine.clock.random(8)).toString("hex");
  }

  async run(): Promise<EmbedMessagesResult> {
    const { store, clock } = this.#engine;
    const holder = this.#holder;
    const { model } = this.#request;
    const space = await store.claimVectorSpace({ model, holder, now: clock.now(), leaseMs: LEASE_MS });
    if (space === null) return this.#result("busy", null);
    this.#spaceId = space.spaceId;
    let isFilled = false;
    const renewal = setInterval(() => void this.#renew(), RENEW_MS).unref();
    try {
      const isWhole = this.#request.isWhole || space.filledAt === null;
      const failure = (isWhole ? await this.#walk(space) : null) ?? (await this.#drain(space));
      isFilled = failure === null;
      return this.#result(isFilled ? "filled" : "stopped", failure);
    } finally {
      clearInterval(renewal);
      await store.releaseVectorSpace({ spaceId: space.spaceId, holder, now: clock.now(), isFilled });
    }
  }

  /** If the claim cannot be renewed now, the next batch renews it, or finds it lost. */
  async #renew(): Promise<void> {
    const claim = { spaceId: this.#spaceId, holder: this.#holder, leaseMs: LEASE_MS };
    await this.#engine.store
      .storeVectors({ ...claim, now: this.#engine.clock.now(), vectors: [] })
      .catch((error: unknown) => {
        if (!(error instanceof EngineError)) throw error;
      });
  }

  async #walk({ spaceId }: VectorSpace): Promise<ModelFailure | null> {
    for (let after = 0; ;) {
      const ids = await this.#engine.store.listUnembedded({ spaceId, after, limit: PAGE });
      const last = ids.at(-1);
      if (last === undefined) return null;
      const failure = await this.#embedPage(ids);
      if (failure !== null) return failure;
      after = last;
    }
  }

  async #drain({ spaceId }: VectorSpace): Promise<ModelFailure | null> {
    for (;;) {
      const pending = await this.#engine.store.listPendingVectors({ spaceId, limit: PAGE });
      if (pending.length === 0) return null;
      const wanted = pending.filter(({ isWanted }) => isWanted);
      this.#unwanted.push(...pending.filter(({ isWanted }) => !isWanted).map(({ messageId }) => messageId));
      const failure = await this.#embedPage(wanted.map(({ messageId }) => messageId));
      if (failure !== null) return failure;
    }
  }

  async #embedPage(ids: readonly number[]): Promise<ModelFailure | null> {
    for (let at = 0; at < ids.length;) {
      if (this.#request.signal.aborted) return ABORTED;
      const batch = await this.#readBatch(ids.slice(at, at + BATCH_TEXTS));
      at += batch.read;
      const failure = await this.#embed(batch.texts);
      if (failure !== null) return failure;
      this.#request.onProgress(this.#done);
    }
    return this.#passed.length + this.#unwanted.length === 0 ? null : this.#store([]);
  }

  /** As many of the next messages as fit in one call. */
  async #readBatch(ids: readonly number[]): Promise<{ texts: MessageInput[]; read: number }> {
    const texts: MessageInput[] = [];
    let chars = 0;
    let read = 0;
    const own = new OwnWords(this.#engine.store, {});
    await own.learn(ids);
    for (const messageId of ids) {
      if (chars > BATCH_CHARS) break;
      read += 1;
      const text = await this.#readText(messageId, own);
      if (text === null) this.#skip(messageId);
      else texts.push({ messageId, text });
      chars += text?.length ?? 0;
    }
    return { texts, read };
  }

  /** Null when it cannot be read: verify reports that, and a message repaired later gets its vector then. */
  async #readText(messageId: number, own: OwnWords): Promise<string | null> {
    try {
      const [row] = await this.#engine.store.readTexts([messageId], {});
      return row === undefined ? null : cutToChars(own.textOf(row).trim(), MAX_CHARS);
    } catch (error) {
      if (error instanceof EngineError && error.code === "not_found") return null;
      throw error;
    }
  }

  async #embed(inputs: readonly MessageInput[]): Promise<ModelFailure | null> {
    const empty = inputs.filter(({ text }) => text === "");
    const filled = inputs.filter(({ text }) => text !== "");
    const failure = await this.#save(empty, null);
    if (failure !== null || filled.length === 0) return failure;
    const result = await this.#ask(filled);
    return result.kind === "failure" ? this.#embedSmaller(filled, result) : this.#save(filled, result);
  }

  /** A text that is too long for the model is halved, alone, until it fits. */
  async #embedSmaller(inputs: readonly MessageInput[], failure: ModelFailure): Promise<ModelFailure | null> {
    if (failure.failure !== "overflow") return failure;
    const half = Math.ceil(inputs.length / 2);
    if (inputs.length > 1)
      return (await this.#embed(inputs.slice(0, half))) ?? (await this.#embed(inputs.slice(half)));
    const [input] = inputs as [MessageInput];
    if (input.text.length > MIN_CHARS)
      return this.#embed([{ ...input, text: cutToChars(input.text, Math.ceil(input.text.length / 2)) }]);
    this.#skip(input.messageId);
    return null;
  }

  #skip(messageId: number): void {
    this.#skipped += 1;
    this.#passed.push(messageId);
  }

  async #save(inputs: readonly MessageInput[], given: Embedded | null): Promise<ModelFailure | null> {
    if (inputs.length === 0) return null;
    const vectors = inputs.map(({ messageId }, at) => ({ messageId, vector: given?.vectors[at] ?? null }));
    return this.#store(vectors, given?.spent ?? null);
  }

  /** Stores vectors with what they cost, and that what was passed over waits no longer. */
  async #store(
    vectors: StoreVectors["vectors"],
    spent: SpendRecord | null = null,
  ): Promise<ModelFailure | null> {
    const { store, clock, emit } = this.#engine;
    const [passed, unwanted] = [this.#passed.splice(0), this.#unwanted.splice(0)];
    const claim = { spaceId: this.#spaceId, holder: this.#holder, now: clock.now(), leaseMs: LEASE_MS };
    const put = (): Promise<StoreVectorsResult> =>
      store.storeVectors({ ...claim, vectors, passed, unwanted, spent });
    const outcome = await (spent === null ? put() : keepTrying(put, this.#request.signal));
    if (spent !== null) emitSpend(emit, spent);
    if (outcome.kind === "lost") return failWith("unavailable", "another process took over");
    if (outcome.kind === "dimensions") {
      const said = `${this.#request.model} returned vectors of ${outcome.given} dimensions, earlier ones have ${outcome.expected}`;
      return failWith("invalid_response", said);
    }
    this.#done += vectors.length;
    this.#embedded += outcome.stored;
    return null;
  }

  /** Retries after a wait, if that may help. */
  async #ask(inputs: readonly MessageInput[]): Promise<Embedded | ModelFailure> {
    const { model, signal } = this.#request;
    const texts = inputs.map(({ text }) => text);
    for (let tries = 1; ; tries++) {
      const limits = { signal, timeoutMs: CALL_TIMEOUT_MS };
      const result = await callEmbedding(this.#engine, { model, purpose: "message", texts }, limits);
      this.#callCount += 1;
      if (result.kind === "vectors") {
        this.#inputTokens += result.spent.inputTokens;
        return result;
      }
      if (!PASSING.has(result.failure) || tries >= MAX_TRIES) return result;
      const ownMs = this.#engine.vectors.retryMs * 2 ** (tries - 1);
      if (!(await sleep(Math.min(MAX_RETRY_MS, Math.max(result.retryAfterMs ?? 0, ownMs)), signal)))
        return ABORTED;
    }
  }

  #result(kind: EmbedMessagesResult["kind"], failure: ModelFailure | null): EmbedMessagesResult {
    return {
      kind,
      embedded: this.#embedded,
      skipped: this.#skipped,
      calls: this.#callCount,
      inputTokens: this.#inputTokens,
      failure:
        failure === null || failure.failure === "aborted"
          ? null
          : { failure: failure.failure, message: failure.message },
    };
  }
}

/** False when it was cancelled. */
async function sleep(ms: number, signal: AbortSignal): Promise<boolean> {
  try {
    await wait(ms, undefined, { signal });
    return true;
  } catch (error) {
    if (signal.aborted) return false;
    throw error;
  }
}

/**
 * The rounds of a worker: indexing, due compaction of any conversation, maintenance of changed conversations, and vectors. Each piece of work is
 * claimed in the archive first, so any number of workers share it and none of it is done twice; the work of a dead one is taken over when its
 * claim has expired.
 *
 * Invariant: however a round ends, the archive is consistent, and unfinished claims are released.
 */
import { EngineError } from "@lossless/core";
import type { CompactResult, ConversationRow, Engine } from "@lossless/core";

export interface WorkerOptions {
  readonly engine: Engine;
  /** For conversations whose host has named no budget; null: they get no maintenance. */
  readonly budgetTokens: number | null;
  readonly embeds: boolean;
  readonly signal: AbortSignal;
  readonly onEvent: (event: WorkerEvent) => void;
}

export type WorkerEvent =
  | { readonly kind: "folded"; readonly result: CompactResult }
  | { readonly kind: "maintained"; readonly conversationId: number }
  | { readonly kind: "embedded"; readonly messages: number }
  | { readonly kind: "failed"; readonly what: string; readonly error: EngineError };

export interface WorkerTotals {
  folds: number;
  maintained: number;
  embedded: number;
  failures: number;
}

export const NO_WORK: Readonly<WorkerTotals> = { folds: 0, maintained: 0, embedded: 0, failures: 0 };

const PAGE = 200;
/** Work that becomes due only by the passing of time is found by checking every conversation again. */
const WHOLE_WALK_MS = 3_600_000;
/** A model that failed to make vectors is not called again before this. */
const EMBED_PAUSE_MS = 300_000;

export class WorkerRounds {
  readonly totals: WorkerTotals = { ...NO_WORK };
  readonly #options: WorkerOptions;
  /** The state of each conversation when it was last checked and nothing was left to do. */
  readonly #seen = new Map<number, string>();
  #walkedAt = Number.NEGATIVE_INFINITY;
  #embedsAfter = 0;

  constructor(options: WorkerOptions) {
    this.#options = options;
  }

  /** One round; returns whether anything was done. */
  async run(): Promise<boolean> {
    const { engine, signal } = this.#options;
    await this.#guarded("index messages", async () => void (await engine.flushIndex()));
    let isBusy = false;
    for (const part of [this.#payDebts, this.#maintainAll, this.#embed]) {
      if (signal.aborted) break;
      isBusy = (await this.#guarded("look for work", () => part.call(this))) === true || isBusy;
    }
    return isBusy;
  }

  async #payDebts(): Promise<boolean> {
    const { engine, signal, onEvent } = this.#options;
    for (let paid = 0; ; paid++) {
      if (signal.aborted) return paid > 0;
      try {
        const result = await engine.payNextDebt({ signal });
        if (result === null) return paid > 0;
        if (!result.compacted) continue;
        this.totals.folds += 1;
        onEvent({ kind: "folded", result });
      } catch (error) {
        // The failure of one conversation waits for its next attempt, and the others are folded; a failing database fails for all.
        if (!(error instanceof EngineError) || error.code.startsWith("database_")) throw error;
        this.#fail("fold", error);
      }
    }
  }

  async #maintainAll(): Promise<boolean> {
    const isWhole = performance.now() - this.#walkedAt > WHOLE_WALK_MS;
    if (isWhole) {
      this.#seen.clear();
      this.#walkedAt = performance.now();
    }
    let isBusy = false;
    for (let after: string | null = null; ;) {
      const { items, next } = await this.#options.engine.listConversations({ after, limit: PAGE });
      const changed = items.filter((row) => this.#seen.get(row.conversationId) !== describe(row));
      for (const row of changed) isBusy = (await this.#maintain(row)) || isBusy;
      // The most recent come first: after a page without changes there is nothing new.
      if (next === null || this.#options.signal.aborted || (changed.length === 0 && !isWhole)) return isBusy;
      after = next;
    }
  }

  async #maintain(row: ConversationRow): Promise<boolean> {
    const { engine, signal } = this.#options;
    if (signal.aborted) return false;
    const { conversationId } = row;
    const budgetTokens = await this.#findBudget(row);
    const result =
      budgetTokens === null
        ? null
        : await this.#guarded(`maintain conversation ${conversationId}`, () =>
            engine.maintain({ conversationId, budgetTokens, signal }),
          );
    if (result?.changed === true) {
      this.totals.maintained += 1;
      this.#options.onEvent({ kind: "maintained", conversationId });
      return true;
    }
    if (!signal.aborted) this.#seen.set(conversationId, describe(row));
    return false;
  }

  async #findBudget({ owner, sessionId }: ConversationRow): Promise<number | null> {
    const session = await this.#options.engine.readSession({ owner, sessionId });
    return session?.baseTokens ?? this.#options.budgetTokens;
  }

  async #embed(): Promise<boolean> {
    const { engine, embeds, signal } = this.#options;
    if (!embeds || performance.now() < this.#embedsAfter) return false;
    const result = await this.#guarded("embed messages", () =>
      engine.embedMessages({ signal, onlyPending: true }),
    );
    if (result === null || result.failure !== null) {
      this.#embedsAfter = performance.now() + EMBED_PAUSE_MS;
      const message = `cannot embed messages: ${result?.failure?.message ?? "the archive failed"}`;
      if (result !== null) this.#fail("embed messages", new EngineError("model_failed", message));
      return false;
    }
    if (result.embedded === 0) return false;
    this.totals.embedded += result.embedded;
    this.#options.onEvent({ kind: "embedded", messages: result.embedded });
    return true;
  }

  /** Null after a failure, which is reported: the next round tries again. */
  async #guarded<T>(what: string, work: () => Promise<T>): Promise<T | null> {
    try {
      return await work();
    } catch (error) {
      if (!(error instanceof EngineError)) throw error;
      if (!this.#options.signal.aborted) this.#fail(what, error);
      return null;
    }
  }

  #fail(what: string, error: EngineError): void {
    this.totals.failures += 1;
    this.#options.onEvent({ kind: "failed", what, error });
  }
}

const describe = ({ messages, shownTokens, summaries, foldRevision, lastAt }: ConversationRow): string =>
  [messages, shownTokens, summaries, foldRevision, lastAt].join(" ");

/**
 * Search by meaning as the engine offers it: which space serves, filling in the background, and the vector of a question. Off unless the
 * settings name a model and the host gives a way to it; then nothing here costs anything.
 *
 * Invariant: the space of an older model serves until the new one has been filled once.
 */
import { setImmediate } from "node:timers/promises";
import { cutToChars, EmbeddingCalls } from "./embedding-call.ts";
import type { EmbeddingParts } from "./embedding-call.ts";
import { VectorFill } from "./vector-fill.ts";
import type { EmbedAnswer } from "./vector-fill.ts";
import { EngineError } from "../model/errors.ts";
import { NO_MEANING } from "../retrieve/meaning.ts";
import type { Meaning } from "../retrieve/meaning.ts";
import type { VectorSpace } from "../store/vectors.ts";

export interface EmbedStatus {
  /** The configured model; null when search by meaning is off. */
  readonly model: string | null;
  /** Messages that should have a vector. */
  readonly messages: number;
  /** How many of them have none of the configured model yet. */
  readonly left: number;
  readonly spaces: readonly {
    readonly model: string;
    readonly dimensions: number;
    /** Messages that have one, or were found to have no text. */
    readonly vectors: number;
    readonly isFilled: boolean;
    /** Questions are answered with this one. */
    readonly serves: boolean;
  }[];
}

/** What the engine offers for search by meaning, beside searching. */
export interface VectorEngine {
  embedStatus(): Promise<EmbedStatus>;
  /** Gives every message a vector of the configured model. Can be cancelled and repeated; what is done stays done. */
  embedMessages(request?: {
    onProgress?: (done: number, total: number) => void;
    signal?: AbortSignal;
  }): Promise<EmbedAnswer>;
  /** The vector of a question, in the space that serves; or why there is none. */
  embedQuestion(request: { text: string; signal?: AbortSignal }): Promise<Meaning>;
  /** Removes all vectors; the number of spaces there were. */
  dropVectors(): Promise<number>;
}

const MAX_QUESTION_CHARS = 2_000;
/** A question waits this long for its vector; then it is answered without. */
const QUESTION_TIMEOUT_MS = 5_000;
/** After a failure questions do not wait again for a while. */
const QUESTION_PAUSE_MS = 30_000;
/** In the background a run that failed is not begun again before this. */
const BACKGROUND_PAUSE_MS = 300_000;
const DROP_ROWS = 5_000;

export class Vectors implements VectorEngine {
  readonly #parts: EmbeddingParts;
  readonly #calls: EmbeddingCalls;
  readonly #closing = new AbortController();
  #background: Promise<void> | null = null;
  #isAskedAgain = false;
  #pausedUntil = 0;
  /** Everything up to this message was looked at by this process. */
  #reached = 0;
  #questionsPausedUntil = 0;

  constructor(parts: EmbeddingParts) {
    this.#parts = parts;
    this.#calls = new EmbeddingCalls(parts);
  }

  async embedStatus(): Promise<EmbedStatus> {
    const { store, settings } = this.#parts;
    const { model } = settings.embedding;
    const spaces = await store.listVectorSpaces();
    const counts = await store.countVectors();
    const serving = chooseSpace(spaces, model);
    const described = spaces.map(({ spaceId, model: name, dimensions, filledAt }) => {
      const vectors = counts.spaces.find((count) => count.spaceId === spaceId)?.vectors ?? 0;
      const serves = spaceId === serving?.spaceId;
      return { model: name, dimensions, vectors, isFilled: filledAt !== null, serves };
    });
    const own = described.find((space) => space.model === model);
    return {
      model,
      messages: counts.messages,
      left: counts.messages - (own?.vectors ?? 0),
      spaces: described,
    };
  }

  async embedMessages(
    request: { onProgress?: (done: number, total: number) => void; signal?: AbortSignal } = {},
  ): Promise<EmbedAnswer> {
    const model = this.#needModel();
    const { onProgress, signal } = request;
    // Work that is under way is joined, so that no vector is made, and paid for, twice.
    await this.#background;
    const total = onProgress ? (await this.embedStatus()).left : 0;
    onProgress?.(0, total);
    return this.#fill(model, 0, signal ?? this.#closing.signal, (done) =>
      onProgress?.(Math.min(done, total), total),
    );
  }

  #needModel(): string {
    const { embed, settings } = this.#parts;
    const { model, baseUrl } = settings.embedding;
    if (embed !== null && model !== null) return model;
    const missing = Object.entries({ "embedding.baseUrl": baseUrl, "embedding.model": model })
      .filter(([, value]) => value === null)
      .map(([key]) => key);
    const why =
      missing.length === 0
        ? "this program has no way to a model"
        : `${missing.join(" and ")} ${missing.length === 1 ? "is" : "are"} not set`;
    throw new EngineError("config", `cannot embed messages: ${why}`, {
      step: { kind: "set_settings", names: ["embedding.baseUrl", "embedding.model"] },
    });
  }

  async #fill(
    model: string,
    after: number,
    signal: AbortSignal,
    onProgress: (done: number) => void,
  ): Promise<EmbedAnswer> {
    const fill = new VectorFill(this.#parts, this.#calls, { model, after, signal, onProgress });
    const answer = await fill.run();
    if (answer.kind !== "filled") return answer;
    this.#reached = fill.reached;
    // From now on this model serves; vectors of others would be read by nobody.
    for (const space of await this.#parts.store.listVectorSpaces())
      if (space.model !== model) await this.#drop(space.spaceId);
    return answer;
  }

  async #drop(spaceId: number): Promise<void> {
    while (!(await this.#parts.store.dropVectorSpace(spaceId, DROP_ROWS))) await setImmediate();
  }

  async dropVectors(): Promise<number> {
    const spaces = await this.#parts.store.listVectorSpaces();
    for (const { spaceId } of spaces) await this.#drop(spaceId);
    this.#reached = 0;
    return spaces.length;
  }

  /** New messages were stored: they get their vectors in the background. */
  noteStored(): void {
    const { model } = this.#parts.settings.embedding;
    if (this.#parts.embed === null || model === null || this.#closing.signal.aborted) return;
    if (this.#parts.clock.now() < this.#pausedUntil) return;
    if (this.#background !== null) {
      this.#isAskedAgain = true;
      return;
    }
    this.#background = this.#fillInBackground(model).finally(() => {
      this.#background = null;
    });
  }

  async #fillInBackground(model: string): Promise<void> {
    let problem: string | null = null;
    try {
      do {
        this.#isAskedAgain = false;
        const answer = await this.#fill(model, this.#reached, this.#closing.signal, () => undefined);
        problem = answer.failure?.message ?? null;
      } while (this.#isAskedAgain && problem === null);
    } catch (error) {
      problem = error instanceof Error ? error.message : String(error);
    }
    if (problem === null || this.#closing.signal.aborted) return;
    this.#pausedUntil = this.#parts.clock.now() + BACKGROUND_PAUSE_MS;
    const message = `messages are stored but get no vectors: ${problem}`;
    this.#parts.emit({ kind: "degraded", part: "vectors", message });
  }

  /** Waits for work in the background to stop at its next step. */
  async close(): Promise<void> {
    this.#closing.abort();
    await this.#background;
  }

  async embedQuestion({ text, signal }: { text: string; signal?: AbortSignal }): Promise<Meaning> {
    const { embed, settings, store, clock } = this.#parts;
    const question = cutToChars(text.trim(), MAX_QUESTION_CHARS);
    if (embed === null || settings.embedding.model === null || question === "") return NO_MEANING;
    const space = chooseSpace(await store.listVectorSpaces(), settings.embedding.model);
    if (space === null) return NO_MEANING;
    if (clock.now() < this.#questionsPausedUntil) return without("the last call failed a moment ago");
    const result = await this.#calls.call(
      { model: space.model, purpose: "question", texts: [question] },
      { signal: signal ?? this.#closing.signal, timeoutMs: QUESTION_TIMEOUT_MS },
    );
    if (result.kind === "failure" && result.failure === "aborted") return without("the call was cancelled");
    const vector = result.kind === "failure" ? null : (result.vectors[0] as Float32Array);
    if (vector?.length === space.dimensions)
      return { kind: "vector", spaceId: space.spaceId, model: space.model, vector };
    this.#questionsPausedUntil = clock.now() + QUESTION_PAUSE_MS;
    return without(
      result.kind === "failure"
        ? result.message
        : `${space.model} gave a vector of ${vector?.length ?? 0} numbers, stored ones have ${space.dimensions}`,
    );
  }
}

const without = (why: string): Meaning => ({
  kind: "none",
  note: `Only words were searched, not meaning: ${why}.`,
});

/** The configured model's space once it was filled; until then the one that was filled last; without any, what there is of its own. */
function chooseSpace(spaces: readonly VectorSpace[], model: string | null): VectorSpace | null {
  if (model === null) return null;
  const usable = spaces.filter((space) => space.dimensions > 0);
  const own = usable.find((space) => space.model === model);
  if (own !== undefined && own.filledAt !== null) return own;
  const filled = usable
    .filter((space) => space.filledAt !== null)
    .toSorted((a, b) => (b.filledAt as number) - (a.filledAt as number));
  return filled[0] ?? own ?? null;
}

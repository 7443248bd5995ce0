/**
 * Search by meaning as the engine offers it: which space is active, background filling, and the vector of a question. Off unless the
 * settings name a model and the host can call it; otherwise it costs nothing.
 *
 * Invariant: the space of an older model stays active until the new one has been filled once.
 */
import { setImmediate } from "node:timers/promises";
import { EngineError } from "../model/errors.ts";
import { NO_QUESTION_VECTOR } from "../recall/vector-search.ts";
import type { QuestionVector } from "../recall/vector-search.ts";
import type { VectorSpace } from "../store/vectors.ts";
import { callEmbedding, cutToChars, recordCall } from "./embedding-call.ts";
import type { EmbedQuestionRequest, EngineState } from "./state.ts";
import { VectorFill } from "./vector-fill.ts";
import type { EmbedMessagesResult } from "./vector-fill.ts";
import { waitForEnd } from "./wait.ts";

export interface EmbedStatusResult {
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
    /** Questions use this space. */
    readonly serves: boolean;
  }[];
}

export interface EmbedMessagesRequest {
  readonly onProgress?: (done: number, total: number) => void;
  /** Reads only pending messages, once every message has been read. For callers that ask often. */
  readonly onlyPending?: boolean;
  readonly signal?: AbortSignal;
}

const MAX_QUESTION_CHARS = 2_000;
/** A question waits this long for its vector; then it is answered without one. */
const QUESTION_TIMEOUT_MS = 5_000;
/** After a failure, questions do not wait again for this long. */
const QUESTION_PAUSE_MS = 30_000;
/** After a failure, a background run does not start again for this long. */
const BACKGROUND_PAUSE_MS = 300_000;
const DROP_ROWS = 5_000;

export async function embedStatus(engine: EngineState): Promise<EmbedStatusResult> {
  const { store, settings } = engine;
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

export async function embedMessages(
  engine: EngineState,
  request: EmbedMessagesRequest = {},
): Promise<EmbedMessagesResult> {
  const model = needModel(engine);
  const { onProgress, signal } = request;
  // Join the work in progress, so that no vector is made, and paid for, twice.
  await waitForEnd(engine.vectors.background, signal);
  const total = onProgress ? (await embedStatus(engine)).left : 0;
  onProgress?.(0, total);
  return fill(engine, model, request.onlyPending !== true, signal ?? engine.closing.signal, (done) =>
    onProgress?.(Math.min(done, total), total),
  );
}

function needModel(engine: EngineState): string {
  const { embed, settings } = engine;
  const { model, baseUrl, folder, loader } = settings.embedding;
  if (embed !== null && model !== null) return model;
  const location = folder !== null && loader !== null ? folder : baseUrl;
  const missing = Object.entries({ "embedding.baseUrl": location, "embedding.model": model })
    .filter(([, value]) => value === null)
    .map(([key]) => key);
  const why =
    missing.length === 0
      ? "this program cannot call a model"
      : `${missing.join(" and ")} ${missing.length === 1 ? "is" : "are"} not set`;
  throw new EngineError("config", `cannot embed messages: ${why}`, {
    step: { kind: "set_settings", names: ["embedding.baseUrl", "embedding.model"] },
  });
}

async function fill(
  engine: EngineState,
  model: string,
  isWhole: boolean,
  signal: AbortSignal,
  onProgress: (done: number) => void,
): Promise<EmbedMessagesResult> {
  const run = new VectorFill(engine, { model, isWhole, signal, onProgress });
  const result = await run.run();
  if (result.kind !== "filled") return result;
  // From now on this model's space is active; nothing would read the vectors of others.
  for (const space of await engine.store.listVectorSpaces())
    if (space.model !== model) await drop(engine, space.spaceId);
  return result;
}

async function drop(engine: EngineState, spaceId: number): Promise<void> {
  while (!(await engine.store.dropVectorSpace(spaceId, DROP_ROWS))) await setImmediate();
}

export async function dropVectors(engine: EngineState): Promise<number> {
  const spaces = await engine.store.listVectorSpaces();
  for (const { spaceId } of spaces) await drop(engine, spaceId);
  return spaces.length;
}

/** New messages were stored: embed them in the background. */
export function embedInBackground(engine: EngineState): void {
  const { model } = engine.settings.embedding;
  if (engine.embed === null || model === null || engine.closing.signal.aborted) return;
  if (engine.clock.now() < engine.vectors.pausedUntil) return;
  if (engine.vectors.background !== null) {
    engine.vectors.isAskedAgain = true;
    return;
  }
  engine.vectors.background = fillInBackground(engine, model).finally(() => {
    engine.vectors.background = null;
  });
}

async function fillInBackground(engine: EngineState, model: string): Promise<void> {
  let problem: string | null = null;
  try {
    do {
      engine.vectors.isAskedAgain = false;
      const result = await fill(engine, model, false, engine.closing.signal, () => undefined);
      problem = result.failure?.message ?? null;
    } while (engine.vectors.isAskedAgain && problem === null);
  } catch (error) {
    problem = error instanceof Error ? error.message : String(error);
  }
  if (problem === null || engine.closing.signal.aborted) return;
  engine.vectors.pausedUntil = engine.clock.now() + BACKGROUND_PAUSE_MS;
  const message = `messages are stored but get no vectors: ${problem}`;
  engine.emit({ kind: "degraded", part: "vectors", message });
}

/** The vector of a question in the active space, or why there is none. */
export async function embedQuestion(
  engine: EngineState,
  { text, signal }: EmbedQuestionRequest,
): Promise<QuestionVector> {
  const { embed, settings, store, clock } = engine;
  const question = cutToChars(text.trim(), MAX_QUESTION_CHARS);
  if (embed === null || settings.embedding.model === null || question === "") return NO_QUESTION_VECTOR;
  const space = chooseSpace(await store.listVectorSpaces(), settings.embedding.model);
  if (space === null) return NO_QUESTION_VECTOR;
  if (clock.now() < engine.vectors.questionsPausedUntil) return without("the last call failed a moment ago");
  const result = await callEmbedding(
    engine,
    { model: space.model, purpose: "question", texts: [question] },
    { signal: signal ?? engine.closing.signal, timeoutMs: QUESTION_TIMEOUT_MS },
  );
  if (result.kind === "vectors") await recordCall(engine, result.spent);
  if (result.kind === "failure" && result.failure === "aborted") return without("the call was cancelled");
  const vector = result.kind === "failure" ? null : (result.vectors[0] as Float32Array);
  if (vector?.length === space.dimensions)
    return { kind: "vector", spaceId: space.spaceId, model: space.model, vector };
  engine.vectors.questionsPausedUntil = clock.now() + QUESTION_PAUSE_MS;
  return without(
    result.kind === "failure"
      ? result.message
      : `${space.model} returned a vector of ${vector?.length ?? 0} dimensions, stored ones have ${space.dimensions}`,
  );
}

const without = (why: string): QuestionVector => ({
  kind: "none",
  note: `Only words were searched, not meaning: ${why}.`,
});

/** The configured model's space once it has been filled; until then the one that was filled last; if none was, its own partial one. */
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

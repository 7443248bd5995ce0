/**
 * The thread the engine runs in: opens the store, serves verbs with one message each way, reports progress and events. Loaded only in a
 * worker, by the file that knows how to open stores.
 */
import { parentPort, workerData } from "node:worker_threads";
import { deriveMessage } from "../ingest/prepare.ts";
import type { CompleteResult } from "../model/complete.ts";
import type { EmbedResult } from "../model/embed.ts";
import { must } from "../model/errors.ts";
import type { EngineEvent } from "../model/events.ts";
import { NO_QUESTION_VECTOR } from "../recall/vector-search.ts";
import type { OpenStore } from "../store/open-store.ts";
import { READER_PORT, VERBS, WRITER_PORT } from "./engine.ts";
import { openState } from "./local-engine.ts";
import type { EngineState, WriterPort } from "./state.ts";
import { deserializeError, serializeError } from "./thread-messages.ts";
import type { FromWorker, HostCall, CallResult, ToWorker, WorkerStart } from "./thread-messages.ts";
import { joinRequest, makeMethods, runVerb, splitRequest } from "./verb.ts";
import type { Callbacks, Verb } from "./verb.ts";

type CallMessage = Extract<ToWorker, { kind: "call" }>;

const SERVED: ReadonlyMap<string, Verb> = new Map(
  Object.entries({ ...VERBS, ...WRITER_PORT, ...READER_PORT }),
);

const port = must(parentPort, "the port of the engine's thread");
const send = (message: FromWorker): void => port.postMessage(message);
const running = new Map<number, AbortController>();
const askedOfHost = new Map<number, (outcome: CallResult) => void>();
let nextAsked = 1;
/** Waking the other thread costs more than most calls, so events are sent with the result of the call that caused them. */
const waitingEvents: EngineEvent[] = [];

export async function serveEngine(openStore: OpenStore): Promise<void> {
  try {
    const engine = await openEngineState(workerData as WorkerStart, openStore);
    port.on("message", (message: ToWorker) => {
      if (message.kind === "cancel") running.get(message.id)?.abort();
      else if (message.kind === "served") askedOfHost.get(message.id)?.(message.outcome);
      else void answer(engine, message);
    });
    send({ kind: "ready" });
  } catch (error) {
    send({ kind: "failed", error: serializeError(error) });
  }
}

async function openEngineState(start: WorkerStart, openStore: OpenStore): Promise<EngineState> {
  return openState({
    store: await openStore(start.store.address, {
      ...start.store,
      derive: deriveMessage,
      // Sent at once: the call it belongs to has no result yet.
      onEvent: (event) => send({ kind: "events", events: [event] }),
    }),
    settings: start.settings,
    onEvent: noteEvent,
    complete: start.hasComplete
      ? (request, signal) => askHost<CompleteResult>({ port: "complete", request }, signal)
      : null,
    embed: start.hasEmbed
      ? (request, signal) => askHost<EmbedResult>({ port: "embed", request }, signal)
      : null,
    hostModel: start.hostModel,
    writer: start.isReader ? makeWriterPort(start.hasEmbed) : undefined,
  });
}

function noteEvent(event: EngineEvent): void {
  if (waitingEvents.push(event) === 1) setImmediate(sendEvents);
}

/** Sends the events that no result has carried. */
function sendEvents(): void {
  if (waitingEvents.length > 0) send({ kind: "events", events: waitingEvents.splice(0) });
}

/** What the reading thread asks the writing one to write. */
function makeWriterPort(hasEmbed: boolean): WriterPort {
  const remote = makeMethods(WRITER_PORT, (name, verb, request) => {
    const { sent, signal } = splitRequest(verb, request);
    return askHost({ port: "writer", verb: name, request: sent }, signal);
  });
  return hasEmbed ? remote : { ...remote, embedQuestion: async () => NO_QUESTION_VECTOR };
}

function askHost<Result>(call: HostCall, signal: AbortSignal | undefined): Promise<Result> {
  const id = nextAsked++;
  const cancel = (): void => send({ kind: "cancel-host", id });
  return new Promise((resolve, reject) => {
    askedOfHost.set(id, (outcome) => {
      askedOfHost.delete(id);
      signal?.removeEventListener("abort", cancel);
      if ("error" in outcome) reject(deserializeError(outcome.error));
      else resolve(outcome.value as Result);
    });
    send({ kind: "ask-host", id, call });
    if (signal?.aborted) cancel();
    signal?.addEventListener("abort", cancel, { once: true });
  });
}

function startCancellable(id: number): AbortSignal {
  const controller = new AbortController();
  running.set(id, controller);
  return controller.signal;
}

async function answer(engine: EngineState, call: CallMessage): Promise<void> {
  const verb = must(SERVED.get(call.verb), `the verb ${call.verb}`);
  try {
    const value = await serve(engine, verb, call);
    send({ kind: "result", id: call.id, value, events: waitingEvents.splice(0) });
  } catch (error) {
    send({ kind: "error", id: call.id, error: serializeError(error) });
  } finally {
    running.delete(call.id);
    if (verb.thread === "every") port.close();
  }
}

function serve(
  engine: EngineState,
  verb: Verb,
  { id, request, wantsProgress }: CallMessage,
): Promise<unknown> {
  const signal = verb.cancellable ? startCancellable(id) : undefined;
  const onProgress: Callbacks["onProgress"] = wantsProgress
    ? (done, total) => send({ kind: "progress", id, done, total })
    : undefined;
  return runVerb(engine, verb, joinRequest(verb, request, { signal, onProgress }));
}

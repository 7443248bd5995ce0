/** The thread the engine works in: opens the store, answers calls one message each way, reports progress and events. */
import { parentPort, workerData } from "node:worker_threads";
import { LocalEngine } from "./engine.ts";
import type { Engine } from "./engine.ts";
import { serializeError } from "./thread-messages.ts";
import type { FromWorker, ModelCall, ToWorker, WorkerStart } from "./thread-messages.ts";
import { deriveMessage } from "../ingest/prepare.ts";
import type { CompleteResult } from "../model/complete.ts";
import type { EmbedResult } from "../model/embed.ts";
import { must } from "../model/errors.ts";
import type { EngineEvent } from "../model/events.ts";
import { SqliteStore } from "../store/sqlite/sqlite-store.ts";

const port = must(parentPort, "the port of the engine's thread");
const send = (message: FromWorker): void => port.postMessage(message);
const running = new Map<number, AbortController>();
const completing = new Map<number, (result: CompleteResult | EmbedResult) => void>();
let nextCompletion = 1;
/** Waking the other thread costs more than most calls, so events ride with the answer of the call that made them. */
const waitingEvents: EngineEvent[] = [];

try {
  const start = workerData as WorkerStart;
  const store = new SqliteStore({
    ...start.store,
    derive: deriveMessage,
    // At once: the call it belongs to has no answer yet.
    onEvent: (event) => send({ kind: "events", events: [event] }),
  });
  const engine = new LocalEngine({
    store,
    settings: start.settings,
    onEvent: noteEvent,
    complete: start.hasComplete
      ? (request, signal) => callOnHost<CompleteResult>({ port: "complete", request }, signal)
      : null,
    embed: start.hasEmbed
      ? (request, signal) => callOnHost<EmbedResult>({ port: "embed", request }, signal)
      : null,
    ...(start.hostModel === undefined ? {} : { hostModel: start.hostModel }),
  });
  port.on("message", (message: ToWorker) => {
    if (message.kind === "cancel") running.get(message.id)?.abort();
    else if (message.kind === "completed") completing.get(message.id)?.(message.result);
    else void answer(engine, message);
  });
  send({ kind: "ready" });
} catch (error) {
  send({ kind: "failed", error: serializeError(error) });
}

function noteEvent(event: EngineEvent): void {
  if (waitingEvents.push(event) === 1) setImmediate(sendEvents);
}

/** Sends what no answer has taken along. */
function sendEvents(): void {
  if (waitingEvents.length > 0) send({ kind: "events", events: waitingEvents.splice(0) });
}

/** Model calls are made on the host's thread, where its runtime lives. */
function callOnHost<Result extends CompleteResult | EmbedResult>(
  call: ModelCall,
  signal: AbortSignal,
): Promise<Result> {
  const id = nextCompletion++;
  const cancel = (): void => send({ kind: "complete-cancel", id });
  return new Promise((resolve) => {
    completing.set(id, (result) => {
      completing.delete(id);
      signal.removeEventListener("abort", cancel);
      resolve(result as Result);
    });
    send({ kind: "complete", id, call });
    if (signal.aborted) cancel();
    signal.addEventListener("abort", cancel, { once: true });
  });
}

async function answer(engine: Engine, call: ToWorker & { kind: "call" }): Promise<void> {
  const controller = new AbortController();
  running.set(call.id, controller);
  try {
    const value = await run(engine, call, controller.signal);
    send({ kind: "result", id: call.id, value, events: waitingEvents.splice(0) });
  } catch (error) {
    send({ kind: "error", id: call.id, error: serializeError(error) });
  } finally {
    running.delete(call.id);
    if (call.method === "close") port.close();
  }
}

function run(engine: Engine, call: ToWorker & { kind: "call" }, signal: AbortSignal): Promise<unknown> {
  const { id, method } = call;
  const onProgress = (done: number, total: number): void => send({ kind: "progress", id, done, total });
  const request = { ...(call.request as object), signal, ...(call.wantsProgress ? { onProgress } : {}) };
  return (engine[method as keyof Engine] as (request: unknown) => Promise<unknown>).call(engine, request);
}

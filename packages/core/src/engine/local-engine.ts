/** The engine in the thread that opened it: every verb calls its function directly. */
import { WRITER_PORT, VERBS } from "./engine.ts";
import type { Engine } from "./engine.ts";
import { createEngineState } from "./state.ts";
import type { EngineState, LocalEngineOptions } from "./state.ts";
import { makeMethods, runVerb } from "./verb.ts";

export function createLocalEngine(options: LocalEngineOptions): Engine {
  const engine = openState(options);
  return makeMethods(VERBS, (_name, verb, request) => runVerb(engine, verb, request));
}

/** The state. Without a writer in another thread, this thread writes. */
export function openState(options: LocalEngineOptions): EngineState {
  const writer =
    options.writer ?? makeMethods(WRITER_PORT, (_name, verb, request) => runVerb(engine, verb, request));
  const engine: EngineState = createEngineState(options, writer);
  return engine;
}

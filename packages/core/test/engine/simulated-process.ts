/**
 * The processes of a simulation. One that is played has its engine in this process; a real one is a program of its own, and dies by SIGKILL.
 * Either is killed at a moment that a fuse names: so many looks at the clock, draws of an id and calls to a model into an act.
 */
import { fork } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";

import { makeClock, makeRandom } from "@lossless/testkit";
import type { Random } from "@lossless/testkit";

import { VERBS } from "../../src/engine/engine.ts";
import { createLocalEngine } from "../../src/engine/local-engine.ts";
import { makeMethods } from "../../src/engine/verb.ts";
import { resolveSettings } from "../../src/index.ts";
import type { Complete, Engine, Settings } from "../../src/index.ts";
import type { Store } from "../../src/store/store.ts";
import type { StoreLocation } from "./grounds.ts";

const PROGRAM = fileURLToPath(new URL("./simulation-program.ts", import.meta.url));
const WORDS =
  "seed bed row bench label printer truck order door lamp water soil frost glass north gate price stock crate shelf moss fern".split(
    " ",
  );

export const drawWords = (random: Random, count: number): string =>
  Array.from({ length: count }, () => random.pick(WORDS)).join(" ");

export interface SimulatedProcess {
  readonly engine: Engine;
  /** Lights a fuse; null puts it out. */
  arm(fuse: number | null): Promise<void>;
  readonly isKilled: boolean;
  close(): Promise<void>;
}

/** What a process of a simulation is started with. */
export interface ProcessOrders {
  readonly seed: number;
  /** How many processes were started before: their ids must differ. */
  readonly number: number;
}

/** Settings small enough that folds reach several depths within a few hundred messages. */
export function settingsOf(seed: number): Settings {
  const random = makeRandom(seed + 1);
  const config = {
    freshTailCount: 2 + random.below(12),
    leafChunkTokens: 300 + random.below(1_500),
    leafTargetTokens: 120,
    condensedTargetTokens: 100,
    leafMinFanout: 2 + random.below(4),
    condensedMinFanout: 2 + random.below(2),
    sweepMaxDepth: random.below(4) - 1,
    newSessionRetainDepth: random.below(4) - 1,
    pruneHeartbeatOk: random.next() < 0.5,
  };
  return resolveSettings({ env: {}, config }).settings;
}

/** One of three seeds has a model, which fails at times. */
function makeModel(random: Random, burn: () => void): Complete {
  return async () => {
    burn();
    const fate = random.next();
    if (fate < 0.1) return { kind: "failure", failure: "unavailable", message: "busy" };
    if (fate < 0.15) throw new Error("the connection was reset");
    return {
      kind: "text",
      text:
        fate < 0.2 ? "" : `They spoke of ${drawWords(random, 3 + random.below(fate < 0.25 ? 2_000 : 20))}.`,
      model: { provider: "fake", model: "fake" },
      inputTokens: null,
      outputTokens: null,
    };
  };
}

/** The engine of a process. `burn` is called at each moment in which it may be killed. */
export function openSimulatedEngine(
  store: Store,
  { seed, number }: ProcessOrders,
  { burn, skewMs, random }: { burn: () => void; skewMs: () => number; random: Random },
): Engine {
  const clock = makeClock(seed + 1_000_000 * number);
  return createLocalEngine({
    store,
    settings: settingsOf(seed),
    clock: {
      now: () => {
        burn();
        return clock.now() + skewMs();
      },
      random: (size) => {
        burn();
        return clock.random(size);
      },
    },
    complete: seed % 3 === 0 ? makeModel(random, burn) : null,
  });
}

export interface PlayedOptions extends ProcessOrders {
  readonly store: Store;
  readonly skewMs: () => number;
  /** Of the models: called by work in the background, too, which must not change what the steps draw. */
  readonly random: Random;
  /** Keeps what is on the disk at the moment of the kill; null: the act fails at that point. */
  readonly keepImage: (() => void) | null;
}

/** Simulates a process in this one. When it is killed, its act fails at that point, or runs to its end although the disk is put back afterwards. */
export class PlayedProcess implements SimulatedProcess {
  readonly engine: Engine;
  readonly #keepImage: (() => void) | null;
  #fuse: number | null = null;
  #isKilled = false;

  constructor(options: PlayedOptions) {
    this.#keepImage = options.keepImage;
    this.engine = openSimulatedEngine(options.store, options, { ...options, burn: () => this.#burn() });
  }

  get isKilled(): boolean {
    return this.#isKilled;
  }

  async arm(fuse: number | null): Promise<void> {
    this.#fuse = fuse;
  }

  #burn(): void {
    if (this.#isKilled && this.#keepImage === null) throw new Error("the process was killed");
    if (this.#fuse === null || --this.#fuse > 0) return;
    this.#fuse = null;
    this.#isKilled = true;
    if (this.#keepImage === null) throw new Error("the process was killed");
    this.#keepImage();
  }

  async close(): Promise<void> {
    await this.engine.close();
  }
}

/** From the parent, with the state of its clock: a call, or when the process is killed. */
export interface SentCall {
  readonly id: number;
  readonly skewMs: number;
  readonly asked:
    | { readonly kind: "call"; readonly verb: string; readonly request: unknown }
    | { readonly kind: "arm"; readonly fuse: number | null };
}

/** To the parent; the error is that of the call, whose own fields are lost on the way. */
export interface SentAnswer {
  readonly id: number;
  readonly result?: unknown;
  readonly error?: Error;
  readonly code?: string;
}

export interface RealOrders extends ProcessOrders {
  readonly location: StoreLocation;
}

/** A program of its own. */
export class RealProcess implements SimulatedProcess {
  readonly engine: Engine;
  readonly #child: ChildProcess;
  readonly #skewMs: () => number;
  readonly #waiting = new Map<number, PromiseWithResolvers<unknown>>();
  readonly #ended: Promise<unknown>;
  #calls = 0;
  #hasEnded = false;

  constructor(orders: RealOrders, skewMs: () => number) {
    this.#skewMs = skewMs;
    this.#child = fork(PROGRAM, [JSON.stringify(orders)], {
      execArgv: [],
      serialization: "advanced",
      stdio: ["ignore", "ignore", "inherit", "ipc"],
    });
    this.#ended = once(this.#child, "exit").then(() => this.#failAll());
    this.#child.on("message", (answer: SentAnswer) => this.#take(answer));
    this.engine = makeMethods(VERBS, (verb, _verb, request) => this.#ask({ kind: "call", verb, request }));
  }

  get isKilled(): boolean {
    return this.#child.signalCode === "SIGKILL";
  }

  async arm(fuse: number | null): Promise<void> {
    // Killed meanwhile: then there is nothing to arm.
    await this.#ask({ kind: "arm", fuse }).catch(() => undefined);
  }

  #ask(asked: SentCall["asked"]): Promise<unknown> {
    if (this.#hasEnded) return Promise.reject(new Error("the process has ended"));
    const waiting = Promise.withResolvers<unknown>();
    const call: SentCall = { id: ++this.#calls, skewMs: this.#skewMs(), asked };
    this.#waiting.set(call.id, waiting);
    this.#child.send(call, (error) => error && this.#waiting.delete(call.id) && waiting.reject(error));
    return waiting.promise;
  }

  #take({ id, result, error, code }: SentAnswer): void {
    const waiting = this.#waiting.get(id);
    this.#waiting.delete(id);
    if (error === undefined) waiting?.resolve(result);
    else waiting?.reject(Object.assign(error, { code }));
  }

  #failAll(): void {
    this.#hasEnded = true;
    for (const { reject } of this.#waiting.values()) reject(new Error("the process was killed"));
    this.#waiting.clear();
  }

  async close(): Promise<void> {
    if (!this.#hasEnded) await this.engine.close();
    if (this.#child.connected) this.#child.disconnect();
    await this.#ended;
  }
}

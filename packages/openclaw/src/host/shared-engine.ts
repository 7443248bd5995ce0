/**
 * One engine per database in the process. The host loads this plugin twice (once for the gateway, once for agent runs) and again after a
 * configuration change; module variables are not shared between those instances, so the engines are in one registry on `globalThis`. The first
 * user opens an engine, the last one closes it.
 */

import { AsyncLocalStorage } from "node:async_hooks";
import { stat } from "node:fs/promises";
import { EngineError } from "@lossless/core";
import { openEngine } from "lossless-claw";
import type { Engine, EngineEvent, Settings } from "@lossless/core";
import { needsAdoption } from "@lossless/interchange/need";
import { openEmbed } from "@lossless/models";
import type { Adoption } from "@lossless/interchange";
import type { HostLlm } from "./host.ts";
import type { HostModels } from "../doctor-contract.ts";
import { adoptInThread } from "./chores.ts";
import { ModelAccess } from "./model-access.ts";
import { ProcessMemory } from "./process-memory.ts";

export interface SharedEngineOptions {
  readonly settings: Settings;
  readonly workerUrl: URL;
  readonly onEvent: (event: EngineEvent) => void;
  /** The plugin's own model access, if the host provides one. */
  readonly llm?: HostLlm | undefined;
  readonly hostModels?: HostModels | undefined;
  /** Adopts an older database; resolves when done. */
  readonly adopt?: (settings: Settings) => Promise<Adoption>;
  readonly onAdoption?: (adoption: Adoption) => void;
  /** True for the instance that lives as long as the gateway, false for one created for an agent run. */
  readonly isGateway?: boolean;
}

/** One user's lease of a shared engine. */
export interface EngineLease {
  /** The memory of this process, shared by all instances of the plugin. */
  readonly memory: ProcessMemory;
  readonly models: ModelAccess;
  /** Opens the database on first use. A failure is not cached: the next call tries again. */
  open(): Promise<Engine>;
  /** Resolves when a running adoption of another version's database, or a running upgrade of an older archive, has ended. */
  whenUpgraded(): Promise<void>;
  /** Drops an engine whose thread has died; the next call opens another. */
  discard(): void;
  /** Runs tasks of one session one after the other, across all instances of the plugin. */
  inOrder<T>(sessionId: string, task: () => Promise<T>): Promise<T>;
  /** Releases the lease; the last one closes the engine. The lease can be used again afterwards. */
  release(): Promise<void>;
}

interface Entry {
  /** The adoption of an older database, running or recently failed. */
  takeover: Takeover | null;
  opening: Opening | null;
  users: number;
  readonly memory: ProcessMemory;
  readonly models: ModelAccess;
  readonly lastTasks: Map<string, Promise<void>>;
}

interface OpenedEngine {
  readonly engine: Engine;
  /** Identity of the files that were opened: once one is removed or replaced, they are no longer written to. */
  readonly files: string;
}

/** An engine that is open or being opened. */
interface Opening {
  readonly opened: Promise<OpenedEngine>;
  /** Progress of the upgrade of an older archive; null unless it takes long. */
  upgrade: { readonly done: number; readonly total: number } | null;
  /** Resolves when an upgrade turns out to take long. */
  readonly delayed: Promise<"delayed">;
}

interface Takeover {
  readonly startedAt: number;
  ended: Promise<void>;
  failure: unknown;
}

/** A failed adoption (another program has the old database open) is retried after this. */
const TAKEOVER_RETRY_MS = 30_000;

const REGISTRY = Symbol.for("lossless-claw.engines");
/**
 * How long a call waits for another process to release the database. A turn makes two calls, before and after the model's answer, and waits at
 * most 500 ms in all; then it goes to the spool. The limit holds for every call, because a turn also waits for the calls before it in the
 * thread.
 */
const BUSY_LIMIT_MS = 250;

export function leaseEngine(options: SharedEngineOptions): EngineLease {
  const registry = findRegistry();
  // Different settings need a separate engine, also for the same file: the archive allows several writers.
  const key = JSON.stringify(options.settings);
  let holds = false;
  // Results of the engine's thread arrive in the scope of the caller that opened it; models are called in the scope of this registration.
  const runHere = AsyncLocalStorage.snapshot() as <T>(task: () => T) => T;
  if (options.isGateway === true) offerModels(entryOf());

  function offerModels({ models, memory }: Entry): void {
    models.useOwn(options.llm, runHere, options.isGateway === true);
    if (options.hostModels !== undefined) models.hostModels = options.hostModels;
    models.onSuccess = () => void memory.recover("models");
    models.onFailure = (message) => {
      if (memory.fail("models", message)) options.onEvent({ kind: "degraded", part: "summariser", message });
    };
  }

  function entryOf(): Entry {
    let entry = registry.get(key);
    if (entry === undefined) {
      entry = {
        takeover: null,
        opening: null,
        users: 0,
        memory: new ProcessMemory(),
        models: new ModelAccess(),
        lastTasks: new Map(),
      };
      registry.set(key, entry);
    }
    return entry;
  }

  /** Starts adopting an older database, in its own thread. No call waits for it: until it is done, turns go to the spool. */
  function takeOver(entry: Entry): Takeover {
    const { settings, adopt = adoptInThread, onAdoption } = options;
    const takeover: Takeover = {
      startedAt: Date.now(),
      failure: null,
      ended: Promise.resolve(),
    };
    const run = async (): Promise<void> => {
      try {
        const adoption = await adopt(settings);
        entry.takeover = null;
        onAdoption?.(adoption);
      } catch (error) {
        takeover.failure = error;
      }
    };
    takeover.ended = run();
    return takeover;
  }

  function refuseWhileOlder(entry: Entry): void {
    const path = options.settings.databasePath;
    if (entry.takeover === null && !needsAdoption(path)) return;
    const isOver = entry.takeover !== null && entry.takeover.failure !== null;
    if (entry.takeover === null || (isOver && Date.now() - entry.takeover.startedAt > TAKEOVER_RETRY_MS))
      entry.takeover = takeOver(entry);
    if (entry.takeover.failure !== null) throw entry.takeover.failure;
    throw new EngineError("database_busy", `${path} was written by another version and is being taken over`, {
      hint: "turns are kept until that is done; the old file stays beside it under another name",
    });
  }

  function beginOpening(entry: Entry): Opening {
    const { promise: delayed, resolve } = Promise.withResolvers<"delayed">();
    const onEvent = (event: EngineEvent): void => {
      if (event.kind === "progress") {
        opening.upgrade = event;
        resolve("delayed");
      }
      options.onEvent(event);
    };
    const opening: Opening = { opened: openFile(entry, onEvent), upgrade: null, delayed };
    opening.opened.then(
      () => (opening.upgrade = null),
      () => {
        if (entry.opening === opening) entry.opening = null;
      },
    );
    return opening;
  }

  /** No call waits for a long upgrade: until it is done, turns go to the spool. */
  async function waitFor(opening: Opening): Promise<OpenedEngine> {
    const first =
      opening.upgrade === null ? await Promise.race([opening.opened, opening.delayed]) : "delayed";
    if (first !== "delayed") return first;
    const { done, total } = opening.upgrade ?? { done: 1, total: 1 };
    const percent = Math.floor((100 * done) / total);
    const path = options.settings.databasePath;
    throw new EngineError("database_busy", `${path} is being upgraded to this version (${percent} %)`, {
      hint: "turns are kept until that is done, and stored then",
    });
  }

  async function openFile(entry: Entry, onEvent: (event: EngineEvent) => void): Promise<OpenedEngine> {
    const { models } = entry;
    refuseWhileOlder(entry);
    const engine = await openEngine({
      database: options.settings.databasePath,
      filesDir: options.settings.largeFilesDir,
      settings: options.settings,
      thread: true,
      workerUrl: options.workerUrl,
      busyLimitMs: BUSY_LIMIT_MS,
      onEvent,
      complete: models.complete,
      // The host offers no access to such a model; nothing is sent anywhere unless the settings name an address and a model.
      embed: openEmbed({ settings: options.settings, env: process.env }),
      // The host's own model comes after the settings' and before the fallbacks; ModelAccess determines it at the call.
      hostModel: null,
      create: true,
    });
    return { engine, files: await identifyFiles(options.settings.databasePath) };
  }

  return {
    get memory() {
      return entryOf().memory;
    },
    get models() {
      return entryOf().models;
    },
    async open() {
      const entry = entryOf();
      // An instance of an agent run is not notified when it ends, so it cannot hold a lease.
      if (!holds && options.isGateway !== false) {
        holds = true;
        entry.users += 1;
      }
      offerModels(entry);
      const opening = (entry.opening ??= beginOpening(entry));
      const opened = await waitFor(opening);
      if ((await identifyFiles(options.settings.databasePath)) === opened.files) return opened.engine;
      if (entry.opening === opening) entry.opening = null;
      // Its worker may be busy; do not wait for it.
      opened.engine.close().catch(() => undefined);
      return (await waitFor((entry.opening ??= beginOpening(entry)))).engine;
    },
    async whenUpgraded() {
      const { takeover, opening } = entryOf();
      await takeover?.ended;
      await opening?.opened.catch(() => undefined);
    },
    discard() {
      entryOf().opening = null;
    },
    async inOrder(sessionId, task) {
      const { lastTasks } = entryOf();
      const running = (lastTasks.get(sessionId) ?? Promise.resolve()).then(task);
      const settled = running.then(
        () => undefined,
        () => undefined,
      );
      lastTasks.set(sessionId, settled);
      try {
        return await running;
      } finally {
        if (lastTasks.get(sessionId) === settled) lastTasks.delete(sessionId);
      }
    },
    async release() {
      if (!holds) return;
      holds = false;
      const entry = entryOf();
      entry.users -= 1;
      if (entry.users > 0) return;
      registry.delete(key);
      await Promise.all(entry.lastTasks.values());
      const opened = await entry.opening?.opened.catch(() => null);
      await opened?.engine.close();
    },
  };
}

/** Identifies a database and its log, without which the newest rows are gone. */
async function identifyFiles(path: string): Promise<string> {
  return (await Promise.all([path, `${path}-wal`].map(identifyFile))).join(" ");
}

/** An identity of the file at a path that differs from any other file there; null when there is none. */
async function identifyFile(path: string): Promise<string | null> {
  try {
    const { dev, ino } = await stat(path);
    return `${dev}:${ino}`;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return null;
    throw error;
  }
}

/** True for failures of the database or of its thread: the same call may succeed when it is back. */
export function isDatabaseFailure(error: unknown): boolean {
  if (!(error instanceof EngineError)) return true;
  return error.code.startsWith("database_") || error.code === "internal";
}

/** True when the thread of an engine is gone and no call to it can succeed. */
export function isThreadFailure(error: unknown): boolean {
  return !(error instanceof EngineError) || error.code === "database_closed";
}

function findRegistry(): Map<string, Entry> {
  const holder = globalThis as { [REGISTRY]?: Map<string, Entry> };
  return (holder[REGISTRY] ??= new Map());
}

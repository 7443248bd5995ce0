/**
 * One engine per database in the process. The host loads this plugin twice (once for the gateway, once for agent runs) and again after a
 * change of its configuration; module variables are not shared between those instances, so the engines stand in one registry on
 * `globalThis`. An engine is opened by the first user, closed by the last.
 */

import { openEngine, type Engine, type EngineEvent, type Settings } from "@lossless/core";

export interface SharedEngineOptions {
  readonly settings: Settings;
  readonly workerUrl: URL;
  readonly onEvent: (event: EngineEvent) => void;
}

/** One user's hold on a shared engine. */
export interface EngineLease {
  /** Opens the database on first use. A failed attempt is not remembered: the next call tries again. */
  open(): Promise<Engine>;
  /** Runs tasks of one session one after the other, whichever instance of the plugin asks. */
  inOrder<T>(sessionId: string, task: () => Promise<T>): Promise<T>;
  /** Gives the hold back; the last one closes the engine. The lease may be used again afterwards. */
  release(): Promise<void>;
}

interface Entry {
  engine: Promise<Engine> | null;
  users: number;
  readonly lastTasks: Map<string, Promise<void>>;
}

const REGISTRY = Symbol.for("lossless-claw.engines");

export function leaseEngine(options: SharedEngineOptions): EngineLease {
  const registry = findRegistry();
  // Other settings need another engine, also for the same file: the archive allows several writers.
  const key = JSON.stringify(options.settings);
  let holds = false;

  function entryOf(): Entry {
    let entry = registry.get(key);
    if (entry === undefined) registry.set(key, (entry = { engine: null, users: 0, lastTasks: new Map() }));
    return entry;
  }

  return {
    async open() {
      const entry = entryOf();
      if (!holds) {
        holds = true;
        entry.users += 1;
      }
      entry.engine ??= openEngine({
        database: options.settings.databasePath,
        filesDir: options.settings.largeFilesDir,
        settings: options.settings,
        thread: true,
        workerUrl: options.workerUrl,
        onEvent: options.onEvent,
        create: true,
      });
      const opening = entry.engine;
      try {
        return await opening;
      } catch (error) {
        if (entry.engine === opening) entry.engine = null;
        throw error;
      }
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
      const engine = await entry.engine?.catch(() => null);
      await engine?.close();
    },
  };
}

function findRegistry(): Map<string, Entry> {
  const holder = globalThis as { [REGISTRY]?: Map<string, Entry> };
  return (holder[REGISTRY] ??= new Map());
}

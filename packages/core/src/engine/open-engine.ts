/**
 * Opening an engine: which store, which settings, in this thread or behind a worker. The engine's code is loaded where it runs, and not
 * before: a program that prints its help, or a host whose engine is behind a worker, never loads it.
 */
import { resolve } from "node:path";
import type { Complete, ModelRef } from "../model/complete.ts";
import type { Embed } from "../model/embed.ts";
import { EngineError } from "../model/errors.ts";
import type { Clock, EventSink } from "../model/events.ts";
import { filesDirBeside } from "../settings/files-dir.ts";
import type { Settings } from "../settings/settings.ts";
import { resolveSettings } from "../settings/settings-resolve.ts";
import type { Engine } from "./engine.ts";

export interface OpenEngineOptions {
  /** Path of the database file; created when it does not exist. */
  readonly database: string;
  /** Folder of the large files; one of its own beside the database when absent (`lcm-files` for `lcm.db`). */
  readonly filesDir?: string;
  readonly settings?: Settings;
  /** False: a missing database is an error. */
  readonly create?: boolean;
  /** Only reads; never creates, migrates or writes. */
  readonly readOnly?: boolean;
  /** False: the engine works in this thread, and its calls block it. For commands, not for hosts. */
  readonly thread?: boolean;
  /** Where the worker's file is, when the engine was bundled. */
  readonly workerUrl?: URL;
  readonly busyLimitMs?: number;
  readonly onEvent?: EventSink;
  /** The way to a model; without one the engine writes its summaries itself. Called on this thread. */
  readonly complete?: Complete | null;
  /** The model the host would use by itself; null: the host chooses. Absent outside a host. */
  readonly hostModel?: ModelRef | null;
  /** The way to a model that makes vectors, for search by meaning. Called on this thread. Nothing happens unless `embedding.model` is set. */
  readonly embed?: Embed | null;
  /** Time and chance, for tests; only without a thread. */
  readonly clock?: Clock;
  /** How long a process that folds is believed to be alive without a sign; only without a thread. */
  readonly leaseMs?: number;
  /** First wait after an embedding call that failed; only without a thread. */
  readonly embedRetryMs?: number;
}

export async function openEngine(options: OpenEngineOptions): Promise<Engine> {
  if (/^postgres(ql)?:\/\//.test(options.database)) {
    throw new EngineError("config", "cannot open a PostgreSQL database: this version stores in SQLite only", {
      hint: "name a file path as database",
    });
  }
  const path = resolve(options.database);
  const settings = options.settings ?? resolveSettings({ env: {}, config: { databasePath: path } }).settings;
  const readOnly = options.readOnly ?? false;
  const store = {
    path,
    filesDir: resolve(options.filesDir ?? filesDirBeside(path)),
    create: (options.create ?? true) && !readOnly,
    readOnly,
    busyLimitMs: options.busyLimitMs,
  };
  const { complete = null, embed = null, hostModel, onEvent } = options;
  if (options.thread !== false) {
    const { openThreadedEngine } = await import("./threaded-engine.ts");
    return openThreadedEngine({
      start: { store, settings, hasComplete: complete !== null, hasEmbed: embed !== null, hostModel },
      workerUrl: options.workerUrl ?? defaultWorkerUrl(),
      complete,
      embed,
      onEvent,
    });
  }
  const [{ createLocalEngine }, { SqliteStore }, { deriveMessage }] = await Promise.all([
    import("./local-engine.ts"),
    import("@lossless/sqlite"),
    import("../ingest/prepare.ts"),
  ]);
  const { clock, leaseMs, embedRetryMs } = options;
  return createLocalEngine({
    store: new SqliteStore({ ...store, onEvent, derive: deriveMessage }),
    settings,
    complete,
    embed,
    hostModel,
    onEvent,
    clock,
    leaseMs,
    embedRetryMs,
  });
}

/** Beside this file: TypeScript when run from source, JavaScript when bundled. */
function defaultWorkerUrl(): URL {
  return new URL(import.meta.url.endsWith(".ts") ? "./worker.ts" : "./worker.js", import.meta.url);
}

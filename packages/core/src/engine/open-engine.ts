/**
 * Opening an engine: with which settings, in this thread or in a worker. The package that knows the databases opens the stores. The
 * engine's code is loaded only where and when it runs: a program that prints its help, or a host whose engine is in a worker, never loads
 * it.
 */
import { settleAddress } from "../model/address.ts";
import type { Complete, ModelRef } from "../model/complete.ts";
import type { Embed } from "../model/embed.ts";
import type { Clock, EventSink } from "../model/events.ts";
import type { Settings } from "../settings/settings.ts";
import { resolveSettings } from "../settings/settings-resolve.ts";
import type { OpenStore } from "../store/open-store.ts";
import type { Engine } from "./engine.ts";

export interface OpenEngineOptions {
  /** Where the archive is: the path of a file, `sqlite:` or `file:` and a path, or `postgres://` and a server. Created when it does not exist. */
  readonly database: string;
  /** Folder of the large files; by default a separate one beside the database (`lcm-files` for `lcm.db`). */
  readonly filesDir?: string;
  readonly settings?: Settings;
  /** False: a missing database is an error. */
  readonly create?: boolean;
  /** Only reads; never creates, migrates or writes. */
  readonly readOnly?: boolean;
  /** False: the engine runs in this thread, and its calls block it. For commands, not for hosts. */
  readonly thread?: boolean;
  /** The URL of the worker's file, if the engine was bundled. */
  readonly workerUrl?: URL;
  readonly busyLimitMs?: number;
  readonly onEvent?: EventSink;
  /** Calls a model; without it the engine writes its summaries itself. Called on this thread. */
  readonly complete?: Complete | null;
  /** The host's default model; null: the host chooses. Absent outside a host. */
  readonly hostModel?: ModelRef | null;
  /** Calls an embedding model, for search by meaning. Called on this thread, and only if `embedding.model` is set. */
  readonly embed?: Embed | null;
  /** Time and randomness, for tests; only without a thread. */
  readonly clock?: Clock;
  /** How long a folding process counts as alive without renewing its lease; only without a thread. */
  readonly leaseMs?: number;
  /** First wait after a failed embedding call; only without a thread. */
  readonly embedRetryMs?: number;
}

export type OpenEngine = (options: OpenEngineOptions) => Promise<Engine>;

/** What an engine is built with: how stores are opened, and the worker's file, which opens them the same way. */
export interface EngineParts {
  readonly openStore: OpenStore;
  readonly workerUrl: URL;
}

export function makeOpenEngine(parts: EngineParts): OpenEngine {
  return async (options) => {
    const address = settleAddress(options.database);
    const settings =
      options.settings ?? resolveSettings({ env: {}, config: { databasePath: address } }).settings;
    const { filesDir, readOnly = false, busyLimitMs } = options;
    const create = (options.create ?? true) && !readOnly;
    const store = { address, filesDir, create, readOnly, busyLimitMs };
    const { complete = null, embed = null, hostModel, onEvent } = options;
    if (options.thread !== false) {
      const { openThreadedEngine } = await import("./threaded-engine.ts");
      return openThreadedEngine({
        start: { store, settings, hasComplete: complete !== null, hasEmbed: embed !== null, hostModel },
        workerUrl: options.workerUrl ?? parts.workerUrl,
        complete,
        embed,
        onEvent,
      });
    }
    const [{ createLocalEngine }, { deriveMessage }] = await Promise.all([
      import("./local-engine.ts"),
      import("../ingest/prepare.ts"),
    ]);
    const { clock, leaseMs, embedRetryMs } = options;
    return createLocalEngine({
      store: await parts.openStore(address, { ...store, onEvent, derive: deriveMessage }),
      settings,
      complete,
      embed,
      hostModel,
      onEvent,
      clock,
      leaseMs,
      embedRetryMs,
    });
  };
}

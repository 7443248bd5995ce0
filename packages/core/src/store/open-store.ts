/** How an archive is opened by its address, whatever its database. The list of databases is not known here. */
import type { EventSink } from "../model/events.ts";
import type { Derive, Store } from "./store.ts";

export interface OpenStoreOptions {
  /** Folder of the large files; by default a separate one beside the database (`lcm-files` for `lcm.db`). */
  readonly filesDir?: string | undefined;
  /** False: a missing database is an error. */
  readonly create?: boolean | undefined;
  /** Only reads; never creates, migrates or writes. */
  readonly readOnly?: boolean | undefined;
  readonly busyLimitMs?: number | undefined;
  /** Reads a stored message for the index: one that another process stored and did not get to index. */
  readonly derive: Derive;
  /** Receives an event when another process holds the lock for long, and the progress of the upgrade of an older archive. */
  readonly onEvent?: EventSink | undefined;
}

/** Opens the archive at an address: a path, `sqlite:` or `file:` and a path, or `postgres://` and a server. */
export type OpenStore = (address: string, options: OpenStoreOptions) => Promise<Store>;

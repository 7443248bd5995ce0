/** How an archive is opened, whatever database it is in: by its address. Which databases there are is not known here. */
import type { EventSink } from "../model/events.ts";
import type { Derive, Store } from "./store.ts";

export interface OpenStoreOptions {
  /** Folder of the large files; one of its own beside the database when absent (`lcm-files` for `lcm.db`). */
  readonly filesDir?: string | undefined;
  /** False: a missing database is an error. */
  readonly create?: boolean | undefined;
  /** Only reads; never creates, migrates or writes. */
  readonly readOnly?: boolean | undefined;
  readonly busyLimitMs?: number | undefined;
  /** Reads a stored message for the index: what another process stored and did not come to index. */
  readonly derive: Derive;
  /** Hears when another process holds the lock for long, and how far the upgrade of an older archive is. */
  readonly onEvent?: EventSink | undefined;
}

/** Opens the archive at an address: a path, `sqlite:` or `file:` and a path, or `postgres://` and a server. */
export type OpenStore = (address: string, options: OpenStoreOptions) => Promise<Store>;

/**
 * The PostgreSQL adapter of the store port: the table of verbs bound to a context. A snapshot is the same verbs in a read-only transaction; an
 * intake is the same in one that nobody sees before its commit.
 */
import type { ArchiveStatus, Derive, EventSink, Intake, Snapshot } from "@lossless/core/ports";
import { parseServerAddress } from "./address.ts";
import { databaseFiles, folderFiles } from "./blobs.ts";
import { Connection } from "./connection.ts";
import type { WriteSql } from "./connection.ts";
import type { StoreContext } from "./store-context.ts";
import { FullTextIndex, readIndexState } from "./full-text-index.ts";
import { IndexQueue } from "./index-queue.ts";
import { onServerTime } from "./leases.ts";
import { migrate } from "./migrate.ts";
import { CONFLICTING } from "./plans.ts";
import { readStatus } from "./read.ts";
import { enforceRules } from "./roles.ts";
import { bindVerbs, INTAKE_VERBS, VERBS } from "./verbs.ts";
import type { Bound } from "./verbs.ts";

export interface PostgresStoreOptions {
  readonly address: string;
  readonly create?: boolean | undefined;
  readonly readOnly?: boolean | undefined;
  readonly busyLimitMs?: number | undefined;
  readonly onEvent?: EventSink | undefined;
  /** Reads a stored message for the index: one that another process stored and did not index. */
  readonly derive?: Derive | undefined;
  /** The time of this machine, for tests. */
  readonly clock?: (() => number) | undefined;
  /** Called with the number of reads of each plan, for tests. */
  readonly onPlan?: ((asks: number) => void) | undefined;
}

export interface PostgresStore extends Bound<typeof VERBS> {
  status(owner?: string): Promise<ArchiveStatus>;
  withSnapshot<T>(work: (snapshot: Snapshot) => Promise<T>): Promise<T>;
  bringIn<T>(work: (into: Intake) => Promise<T>, options?: { isRepeatable?: boolean }): Promise<T>;
  flushIndex(): Promise<void>;
  close(): Promise<void>;
}

export async function openPostgresStore(options: PostgresStoreOptions): Promise<PostgresStore> {
  const { address, create = false, readOnly = false, busyLimitMs, derive = null, onPlan } = options;
  const connection = new Connection({ address, readOnly, busyLimitMs });
  try {
    await migrate(connection, { create, onUpgraded: enforceRules });
  } catch (error) {
    await connection.close();
    throw error;
  }
  const index = new FullTextIndex((messages) => queue.notePending(messages));
  const { filesDir } = parseServerAddress(address);
  const files = filesDir === null ? databaseFiles : folderFiles(filesDir);
  const context: StoreContext = { sql: connection, files, index, derive, onPlan };
  const queue = new IndexQueue(context, { readOnly });
  const verbs = bindVerbs(VERBS, context);
  return {
    ...verbs,
    ...onServerTime(verbs, connection, options.clock ?? Date.now),
    status: async (owner) => ({
      databasePath: connection.name,
      ...(await readStatus(context, owner ?? null)),
      index: await readIndexState(connection),
    }),
    withSnapshot: (work) => connection.readThroughout((sql) => work(bindVerbs(VERBS, { ...context, sql }))),
    bringIn: (work, { isRepeatable = false } = {}) => {
      const run = (sql: WriteSql): ReturnType<typeof work> =>
        work(bindVerbs({ ...VERBS, ...INTAKE_VERBS }, { ...context, sql }));
      return isRepeatable
        ? connection.write(run, { ...CONFLICTING, isPatient: true })
        : connection.writeThroughout(run);
    },
    // Searches read pending texts: writing the index for each search would cost many times as much.
    flushIndex: () => (derive === null ? queue.settle("all") : Promise.resolve()),
    close: async () => {
      await queue.close();
      await connection.close();
    },
  };
}

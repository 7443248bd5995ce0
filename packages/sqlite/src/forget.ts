/**
 * Forgetting on SQLite: the rules are in `archive/forget.ts`. This file wipes what the database file itself retains: pages, gaps in pages,
 * the log and the terms of the index.
 *
 * Invariant: after the transaction no row and no index term contains the text; after `wipeFreed` no page of the file does.
 */
import { planForget, planForgetting } from "@lossless/core/adapter";
import type { ForgetResult, ForgetPlan, ForgetRequest } from "@lossless/core/ports";
import { MADE_MS, sweepIntakes } from "./intake.ts";
import type { StoreContext } from "./store-context.ts";
import { readPlan, writePlan } from "./plans.ts";
import { dropUnfinished } from "./reindex.ts";
import { watchSealed } from "./seals.ts";
import { removeUnnamed } from "./unnamed-blobs.ts";

const OPEN = "forgetting_open";
const IS_OPEN = "SELECT 1 AS found FROM meta WHERE key = ?";
const SET_OPEN =
  "INSERT INTO meta (key, value) VALUES (?, ?) ON CONFLICT DO UPDATE SET value = excluded.value";
const CLOSE = "DELETE FROM meta WHERE key = ?";
/** Large files that were forgotten and are not removed yet, by name. */
const FILE = "forgotten_file ";
const ADD_FILE = "INSERT INTO meta (key, value) VALUES (?, ?) ON CONFLICT DO NOTHING";
const LIST_FILES = "SELECT key FROM meta WHERE key >= ? AND key < ?";

export const readForgetPlan = (
  context: StoreContext,
  messageIds: readonly number[],
  alsoSummaryIds: readonly string[],
): ForgetPlan => readPlan(context, () => planForgetting(messageIds, alsoSummaryIds));

export function forget(context: StoreContext, request: ForgetRequest): ForgetResult {
  const { connection } = context;
  const outcome = connection.write((): ForgetResult => {
    // Overwrite deleted content in place, not only where that is free.
    connection.exec("PRAGMA secure_delete = ON");
    const planned = writePlan(context, () => planForget(request));
    if (planned.kind === "stale") return planned;
    connection.run(SET_OPEN, OPEN, request.now);
    for (const { blob } of planned.plan.files) connection.run(ADD_FILE, `${FILE}${blob}`, request.now);
    context.index.compress();
    // A rebuild, here or in another process, may already have the terms.
    dropUnfinished(context);
    return planned;
  });
  if (outcome.kind === "stale") return outcome;
  removeForgotten(context);
  const intakeFiles = sweepIntakes(connection, Date.now(), MADE_MS);
  return intakeFiles.length === 0 ? outcome : { ...outcome, intakeFiles };
}

/** After the commit, so that a failure loses nothing; a kill before this leaves the names, and {@link wipeFreed} finishes. */
function removeForgotten({ connection, files }: StoreContext): void {
  connection.write(() => {
    const keys = connection.all<{ key: string }>(LIST_FILES, FILE, `${FILE}~`).map(({ key }) => key);
    const names = keys.map((key) => key.slice(FILE.length));
    removeUnnamed(connection, files, names);
    for (const key of keys) connection.run(CLOSE, key);
  });
}

export function isForgettingOpen({ connection }: StoreContext): boolean {
  return connection.get(IS_OPEN, OPEN) !== undefined;
}

/**
 * Rewrites the whole file and empties the write-ahead log, so that no freed page, no gap in a page and no old log frame is left. Other
 * processes may keep reading and writing; one that holds a transaction open for long prevents the log from being emptied.
 */
export function wipeFreed(context: StoreContext): boolean {
  const { connection } = context;
  removeForgotten(context);
  dropUnfinished(context);
  connection.forgetStatements();
  // On disk, because the copy is as large as the database; it contains only what is kept.
  connection.exec("PRAGMA secure_delete = ON; PRAGMA temp_store = FILE");
  try {
    connection.retry(() => connection.exec("VACUUM"), "rewrite");
  } finally {
    connection.exec("PRAGMA temp_store = MEMORY");
    watchSealed(connection);
  }
  if (!connection.emptyLog()) return false;
  connection.write(() => connection.run(CLOSE, OPEN));
  return connection.emptyLog();
}

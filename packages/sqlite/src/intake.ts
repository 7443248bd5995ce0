/**
 * Bringing whole conversations in beside other writers. What is brought in is stored and proven in an archive of its own, a file beside the
 * database, and comes over in one short transaction at the end. That works for what is new here as a whole. Whatever touches something
 * that is here already, or that somebody else stored meanwhile, is brought in again while this store holds the lock.
 *
 * Invariants: numbers of rows in that file are taken from this archive before, so that chains and file ids hold when the rows come over.
 * Nobody sees a row before all do. A kill leaves a file that nothing refers to; whoever opens the archive next removes it.
 */
import { randomBytes } from "node:crypto";
import { readdirSync, rmSync, statSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import type { Intake, TableName } from "@lossless/core/ports";
import { isConstraint } from "./connection.ts";
import type { Connection } from "./connection.ts";
import type { StoreContext } from "./store-context.ts";
import type { SummaryDocument } from "./full-text-index.ts";
import { PlanReads } from "./plan-reads.ts";
import { copyRows } from "./write-rows.ts";

/** An intake that takes only what another archive has nothing of; `note` hears when it meets something else, and fails. */
export function takeNew({ connection }: StoreContext, into: Intake, note: () => void): Intake {
  const here = new PlanReads(connection);
  const refuse = (): never => {
    note();
    throw new Error("this archive has some of it already");
  };
  const refuseIf = (found: boolean): void => (found ? refuse() : undefined);
  const refuseSessions = (owner: string, ids: readonly string[]): void =>
    refuseIf(here.sessions(owner, [...new Set(ids)]).length > 0);
  const owners = new Map<number, string>();
  return {
    ...into,
    append: async (batch) => {
      refuseSessions(batch.session.owner, [batch.session.id]);
      return into.append(batch);
    },
    readSession: async (owner, sessionId) => {
      refuseSessions(owner ?? refuse(), [sessionId]);
      return into.readSession(owner, sessionId);
    },
    moveSessions: async (sessions, turns, follows) => {
      for (const [owner, some] of Map.groupBy([...sessions, ...turns], (row) => row.owner))
        refuseSessions(
          owner,
          some.map((row) => row.sessionId),
        );
      refuseIf(here.turns(turns.map(({ key }) => key)).length > 0);
      await into.moveSessions(sessions, turns, follows);
    },
    openMoved: async (moved, nth, now, follows) => {
      const { owner, sessionKey, createdAt, placements } = moved;
      refuseSessions(
        owner,
        placements.map((place) => place.sessionId),
      );
      refuseIf(here.conversationsBegun(owner, sessionKey, createdAt).length > 0);
      refuseIf(moved.archivedAt === null && here.active(owner, sessionKey) !== null);
      const outcome = await into.openMoved(moved, nth, now, follows);
      if (outcome.kind === "opened") owners.set(outcome.conversationId, owner);
      return outcome;
    },
    moveRows: async (conversationId, rows, ...rest) => {
      const names = rows.flatMap((row) => (row.kind === "message" ? row.sessionId : []));
      refuseSessions(owners.get(conversationId) ?? refuse(), names);
      await into.moveRows(conversationId, rows, ...rest);
    },
    moveSummaries: async (conversationId, summaries) => {
      refuseIf(here.contents(summaries.map(({ summaryId }) => summaryId)).length > 0);
      return into.moveSummaries(conversationId, summaries);
    },
  };
}

/** What conversations are made of, those that others refer to first. The rest is bookkeeping, which the archive makes itself. */
const BROUGHT: readonly TableName[] = [
  "sessions",
  "conversations",
  "placements",
  "turns",
  "messages",
  "imports",
  "event_ids",
  "ledger",
  "large_files",
  "message_parts",
  "redactions",
  "sealed_values",
  "summaries",
  "summary_messages",
  "summary_parents",
  "context_items",
  "boundaries",
];
const SUMMARIES = `
  SELECT summary_id AS summaryId, conversation_id AS conversationId, content FROM intake.summaries ORDER BY summary_id`;

/** Takes all rows of the file over; false, and nothing happens, if one of them is here meanwhile. */
export function copyIn({ connection, index }: StoreContext, path: string): boolean {
  connection.run("ATTACH ? AS intake", path);
  try {
    connection.write(() => {
      for (const table of BROUGHT) connection.exec(copyRows(table, "intake"));
      for (const summary of connection.all<SummaryDocument>(SUMMARIES)) index.addSummary(summary);
    });
    return true;
  } catch (error) {
    if (!isConstraint(error)) throw error;
    return false;
  } finally {
    connection.forgetStatements();
    connection.exec("DETACH intake");
  }
}

const prefixOf = (path: string): string => `${path}-intake-`;

/** A path for such a file. */
export const nameIntake = (path: string): string => prefixOf(path) + randomBytes(6).toString("hex");

/** One that cannot be removed now is removed by whoever opens the archive later. */
export function removeIntake(path: string): void {
  for (const suffix of ["", "-wal", "-shm"])
    try {
      rmSync(path + suffix, { force: true });
    } catch {
      return;
    }
}

/** Long enough that a file which is being made now is not taken for one that was left behind. */
const LEFT_AFTER_MS = 60_000;

/** Soon after its name is taken, such a file is locked until it is read. */
export const MADE_MS = 5_000;

/** Removes the files of programs that were killed, and names them. One that is in use is locked. */
export function sweepIntakes(
  { path, readOnly }: Connection,
  now: number,
  leftAfterMs = LEFT_AFTER_MS,
): string[] {
  if (readOnly) return [];
  const removed: string[] = [];
  const folder = dirname(path);
  const prefix = basename(prefixOf(path));
  for (const name of listFolder(folder)) {
    if (!name.startsWith(prefix) || !/^[0-9a-f]{12}$/.test(name.slice(prefix.length))) continue;
    const left = join(folder, name);
    const age = now - (statSync(left, { throwIfNoEntry: false })?.mtimeMs ?? now);
    if (age <= leftAfterMs || !isFree(left)) continue;
    removeIntake(left);
    removed.push(left);
  }
  return removed;
}

/** Nothing in a folder that may be entered but not listed. */
function listFolder(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}

function isFree(path: string): boolean {
  let database: DatabaseSync | null = null;
  try {
    database = new DatabaseSync(path);
    database.exec("BEGIN EXCLUSIVE; ROLLBACK");
    return true;
  } catch {
    return false;
  } finally {
    database?.close();
  }
}

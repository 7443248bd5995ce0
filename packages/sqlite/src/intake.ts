/**
 * Stores whole conversations while others write. They are stored and proven in a separate archive, a file beside the database, and
 * transferred in one short transaction at the end. What the archive already has of the affected conversations is first copied into that
 * file (`intake-copies.ts`). If another process changed the same rows meanwhile, it is repeated with the current rows; only if that happens
 * again does this store hold the lock throughout.
 *
 * Invariants: row ids in that file are reserved in this archive beforehand, so that chains and file ids stay valid after the transfer.
 * Nobody sees a row before all are visible. A kill leaves an unreferenced file; the next process that opens the archive removes it.
 */
import { randomBytes } from "node:crypto";
import { readdirSync, rmSync, statSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import type { Blobs, Intake } from "@lossless/core/ports";
import { isConstraint } from "./errors.ts";
import type { Connection } from "./connection.ts";
import type { StoreContext } from "./store-context.ts";
import { removeUnnamed } from "./unnamed-blobs.ts";
import type { SummaryDocument } from "./full-text-index.ts";
import { listSessions } from "./intake-copies.ts";
import type { IntakeCopies } from "./intake-copies.ts";
import {
  BROUGHT,
  FIND_NEW_VECTOR,
  findConflict,
  takeAdded,
  takeChanged,
  takeDeleted,
} from "./intake-rows.ts";

/** How often an intake is tried without holding the lock. */
export const TRIES_BESIDE = 2;

/** An intake that first copies what it reads from the archive into its file. */
export function findCopies(into: Intake, copies: IntakeCopies): Intake {
  return {
    ...into,
    append: async (batch) => {
      const { owner, key, id } = batch.session;
      copies.takeSessions(owner, [id]);
      copies.takeActive(owner, key);
      if (batch.turn) copies.takeTurns([batch.turn.advancementKey]);
      return into.append(batch);
    },
    readSession: async (owner, sessionId) => {
      copies.takeSessions(owner, [sessionId]);
      return into.readSession(owner, sessionId);
    },
    listMoved: async (choice) => {
      if (choice.conversationIds === undefined) copies.takeAll(choice.owner ?? null);
      return into.listMoved(choice);
    },
    moveSessions: async (sessions, turns, follows) => {
      for (const [owner, some] of Map.groupBy([...sessions, ...turns], (row) => row.owner))
        copies.takeSessions(
          owner,
          some.map((row) => row.sessionId),
        );
      copies.takeTurns(turns.map(({ key }) => key));
      await into.moveSessions(sessions, turns, follows);
    },
    openMoved: async (moved, nth, now, follows) => {
      const { owner, sessionKey, createdAt, placements } = moved;
      copies.takeSessions(
        owner,
        placements.map((place) => place.sessionId),
      );
      copies.takeFamily(owner, sessionKey);
      copies.takeBegun(owner, sessionKey, createdAt);
      return into.openMoved(moved, nth, now, follows);
    },
    moveRows: async (conversationId, rows, ...rest) => {
      copies.takeSessionsOf(conversationId, listSessions(rows));
      await into.moveRows(conversationId, rows, ...rest);
    },
    moveSummaries: async (conversationId, summaries) => {
      copies.takeSummaries(summaries.map(({ summaryId }) => summaryId));
      return into.moveSummaries(conversationId, summaries);
    },
  };
}

const NEW_SUMMARIES = `
  SELECT summary_id AS summaryId, conversation_id AS conversationId, content FROM intake.summaries
  WHERE summary_id NOT IN (SELECT summary_id FROM intake.before_summaries) ORDER BY summary_id`;

/**
 * Transfers the file's rows into the archive; false, without any change, if another process changed the same rows meanwhile, or removed a large
 * file that no row named yet.
 */
export function copyIn({ connection, index }: StoreContext, path: string, blobs: IntakeBlobs): boolean {
  connection.run("ATTACH ? AS intake", path);
  try {
    return connection.write(() => {
      if (!blobs.areThere()) return false;
      if ([...BROUGHT.map(findConflict), FIND_NEW_VECTOR].some((sql) => connection.get(sql))) return false;
      for (const table of BROUGHT.toReversed()) connection.exec(takeDeleted(table));
      // A conversation that is archived now makes room for the next; in other tables changed rows may refer to added ones.
      connection.exec(takeChanged("conversations"));
      for (const table of BROUGHT) connection.exec(takeAdded(table));
      for (const table of BROUGHT) connection.exec(takeChanged(table));
      for (const summary of connection.all<SummaryDocument>(NEW_SUMMARIES)) index.addSummary(summary);
      return true;
    });
  } catch (error) {
    if (!isConstraint(error)) throw error;
    return false;
  } finally {
    connection.forgetStatements();
    connection.exec("DETACH intake");
  }
}

/** The blobs of an intake: they are not removed before it is known that nobody else has stored the same. */
export class IntakeBlobs implements Blobs {
  readonly #blobs: Blobs;
  readonly #put = new Set<string>();

  constructor(blobs: Blobs) {
    this.#blobs = blobs;
  }

  put(name: string, content: Uint8Array): void {
    this.#put.add(name);
    this.#blobs.put(name, content);
  }

  read(name: string): Uint8Array | null {
    return this.#blobs.read(name);
  }

  remove(): boolean {
    return false;
  }

  list(): string[] {
    return this.#blobs.list();
  }

  /** To be asked while nobody can write, which is when they are removed: another intake that had put the same may have taken it back. */
  areThere(): boolean {
    return this.#put.size === 0 || this.#put.isSubsetOf(new Set(this.list()));
  }

  /** Removes those that no row of the archive names, while nobody can add one. If others write all the time, the doctor finds them. */
  takeBack(connection: Connection): void {
    if (this.#put.size === 0) return;
    connection.tryWrite(() => removeUnnamed(connection, this.#blobs, this.#put));
  }
}

const prefixOf = (path: string): string => `${path}-intake-`;

/** A path for such a file. */
export const nameIntake = (path: string): string => prefixOf(path) + randomBytes(6).toString("hex");

/** One that cannot be removed now is removed when the archive is next opened. */
export function removeIntake(path: string): void {
  for (const suffix of ["", "-wal", "-shm"])
    try {
      rmSync(path + suffix, { force: true });
    } catch {
      return;
    }
}

/** Long enough that a file being created now is not mistaken for an abandoned one. */
const LEFT_AFTER_MS = 60_000;

/** Soon after its name is chosen, such a file is locked until it has been read. */
export const MADE_MS = 5_000;

/** Removes the files of killed programs, and returns their names. One in use is locked. */
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
    // A time far ahead: the clock was set back since.
    const age = Math.abs(now - (statSync(left, { throwIfNoEntry: false })?.mtimeMs ?? now));
    if (age <= leftAfterMs || !isFree(left)) continue;
    removeIntake(left);
    removed.push(left);
  }
  return removed;
}

/** Empty for a folder that may be entered but not listed. */
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

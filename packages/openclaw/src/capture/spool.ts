/**
 * The spool, where turns wait while the database cannot store them: one file for each, named by the hash of the turn's key, in `lcm-spool/`
 * beside the database. A turn counts as kept only when its file and the folder are on the disk. Draining replays the turns of a session in order
 * of arrival; each file is deleted only after the database has the turn, and the database records its key, so a crash in between repeats
 * nothing. An unreadable file is moved aside and reported in `status`; it never blocks the others, and the host's transcript still has its
 * messages.
 */

import { createHash, randomUUID } from "node:crypto";
import { mkdir, open, readdir, readFile, rename, rm, stat, utimes } from "node:fs/promises";
import { dirname, join } from "node:path";
import { flushPath, serializeExact } from "@lossless/core/doors";
import type { CommitTurnParams } from "../host/host.ts";

/** A turn as the host delivered it, without objects that are only valid during the call. */
export type SpooledTurn = Pick<
  CommitTurnParams,
  | "advancementKey"
  | "admission"
  | "terminal"
  | "messages"
  | "sessionId"
  | "sessionKey"
  | "sessionTarget"
  | "isHeartbeat"
>;

interface SpoolFile {
  readonly name: string;
  readonly spooledAt: number;
  readonly turn: SpooledTurn;
}

const FORMAT = 1;
const DAMAGED = ".damaged";
const REFUSED = ".refused";
/** A write that has not finished after this time never will: its process is gone. */
const STALE_WRITE_MS = 60_000;
const LOCK = "drain.lock";
/** A process that does not touch its lock for this time is gone. */
const STALE_LOCK_MS = 60_000;

export class Spool {
  readonly folder: string;
  /** Sessions with files, once the folder was read; kept up to date by `add` and `drain`. */
  #waiting: Map<string, number> | null = null;

  readonly #onDamaged: (name: string, cause: unknown) => void;

  constructor(databasePath: string, onDamaged: (name: string, cause: unknown) => void = () => undefined) {
    this.folder = join(dirname(databasePath), "lcm-spool");
    this.#onDamaged = onDamaged;
  }

  /** Stores a turn. Returns false if it is already stored. Throws if it cannot be stored durably. */
  async add(turn: SpooledTurn, now = Date.now()): Promise<boolean> {
    await this.#load();
    await mkdir(this.folder, { recursive: true, mode: 0o700 });
    const name = nameOf(turn.advancementKey);
    const path = join(this.folder, name);
    // Rewrite a record that has been damaged since.
    if ((await this.#readFile(name)) !== null) return false;
    const temporary = `${path}.${randomUUID()}`;
    try {
      await writeFlushed(temporary, serializeExact({ format: FORMAT, spooledAt: now, turn }));
      await rename(temporary, path);
    } catch (error) {
      await rm(temporary, { force: true });
      throw error;
    }
    await flushPath(this.folder);
    this.#count(turn.sessionId, 1);
    return true;
  }

  async has(sessionId: string): Promise<boolean> {
    return ((await this.#load()).get(sessionId) ?? 0) > 0;
  }

  /** The number of waiting turns. */
  async size(): Promise<number> {
    return [...(await this.#load()).values()].reduce((sum, count) => sum + count, 0);
  }

  async sessions(): Promise<string[]> {
    return [...(await this.#load())].filter(([, count]) => count > 0).map(([sessionId]) => sessionId);
  }

  /**
   * Passes the turns of a session to `store`, oldest first. The first failure stops it, so that the order is kept. Returns how many were stored;
   * if another process is draining, there is nothing to do.
   */
  async drain(sessionId: string, store: (turn: SpooledTurn) => Promise<void>): Promise<number> {
    if (!(await this.has(sessionId))) return 0;
    const release = await this.#lock();
    if (release === null) return 0;
    let drained = 0;
    try {
      const files = (await this.#read()).filter((file) => file.turn.sessionId === sessionId);
      for (const { name, turn } of files) {
        await store(turn);
        await rm(join(this.folder, name), { force: true });
        await flushPath(this.folder);
        this.#count(sessionId, -1);
        drained += 1;
      }
      // Any other counted file was damaged, or another process has stored it.
      this.#waiting?.delete(sessionId);
      return drained;
    } finally {
      await release();
    }
  }

  /** Moves a turn aside that can never be stored, so that it does not block the others. Its file stays, under another name. */
  async setAside(turn: SpooledTurn): Promise<void> {
    const path = join(this.folder, nameOf(turn.advancementKey));
    await rename(path, `${path}${REFUSED}`);
  }

  /** Names of the files that were moved aside: damaged ones, and turns that can never be stored. */
  async listAside(): Promise<string[]> {
    await this.#load();
    const names = await listFolder(this.folder);
    return names.filter((name) => name.endsWith(DAMAGED) || name.endsWith(REFUSED)).toSorted();
  }

  async #load(): Promise<Map<string, number>> {
    if (this.#waiting !== null) return this.#waiting;
    const files = await this.#read();
    const waiting = new Map<string, number>();
    for (const { turn } of files) waiting.set(turn.sessionId, (waiting.get(turn.sessionId) ?? 0) + 1);
    return (this.#waiting ??= waiting);
  }

  async #read(): Promise<SpoolFile[]> {
    const files: SpoolFile[] = [];
    for (const name of await listFolder(this.folder)) {
      if (TEMPORARY_NAME.test(name)) await removeStale(join(this.folder, name), STALE_WRITE_MS);
      if (!name.endsWith(".json")) continue;
      const file = await this.#readFile(name);
      if (file !== null) files.push(file);
    }
    return files.toSorted(
      (a, b) =>
        a.turn.admission.activeMessagePosition - b.turn.admission.activeMessagePosition ||
        a.spooledAt - b.spooledAt,
    );
  }

  /** The record of that name; null when there is none, or when it was damaged and has been moved aside. */
  async #readFile(name: string): Promise<SpoolFile | null> {
    const path = join(this.folder, name);
    try {
      const { spooledAt, turn } = parseRecord(await readFile(path, "utf8"));
      return { name, spooledAt, turn };
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      if (code === "ENOENT") return null;
      // The process is out of file handles; the file may be intact.
      if (code === "EMFILE" || code === "ENFILE") throw error;
      if (await moveAside(path)) this.#onDamaged(`${name}${DAMAGED}`, error);
      return null;
    }
  }

  #count(sessionId: string, change: number): void {
    this.#waiting?.set(sessionId, Math.max(0, (this.#waiting.get(sessionId) ?? 0) + change));
  }

  /** One drain at a time, also across processes. */
  async #lock(): Promise<(() => Promise<void>) | null> {
    const path = join(this.folder, LOCK);
    await removeStale(path, STALE_LOCK_MS);
    try {
      const file = await open(path, "wx", 0o600);
      await file.close();
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "EEXIST") return null;
      throw error;
    }
    const touch = setInterval(
      () => void utimes(path, new Date(), new Date()).catch(() => undefined),
      STALE_LOCK_MS / 4,
    );
    touch.unref();
    return async () => {
      clearInterval(touch);
      await rm(path, { force: true });
    };
  }
}

function nameOf(advancementKey: string): string {
  return `${createHash("sha256").update(advancementKey).digest("hex").slice(0, 32)}.json`;
}

async function listFolder(folder: string): Promise<string[]> {
  try {
    return await readdir(folder);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return [];
    throw error;
  }
}

/** The name that `add` gives a file while writing it. */
const TEMPORARY_NAME = /\.json\.[0-9a-f]{8}-[0-9a-f-]{27}$/;

/** False when another process was faster. */
async function moveAside(path: string): Promise<boolean> {
  try {
    await rename(path, `${path}${DAMAGED}`);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return false;
    throw error;
  }
  await flushPath(dirname(path));
  return true;
}

async function writeFlushed(path: string, text: string): Promise<void> {
  const file = await open(path, "wx", 0o600);
  try {
    await file.writeFile(text);
    await file.sync();
  } finally {
    await file.close();
  }
}

/** Throws on anything that is not a complete record of this version. */
function parseRecord(text: string): { spooledAt: number; turn: SpooledTurn } {
  const { format, spooledAt, turn } = JSON.parse(text) as {
    format: number;
    spooledAt: number;
    turn: SpooledTurn;
  };
  if (format !== FORMAT) throw new Error(`the format is ${format}, not ${FORMAT}`);
  const isWhole =
    typeof spooledAt === "number" &&
    typeof turn?.advancementKey === "string" &&
    typeof turn.sessionId === "string" &&
    Array.isArray(turn.messages) &&
    typeof turn.admission?.entryId === "string" &&
    typeof turn.admission.activeMessagePosition === "number" &&
    typeof turn.terminal?.entryId === "string" &&
    typeof turn.terminal.activeMessagePosition === "number";
  if (!isWhole) throw new Error("fields of the turn are missing");
  return { spooledAt, turn };
}

/** A time far ahead is as old: the clock was set back since. */
async function removeStale(path: string, ageMs: number): Promise<void> {
  const time = await readTime(path);
  if (time !== null && Math.abs(Date.now() - time) > ageMs) await rm(path, { force: true });
}

async function readTime(path: string): Promise<number | null> {
  try {
    return (await stat(path)).mtimeMs;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return null;
    throw error;
  }
}

/**
 * Where turns wait while the database cannot take them: one file for each, named by the hash of the turn's key, in `lcm-spool/` beside the
 * database. A turn counts as kept only when its file and the folder are on the disk. Draining replays the turns of a session in the order
 * they came; each is deleted only after the database has it, and the database knows its key, so a crash in between repeats nothing.
 */

import { createHash, randomUUID } from "node:crypto";
import { mkdir, open, readdir, readFile, rename, rm, stat, utimes } from "node:fs/promises";
import { dirname, join } from "node:path";
import { serializeExact } from "@lossless/core/message/json-text.ts";
import { flushPath } from "@lossless/core/store/flush-path.ts";
import type { CommitTurnParams } from "./host.ts";

/** A turn as the host handed it over, without what only lives as long as the call. */
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
const LOCK = "drain.lock";
/** A drainer that does not touch its lock for this long is gone. */
const STALE_LOCK_MS = 60_000;

export class Spool {
  readonly folder: string;
  /** Sessions with files, once the folder was read; kept in step by `add` and `drain`. */
  #waiting: Map<string, number> | null = null;

  constructor(databasePath: string) {
    this.folder = join(dirname(databasePath), "lcm-spool");
  }

  /** Keeps a turn. Returns false when it was there before. Throws when it cannot be kept for certain. */
  async add(turn: SpooledTurn, now = Date.now()): Promise<boolean> {
    await this.#load();
    await mkdir(this.folder, { recursive: true, mode: 0o700 });
    const path = join(this.folder, nameOf(turn.advancementKey));
    if (await exists(path)) return false;
    const aside = `${path}.${randomUUID()}`;
    const file = await open(aside, "wx", 0o600);
    try {
      await file.writeFile(serializeExact({ format: FORMAT, spooledAt: now, turn }));
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(aside, path);
    await flushPath(this.folder);
    this.#count(turn.sessionId, 1);
    return true;
  }

  async has(sessionId: string): Promise<boolean> {
    return ((await this.#load()).get(sessionId) ?? 0) > 0;
  }

  /** How many turns wait. */
  async size(): Promise<number> {
    return [...(await this.#load()).values()].reduce((sum, count) => sum + count, 0);
  }

  async sessions(): Promise<string[]> {
    return [...(await this.#load())].filter(([, count]) => count > 0).map(([sessionId]) => sessionId);
  }

  /**
   * Hands the turns of a session to `store`, oldest first. The first that fails stops it, so that the order is kept. Returns how many were
   * stored; another process that drains at this moment leaves nothing to do.
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
      if (files.length === 0) this.#waiting?.delete(sessionId);
      return drained;
    } finally {
      await release();
    }
  }

  /** Takes a turn out of the line that can never be stored, so that the others can. Its file stays, under another name. */
  async setAside(turn: SpooledTurn): Promise<void> {
    const path = join(this.folder, nameOf(turn.advancementKey));
    await rename(path, `${path}.refused`);
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
      if (!name.endsWith(".json")) continue;
      const text = await readFile(join(this.folder, name), "utf8");
      const { format, spooledAt, turn } = JSON.parse(text) as {
        format: number;
        spooledAt: number;
        turn: SpooledTurn;
      };
      if (format === FORMAT) files.push({ name, spooledAt, turn });
    }
    return files.toSorted(
      (a, b) =>
        a.turn.admission.activeMessagePosition - b.turn.admission.activeMessagePosition ||
        a.spooledAt - b.spooledAt,
    );
  }

  #count(sessionId: string, change: number): void {
    this.#waiting?.set(sessionId, Math.max(0, (this.#waiting.get(sessionId) ?? 0) + change));
  }

  /** One drainer at a time, also between processes. */
  async #lock(): Promise<(() => Promise<void>) | null> {
    const path = join(this.folder, LOCK);
    if (await isStale(path)) await rm(path, { force: true });
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

async function exists(path: string): Promise<boolean> {
  return (await readTime(path)) !== null;
}

async function isStale(path: string): Promise<boolean> {
  const time = await readTime(path);
  return time !== null && Date.now() - time > STALE_LOCK_MS;
}

async function readTime(path: string): Promise<number | null> {
  try {
    return (await stat(path)).mtimeMs;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return null;
    throw error;
  }
}

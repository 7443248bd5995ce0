/**
 * The notes of hooks: read in the order they were written, and removed once the transcript they name was checked. Also records when each hook
 * last fired, and which never did: an agent never runs a hook that it does not trust.
 *
 * Invariants: only the holder of the watcher's lock reads the spool. A note is removed only after its transcript was stored, so that a crash in
 * between repeats it; checking a transcript twice changes nothing.
 */
import { existsSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { isAbsolute, join } from "node:path";
import { isObject, type JsonObject } from "@lossless/core/formats";
import { HOOK_AGENTS, listHookEvents } from "./events.ts";
import type { HookAgent } from "./events.ts";
import { findCaptureFolder, findHookScript, findSpoolFolder } from "./folder.ts";

/** One event of an agent. */
export interface HookNote {
  readonly path: string;
  readonly agent: HookAgent;
  readonly event: string;
  /** ms UTC: when it fired. */
  readonly at: number;
  readonly sessionId: string | null;
  readonly transcriptPath: string | null;
  readonly folder: string | null;
  readonly source: string | null;
}

/** A note is written within moments; one that is incomplete after this time never will be complete. */
const DAMAGED_MS = 10_000;

const NAME = /^([a-z-]+)\.([A-Za-z]+)\.[\w.]+\.json$/u;

/** Complete notes, oldest first. */
export function readNotes(database: string, now = Date.now()): HookNote[] {
  const folder = findSpoolFolder(database);
  return listFolder(folder)
    .flatMap((name) => readNote(folder, name, now))
    .sort((a, b) => a.at - b.at);
}

export const hasNotes = (database: string): boolean => listFolder(findSpoolFolder(database)).some(isNote);

const isNote = (name: string): boolean => NAME.test(name);

const listFolder = (folder: string): string[] => (existsSync(folder) ? readdirSync(folder) : []);

function readNote(folder: string, name: string, now: number): HookNote[] {
  const [, agent = "", event = ""] = NAME.exec(name) ?? [];
  const known = HOOK_AGENTS.find((each) => each === agent);
  const path = join(folder, name);
  const stats = statSync(path, { throwIfNoEntry: false });
  if (known === undefined || stats?.isFile() !== true) return [];
  const text = readIfThere(path);
  if (text === null) return [];
  const fields = parse(text);
  if (fields === null) {
    if (now - stats.mtimeMs > DAMAGED_MS) rmSync(path, { force: true });
    return [];
  }
  const field = (key: string): string | null => {
    const value = fields[key];
    return typeof value === "string" && value !== "" ? value : null;
  };
  const transcriptPath = field("transcript_path");
  return [
    {
      path,
      agent: known,
      event,
      at: stats.mtimeMs,
      sessionId: field("session_id") ?? field("sessionId"),
      transcriptPath: transcriptPath !== null && isAbsolute(transcriptPath) ? transcriptPath : null,
      folder: field("cwd"),
      source: field("source"),
    },
  ];
}

/** Null when it is gone: status reads without the lock, while a watcher removes notes. */
function readIfThere(path: string): string | null {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return null;
    throw error;
  }
}

/** Null for anything but a complete object. */
function parse(text: string): JsonObject | null {
  try {
    const value: unknown = JSON.parse(text);
    return isObject(value) ? value : null;
  } catch (error) {
    if (error instanceof SyntaxError) return null;
    throw error;
  }
}

export const removeNote = ({ path }: HookNote): void => rmSync(path, { force: true });

// ---- what fired

/** When each event last fired, ms UTC. */
type Fired = Readonly<Record<string, Readonly<Record<string, number>>>>;

const firedFile = (database: string): string => join(findCaptureFolder(database), "fired.json");

function readFired(database: string): Fired {
  const path = firedFile(database);
  return existsSync(path) ? ((parse(readFileSync(path, "utf8")) ?? {}) as Fired) : {};
}

/** Records that hooks fired. Only for the holder of the watcher's lock. */
export function recordFired(database: string, notes: readonly HookNote[]): void {
  if (notes.length === 0) return;
  const fired: Record<string, Record<string, number>> = structuredClone(readFired(database));
  for (const { agent, event, at } of notes) {
    const events = (fired[agent] ??= {});
    events[event] = Math.max(events[event] ?? 0, at);
  }
  const path = firedFile(database);
  writeFileSync(`${path}.new`, `${JSON.stringify(fired)}\n`, { mode: 0o600 });
  renameSync(`${path}.new`, path);
}

/** The state of an agent's hooks. */
export interface HookState {
  readonly agent: HookAgent;
  /** ms UTC: when one last fired; null when none ever did. */
  readonly lastAt: number | null;
  /** Events whose hook never fired. */
  readonly silent: readonly string[];
  /** Unread notes. */
  readonly waiting: number;
  /** Events that were overwritten because the spool was full. */
  readonly lost: number;
}

/** For agents whose hooks are set up. */
export function readHookStates(database: string): HookState[] {
  const fired = readFired(database);
  const notes = readNotes(database);
  return HOOK_AGENTS.filter((agent) => existsSync(findHookScript(database, agent))).map((agent) => {
    const own = notes.filter((note) => note.agent === agent);
    const events = { ...fired[agent] };
    for (const { event, at } of own) events[event] = Math.max(events[event] ?? 0, at);
    const times = Object.values(events);
    return {
      agent,
      lastAt: times.length === 0 ? null : Math.max(...times),
      silent: listHookEvents(agent)
        .map(({ name }) => name)
        .filter((name) => events[name] === undefined),
      waiting: own.length,
      lost: readLost(database, agent),
    };
  });
}

function readLost(database: string, agent: HookAgent): number {
  const path = join(findSpoolFolder(database), `${agent}.lost`);
  const count = existsSync(path) ? Number.parseInt(readFileSync(path, "utf8"), 10) : 0;
  return Number.isSafeInteger(count) ? count : 0;
}

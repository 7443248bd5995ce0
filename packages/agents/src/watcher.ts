/**
 * Watches the session files of agents and imports changes. File system events say where to look; a periodic scan of all folders finds changes
 * without an event. The importers handle the content: they prove where they stopped, so that rewriting, truncating, replacing or renaming a
 * file, or killing the watcher, neither loses nor repeats a line.
 *
 * Invariants: one import at a time, and never a model. A file counts as read with the size and time it had before its import began, so that
 * anything written meanwhile is read again.
 */
import { existsSync, readdirSync, statSync, watch } from "node:fs";
import type { FSWatcher, Stats } from "node:fs";
import { basename, dirname, join } from "node:path";
import { EngineError, makeImportId, must } from "@lossless/core";
import { importTranscript } from "@lossless/interchange";
import type { ExcludeSession, ImportResult, ImportTarget } from "@lossless/interchange";
import { RESTED_MS, WAITING } from "./exclusions.ts";
import type { HookNote } from "./hooks/spool.ts";
import type { AgentLocation } from "./locations.ts";
import type { AgentState, WatchState } from "./watch-state.ts";

/** Lines of one turn are written within moments of each other: one import reads them together. */
const GATHER_MS = 100;
/** Interval of full scans while events work. */
const SCAN_MS = 30_000;
/** The same where the system has no events. */
const POLL_MS = 2_000;
/** A scan takes at most this share of a core, for any number of files. */
const SCAN_SHARE = 0.005;
/** The delay before a failed file is retried, at first and at most. */
const RETRY_MS = 1_000;
const MAX_RETRY_MS = 60_000;
/** A database is only read as far as it changed recently; the margin is far longer than any pause between two reads. */
const DATABASE_MARGIN_MS = 300_000;
/** An unfinished answer is imported after a minute. */
const UNFINISHED_MS = 65_000;

export type WatchEvent =
  | { readonly kind: "stored"; readonly agent: string; readonly report: ImportResult; readonly lagMs: number }
  | { readonly kind: "left_out"; readonly agent: string; readonly path: string; readonly reason: string }
  | { readonly kind: "failed"; readonly agent: string; readonly path: string; readonly reason: string };

export interface WatchOptions {
  readonly engine: ImportTarget;
  readonly locations: readonly AgentLocation[];
  readonly owner?: string | undefined;
  readonly exclude: ExcludeSession;
  readonly onEvent: (event: WatchEvent) => void;
  /** Called when the state of an agent changed. */
  readonly onState?: (state: WatchState) => void;
  /** Reads the notes of hooks; without it they are not read. */
  readonly hooks?: HookReader;
}

/** Hooks report at once which transcript has changed, including those in folders that are not watched. */
export interface HookReader {
  readonly folder: string;
  read(): HookNote[];
  /** Called when the transcripts of the notes were checked; removes the notes. */
  finish(notes: readonly HookNote[], looked: LookedAt): Promise<void>;
}

/** The result for a transcript: where it is stored, unless it is left out or unreadable. */
export interface LookedAt {
  readonly conversationId: number | null;
  readonly isLeftOut: boolean;
}

/** One transcript, as it was last seen. */
interface Followed {
  readonly location: AgentLocation;
  readonly path: string;
  /** The state of the file when it was last read; empty before. */
  read: string;
  changedAt: number;
  /** When to import it; null when there is nothing to do. */
  dueAt: number | null;
  failures: number;
  /** The time up to which a database was read. */
  readUntil: number | undefined;
  /** Notes of hooks that wait for its import, keyed by their paths. */
  readonly notes: Map<string, HookNote>;
  looked: LookedAt;
}

interface Mutable<T> {
  value: T;
}

export class Watcher {
  readonly #options: WatchOptions;
  readonly #files = new Map<string, Followed>();
  readonly #watchers = new Map<string, FSWatcher>();
  readonly #states = new Map<string, Mutable<AgentState>>();
  /** Updated as files come and go: counting them each time would take longer the more there are. */
  readonly #counts = new Map<string, { transcripts: number; waiting: number }>();
  readonly #startedAt = Date.now();
  readonly #importId = makeImportId();
  #hasEvents = true;
  #isClosed = false;
  #timer: NodeJS.Timeout | null = null;
  #scanAt = 0;
  #hasNotes = true;
  #working: Promise<void> | null = null;
  #fail: (error: unknown) => void = () => undefined;

  constructor(options: WatchOptions) {
    this.#options = options;
    for (const { agent, root } of options.locations) {
      this.#states.set(agent, { value: startState(agent, root) });
      this.#counts.set(agent, { transcripts: 0, waiting: 0 });
    }
  }

  /** Watches until the signal. Rejects when the archive itself fails. */
  async run(signal: AbortSignal): Promise<void> {
    const failed = new Promise<never>((_, reject) => (this.#fail = reject));
    const ended = new Promise<void>((resolve) => {
      if (signal.aborted) resolve();
      signal.addEventListener("abort", () => resolve(), { once: true });
    });
    this.#wake();
    try {
      await Promise.race([ended, failed]);
    } finally {
      await this.#close();
    }
  }

  /** Imports everything once, and ends. */
  async runOnce(): Promise<WatchState> {
    try {
      this.#scan();
      await this.#takeNotes();
      await this.#importDue(Infinity);
    } finally {
      await this.#close();
    }
    return this.state();
  }

  /** Imports the transcripts of waiting notes, and ends. */
  async runNotes(): Promise<void> {
    try {
      await this.#takeNotes();
      await this.#importDue(Infinity);
    } finally {
      await this.#close();
    }
  }

  state(): WatchState {
    const agents = [...this.#states.values()].map(({ value }) => value);
    return { pid: process.pid, startedAt: this.#startedAt, hasEvents: this.#hasEvents, agents };
  }

  async #close(): Promise<void> {
    this.#isClosed = true;
    if (this.#timer) clearTimeout(this.#timer);
    for (const watcher of this.#watchers.values()) watcher.close();
    this.#watchers.clear();
    await this.#working;
  }

  /** Does what is due, and sleeps until the next due time. */
  #wake(): void {
    if (this.#isClosed || this.#working) return;
    if (this.#timer) clearTimeout(this.#timer);
    this.#working = this.#workOnce();
  }

  async #workOnce(): Promise<void> {
    try {
      await this.#work();
    } catch (error) {
      this.#fail(error);
      return;
    }
    this.#working = null;
    this.#sleep();
  }

  async #work(): Promise<void> {
    if (Date.now() >= this.#scanAt) {
      const began = performance.now();
      this.#scan();
      const took = performance.now() - began;
      this.#scanAt = Date.now() + Math.max(this.#hasEvents ? SCAN_MS : POLL_MS, took / SCAN_SHARE);
      this.#hasNotes = true;
    }
    if (this.#hasNotes) await this.#takeNotes();
    await this.#importDue(Date.now());
  }

  #sleep(): void {
    if (this.#isClosed) return;
    let next = this.#hasNotes ? 0 : this.#scanAt;
    for (const { dueAt } of this.#files.values()) if (dueAt !== null && dueAt < next) next = dueAt;
    this.#timer = setTimeout(() => this.#wake(), Math.max(0, next - Date.now()));
  }

  #scan(): void {
    for (const location of this.#options.locations) {
      const isPresent = existsSync(location.root);
      if (isPresent) this.#scanFolder(location, location.root);
      this.#note(location.agent, { isPresent, ...this.#count(location) });
    }
  }

  /** Schedules imports for the transcripts in notes of hooks. */
  async #takeNotes(): Promise<void> {
    const { hooks, locations } = this.#options;
    this.#hasNotes = false;
    if (hooks === undefined) return;
    this.#listen(hooks.folder, () => this.#hearNote());
    for (const note of hooks.read()) {
      const location = locations.find(({ agent }) => agent === note.agent);
      const path = note.transcriptPath;
      const isHere =
        location?.isTranscript(basename(path ?? "")) === true && path !== null && existsSync(path);
      if (!isHere) await hooks.finish([note], NOWHERE);
      else await this.#takeNote(hooks, note, location, path);
    }
  }

  async #takeNote(hooks: HookReader, note: HookNote, location: AgentLocation, path: string): Promise<void> {
    this.#watchFolder(location, dirname(path));
    this.#look(location, path, 0);
    const file = must(this.#files.get(path), "a transcript that was looked at");
    if (file.dueAt === null) await hooks.finish([note], file.looked);
    else file.notes.set(note.path, note);
  }

  #hearNote(): void {
    this.#hasNotes = true;
    if (!this.#working && !this.#isClosed) this.#sleepAgain();
  }

  #scanFolder(location: AgentLocation, folder: string): void {
    this.#watchFolder(location, folder);
    for (const entry of readFolder(folder)) {
      const path = join(folder, entry.name);
      if (entry.isDirectory()) this.#scanFolder(location, path);
      else if (entry.isFile() && location.isTranscript(entry.name)) this.#look(location, path);
    }
  }

  #watchFolder(location: AgentLocation, folder: string): void {
    this.#listen(folder, (name) => this.#hear(location, folder, name));
  }

  #listen(folder: string, hear: (name: string | null) => void): void {
    if (!this.#hasEvents || this.#watchers.has(folder)) return;
    try {
      const watcher = watch(folder, (_type, name) => hear(name));
      watcher.on("error", () => this.#unwatch(folder));
      this.#watchers.set(folder, watcher);
    } catch {
      // The folder is gone again, or the system is out of watches: then scans find all changes.
      if (existsSync(folder)) this.#hasEvents = false;
    }
  }

  #unwatch(folder: string): void {
    this.#watchers.get(folder)?.close();
    this.#watchers.delete(folder);
  }

  #hear(location: AgentLocation, folder: string, name: string | null): void {
    if (this.#isClosed) return;
    const path = name === null ? folder : join(folder, name);
    const stats = examine(path);
    if (!existsSync(folder)) this.#unwatch(folder);
    if (stats?.isDirectory() === true) this.#scanFolder(location, path);
    else if (stats?.isFile() === true && name !== null && location.isTranscript(name))
      this.#look(location, path);
    else return;
    if (!this.#working) this.#sleepAgain();
  }

  #sleepAgain(): void {
    if (this.#timer) clearTimeout(this.#timer);
    this.#sleep();
  }

  /** Schedules an import of a transcript if it has changed since it was read. */
  #look(location: AgentLocation, changed: string, gatherMs = GATHER_MS): void {
    const path = location.transcriptOf(changed);
    const file = this.#files.get(path) ?? this.#follow(location, path);
    const look = describeFile(path);
    if (look === null || look.text === file.read) return;
    file.changedAt = look.changedAt;
    this.#setDue(file, Math.min(file.dueAt ?? Infinity, Date.now() + gatherMs));
    this.#note(location.agent, { lastEventAt: look.changedAt, ...this.#count(location) });
  }

  #follow(location: AgentLocation, path: string): Followed {
    const file = startFile(location, path);
    this.#files.set(path, file);
    this.#countOf(location).transcripts += 1;
    return file;
  }

  #unfollow({ location, path }: Followed): void {
    if (this.#files.delete(path)) this.#countOf(location).transcripts -= 1;
  }

  #setDue(file: Followed, dueAt: number | null): void {
    this.#countOf(file.location).waiting += Number(dueAt !== null) - Number(file.dueAt !== null);
    file.dueAt = dueAt;
  }

  async #importDue(now: number): Promise<void> {
    for (const file of this.#files.values()) {
      if (this.#isClosed) return;
      if (file.dueAt !== null && file.dueAt <= now) await this.#import(file);
    }
  }

  async #import(file: Followed): Promise<void> {
    const { location, path } = file;
    const look = describeFile(path);
    this.#setDue(file, null);
    if (look === null) {
      this.#unfollow(file);
      return this.#finishNotes(file);
    }
    const began = Date.now();
    try {
      const { engine, owner, exclude } = this.#options;
      const since = file.readUntil;
      const report = await importTranscript({
        engine,
        path,
        owner,
        exclude,
        since,
        importId: this.#importId,
      });
      file.read = look.text;
      file.failures = 0;
      if (location.agent === "opencode") file.readUntil = began - DATABASE_MARGIN_MS;
      this.#noteReport(file, report);
      await this.#finishNotes(file);
    } catch (error) {
      this.#noteFailure(file, look.text, error);
      // An unchanged file is not retried: its notes would wait for ever.
      if (file.dueAt === null) await this.#finishNotes(file);
    }
  }

  async #finishNotes(file: Followed): Promise<void> {
    const notes = [...file.notes.values()];
    file.notes.clear();
    if (notes.length > 0) await this.#options.hooks?.finish(notes, file.looked);
  }

  #noteReport(file: Followed, report: ImportResult): void {
    const { location, path } = file;
    const { onEvent } = this.#options;
    const isLeftOut = report.problems.some(({ code }) => code === "left_out");
    file.looked = { conversationId: report.conversationId ?? null, isLeftOut };
    for (const { code, message } of report.problems) {
      if (code === "left_out") onEvent({ kind: "left_out", agent: location.agent, path, reason: message });
      // It waits for something that causes no event.
      if (code === "left_out" && message === WAITING) this.#setDue(file, Date.now() + RESTED_MS);
      if (code === "incomplete_line" && location.agent === "opencode")
        this.#setDue(file, Date.now() + UNFINISHED_MS);
    }
    const counts = this.#count(location);
    if (report.imported + report.revisions === 0)
      return this.#note(location.agent, { problem: null, ...counts });
    const lagMs = Math.max(0, Date.now() - file.changedAt);
    this.#note(location.agent, { lastStoredAt: Date.now(), lagMs, problem: null, ...counts });
    onEvent({ kind: "stored", agent: location.agent, report, lagMs });
  }

  /** After a failure of a file, its next change triggers a retry; failures of the archive are retried, and end the watcher if necessary. */
  #noteFailure(file: Followed, look: string, error: unknown): void {
    const { location, path } = file;
    const isKnown = error instanceof EngineError;
    if (
      isKnown &&
      error.code !== "invalid_input" &&
      error.code !== "not_found" &&
      error.code !== "database_busy"
    )
      throw error;
    const reason = error instanceof Error ? error.message : String(error);
    if (isKnown && error.code === "invalid_input") file.read = look;
    else {
      this.#setDue(file, Date.now() + Math.min(MAX_RETRY_MS, RETRY_MS * 2 ** file.failures));
      file.failures += 1;
    }
    this.#note(location.agent, { problem: reason, ...this.#count(location) });
    this.#options.onEvent({ kind: "failed", agent: location.agent, path, reason });
  }

  #countOf({ agent }: AgentLocation): { transcripts: number; waiting: number } {
    return must(this.#counts.get(agent), "an agent that is followed");
  }

  #count(location: AgentLocation): Pick<AgentState, "transcripts" | "waiting"> {
    return { ...this.#countOf(location) };
  }

  #note(agent: string, change: Partial<AgentState>): void {
    const state = this.#states.get(agent);
    if (!state) return;
    const next = { ...state.value, ...change };
    if (JSON.stringify(next) === JSON.stringify(state.value)) return;
    state.value = next;
    this.#options.onState?.(this.state());
  }
}

const startState = (agent: string, root: string): AgentState => ({
  agent,
  root,
  isPresent: false,
  transcripts: 0,
  lastEventAt: null,
  lastStoredAt: null,
  lagMs: null,
  waiting: 0,
  problem: null,
});

const startFile = (location: AgentLocation, path: string): Followed => ({
  location,
  path,
  read: "",
  changedAt: 0,
  dueAt: null,
  failures: 0,
  readUntil: undefined,
  notes: new Map(),
  looked: NOWHERE,
});

const NOWHERE: LookedAt = { conversationId: null, isLeftOut: false };

/** Text that distinguishes states of a file; a database changes in the log beside it. */
function describeFile(path: string): { readonly text: string; readonly changedAt: number } | null {
  const own = examine(path);
  if (own === undefined) return null;
  const log = examine(`${path}-wal`);
  // Ignore an empty log: reading a database may create one.
  const stats = log === undefined || log.size === 0 ? [own] : [own, log];
  const text = stats.map(({ ino, size, mtimeMs }) => `${ino} ${size} ${mtimeMs}`).join(", ");
  return { text, changedAt: Math.max(...stats.map(({ mtimeMs }) => mtimeMs)) };
}

/** Undefined for what is gone or cannot be examined, such as a link to itself: the next change or scan looks again. */
function examine(path: string): Stats | undefined {
  try {
    return statSync(path, { throwIfNoEntry: false });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === undefined) throw error;
    return undefined;
  }
}

/** Empty for a folder that is gone or not readable. */
function readFolder(folder: string): ReturnType<typeof listEntries> {
  try {
    return listEntries(folder);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOENT" || code === "EACCES" || code === "ENOTDIR" || code === "EPERM") return [];
    throw error;
  }
}

const listEntries = (folder: string) => readdirSync(folder, { withFileTypes: true });

/**
 * The text that hooks print after an agent's own compaction. It is prepared in advance, whenever a turn ends or a compaction begins, because a
 * hook has no time to look anything up. A hook claims a bundle by renaming it, so each is printed once; the next one is prepared after the next
 * turn.
 */
import { mkdirSync, readdirSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { EngineError } from "@lossless/core";
import type { Engine } from "@lossless/core";
import { listHookEvents } from "./events.ts";
import type { HookAgent } from "./events.ts";
import { findBundleFolder, findSpoolFolder } from "./folder.ts";
import { readNotes, recordFired, removeNote } from "./spool.ts";
import type { HookNote } from "./spool.ts";
import type { HookReader, LookedAt } from "../watcher.ts";

/** The maximum share of the new context for a bundle. */
const BUNDLE_TOKENS = 1_000;
/** The same check as in the shell script: the id is part of a file's name. */
const SAFE_ID = /^[0-9A-Za-z_-]+$/u;
/** A session unused for this long is unlikely to continue; its bundle can be rebuilt. */
const KEPT_MS = 30 * 86_400_000;

export interface BundleOptions {
  readonly database: string;
  readonly engine: Pick<Engine, "prepareRestart">;
  readonly owner?: string | undefined;
}

/** Reads notes of hooks for the watcher, and prepares the bundles of their sessions. Holds the watcher's lock. */
export class CaptureHooks implements HookReader {
  readonly folder: string;
  readonly #options: BundleOptions;

  constructor(options: BundleOptions) {
    this.#options = options;
    this.folder = findSpoolFolder(options.database);
    const bundles = findBundleFolder(options.database);
    // Create the folders to be notified of the first event, and to have a place for its bundle.
    for (const folder of [this.folder, bundles]) mkdirSync(folder, { recursive: true, mode: 0o700 });
    dropOld(bundles);
  }

  read(): HookNote[] {
    const notes = readNotes(this.#options.database);
    recordFired(this.#options.database, notes);
    return notes;
  }

  async finish(notes: readonly HookNote[], looked: LookedAt): Promise<void> {
    for (const note of new Map(notes.map((each) => [each.sessionId, each])).values())
      await this.#prepare(note, looked);
    notes.forEach(removeNote);
  }

  async #prepare(note: HookNote, { conversationId, isLeftOut }: LookedAt): Promise<void> {
    const { database, engine, owner } = this.#options;
    const { agent, sessionId } = note;
    if (sessionId === null || !SAFE_ID.test(sessionId) || !takesBundles(agent)) return;
    const path = join(findBundleFolder(database), `${agent}.${sessionId}`);
    rmSync(`${path}.given`, { force: true });
    if (isLeftOut) rmSync(`${path}.json`, { force: true });
    // A session start has nothing new, and right after a compaction the bundle was just used.
    if (conversationId === null || isLeftOut || note.event === "SessionStart") return;
    const text = await engine
      .prepareRestart({ conversationId, owner, maxTokens: BUNDLE_TOKENS })
      .catch(ignoreBusy);
    if (text === null) return;
    const output = { hookSpecificOutput: { hookEventName: "SessionStart", additionalContext: text } };
    writeFileSync(`${path}.new`, `${JSON.stringify(output)}\n`, { mode: 0o600 });
    renameSync(`${path}.new`, `${path}.json`);
  }
}

const takesBundles = (agent: HookAgent): boolean =>
  listHookEvents(agent).some(({ prints }) => prints === "bundle");

/** The next turn prepares it again; a failure here must not affect storing. */
function ignoreBusy(error: unknown): null {
  if (error instanceof EngineError) return null;
  throw error;
}

function dropOld(folder: string): void {
  for (const name of readdirSync(folder)) {
    const path = join(folder, name);
    const stats = statSync(path, { throwIfNoEntry: false });
    if (stats !== undefined && Date.now() - stats.mtimeMs > KEPT_MS) rmSync(path, { force: true });
  }
}

/**
 * Stores the transcripts that hooks of agents reported while no watcher ran: the next command does the watcher's work. A command never fails
 * because of it; what could not be stored waits for the next one.
 */
import { homedir } from "node:os";
import { EngineError } from "@lossless/core";
import type { Engine, Settings } from "@lossless/core";
import { countOf } from "@lossless/core/doors";
import {
  CaptureHooks,
  hasNotes,
  listLocations,
  makeExclusion,
  openIgnoredFolders,
  watchAlone,
  Watcher,
} from "@lossless/agents";

type CaptureSettings = Pick<Settings, "databasePath" | "captureOwner" | "captureExclude">;

export interface StoreNotedOptions {
  readonly settings: CaptureSettings;
  /** The engine of the command, if it can store. */
  readonly engine: Engine | null;
  /** Opens one that can store. */
  readonly open: () => Promise<Engine>;
  readonly note: (text: string) => void;
}

export async function storeNoted(options: StoreNotedOptions): Promise<void> {
  const { settings, note } = options;
  try {
    if (!hasNotes(settings.databasePath)) return;
    const stored = await watchAlone(settings.databasePath, () => readWith(options));
    if (stored > 0)
      note(`stored ${countOf(stored, "line")} of agents; no watcher runs (lcm watch --install)`);
  } catch (error) {
    // Another watcher or command is doing it, or the archive cannot be written now.
    if (error instanceof EngineError && error.code === "database_busy") return;
    note(`note: hooks of agents wait: ${error instanceof Error ? error.message : String(error)}`);
  }
}

async function readWith({ settings, engine: own, open }: StoreNotedOptions): Promise<number> {
  if (own !== null) return readOnce(settings, own);
  const engine = await open();
  try {
    return await readOnce(settings, engine);
  } finally {
    await engine.close();
  }
}

async function readOnce(settings: CaptureSettings, engine: Engine): Promise<number> {
  const { databasePath: database, captureOwner: owner } = settings;
  let stored = 0;
  const watcher = new Watcher({
    engine,
    locations: listLocations(process.env, homedir()),
    owner,
    exclude: makeExclusion(settings.captureExclude, Date.now, openIgnoredFolders(database)),
    hooks: new CaptureHooks({ database, engine, owner }),
    onEvent: (event) => {
      if (event.kind === "stored") stored += event.report.imported + event.report.revisions;
    },
  });
  await watcher.runNotes();
  return stored;
}

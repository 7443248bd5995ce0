/**
 * What a running command has: its options, the settings, the archive, and a way to print. Opened lazily, so that a command pays only for what it
 * uses. Reading commands open the archive read-only: they never create or migrate a database, and store only transcripts that hooks of agents
 * reported while no watcher ran.
 */
import { existsSync } from "node:fs";
import { resolve } from "node:path";
import type { Command } from "commander";
import { EngineError, hidePassword, isServerAddress } from "@lossless/core";
import type { Complete, Embed, Engine, ModelRef } from "@lossless/core";
import { EXIT_CANCELLED, given } from "@lossless/core/doors";
import { nameLocally } from "@lossless/core/formats";
import { printNote, printResult } from "./output.ts";
import type { Result } from "./output.ts";
import type { LoadedSettings } from "./config-file.ts";
import { readVersion } from "./own-files.ts";

export interface GlobalOptions {
  readonly db?: string;
  readonly json?: boolean;
  readonly owner?: string;
}

/** `read`: read-only. `change`: the database must exist. `create`: it may be created. */
export type Access = "read" | "change" | "create";

export interface ArchiveOptions {
  /** Runs the engine in a thread, so that this one can draw progress and handle Ctrl-C. */
  readonly thread?: boolean;
  readonly model?: Model | null;
  /** Access to a model that makes vectors. */
  readonly embed?: Embed | null;
  /** How long a claim on work is valid without renewal; only without a thread. */
  readonly leaseMs?: number;
  /** False: transcripts reported by hooks are left to others. */
  readonly readsHooks?: boolean;
  /** Receives notes instead of stderr: a program that draws the whole terminal must not be written into. */
  readonly onNote?: (text: string) => void;
}

/** Access to a model, and its name: null when only the access decides. */
export interface Model {
  readonly complete: Complete;
  readonly ref: ModelRef | null;
}

export class Invocation {
  /** The command as typed, without `lcm`: `messages list`. */
  readonly command: string;
  readonly isJson: boolean;
  readonly owner: string | undefined;
  readonly #db: string | undefined;
  readonly #startedAt = performance.now();
  readonly #typed: Record<string, string> = {};
  #settings: Promise<LoadedSettings> | null = null;
  #notices: readonly string[] = [];
  #database: string | null = null;
  #prepared: Promise<void> | null = null;

  constructor(command: string, options: GlobalOptions) {
    this.command = command;
    this.isJson = options.json === true;
    this.owner = options.owner;
    this.#db = options.db;
  }

  /** The owner as a scope for engines: without one, everything is visible. */
  get scope(): { owner?: string } {
    return this.owner === undefined ? {} : { owner: this.owner };
  }

  /** What `--db` named, as it works from any folder and without a password; null when the settings name the archive. */
  get namedDatabase(): string | null {
    if (this.#db === undefined) return null;
    return isServerAddress(this.#db) ? hidePassword(this.#db) : resolve(this.#db);
  }

  /** Puts what was typed before what is set. Only before the settings are first asked for. */
  override(settings: Readonly<Record<string, string>>): void {
    Object.assign(this.#typed, settings);
  }

  settings(): Promise<LoadedSettings> {
    this.#settings ??= this.#loadSettings();
    return this.#settings;
  }

  async timezone(): Promise<string> {
    return (await this.settings()).settings.timezone;
  }

  async #loadSettings(): Promise<LoadedSettings> {
    const { loadSettings } = await import("./config-file.ts");
    const typed = { ...this.#typed, ...given({ databasePath: this.#db }) };
    const source = Object.keys(this.#typed).length === 0 ? "--db" : "the command line";
    const options = Object.keys(typed).length === 0 ? {} : { options: { source, config: typed } };
    const loaded = await loadSettings({ env: process.env, ...options });
    this.#notices = loaded.notices;
    if (!this.isJson) for (const notice of loaded.notices) printNote(`note: ${notice}`);
    return loaded;
  }

  /** Runs `work` with the archive and always closes it. */
  async withArchive<T>(
    access: Access,
    work: (engine: Engine) => Promise<T>,
    options: ArchiveOptions = {},
  ): Promise<T> {
    const engine = await this.openArchive(access, options);
    try {
      return await work(engine);
    } finally {
      await engine.close();
    }
  }

  /** For callers that close it later; others use `withArchive`. */
  async openArchive(access: Access, options: ArchiveOptions = {}): Promise<Engine> {
    const { settings } = await this.settings();
    await this.prepareArchive(access);
    const { openEngine } = await import("lossless-claw");
    this.#database = hidePassword(settings.databasePath);
    const note = options.onNote ?? printNote;
    const noteUpgrade = noteTenths("upgrading the archive to this version", note);
    const open = (how: Access): Promise<Engine> =>
      openEngine({
        database: settings.databasePath,
        filesDir: settings.largeFilesDir,
        settings,
        create: how === "create",
        readOnly: how === "read",
        thread: options.thread ?? false,
        complete: options.model?.complete ?? null,
        hostModel: options.model?.ref ?? null,
        embed: options.embed ?? null,
        leaseMs: options.leaseMs,
        onEvent: (event) => {
          if (event.kind === "degraded") note(`warning: ${event.message}`);
          if (event.kind === "waiting") note(event.message);
          if (event.kind === "progress") noteUpgrade(event.done, event.total);
        },
      });
    const { databasePath } = settings;
    if (options.readsHooks === false || !existsSync(`${nameLocally(databasePath)}.capture`))
      return open(access);
    // Transcripts that hooks reported before there was an archive create it.
    const isMissing = access !== "create" && !isServerAddress(databasePath) && !existsSync(databasePath);
    const { storeNoted } = await import("./store-noted.ts");
    if (isMissing) await storeNoted({ settings, engine: null, open: () => open("create"), note });
    const engine = await open(access);
    // A reading command opens the archive for writing only for this.
    await storeNoted({
      settings,
      engine: access === "read" ? null : engine,
      open: () => open("change"),
      note,
    });
    return engine;
  }

  /**
   * Handles the database of an older lossless-claw at the archive's path. Once, before anything is opened: reading the file's bytes would
   * release the locks that this process holds on it.
   */
  async prepareArchive(access: Access): Promise<void> {
    this.#prepared ??= this.#lookForOlder(access);
    return this.#prepared;
  }

  async #lookForOlder(access: Access): Promise<void> {
    const { settings } = await this.settings();
    const { adoptOlder, refuseOlder } = await import("./adopt.ts");
    if (access === "read") await refuseOlder(settings);
    else await adoptOlder(settings, { isQuiet: this.isJson });
  }

  async print(result: Result): Promise<void> {
    const meta = {
      version: readVersion(),
      durationMs: Math.round(performance.now() - this.#startedAt),
      database: this.#database ?? undefined,
      notices: this.#notices.length === 0 ? undefined : this.#notices,
    };
    await printResult(this.command, result, meta, this.isJson);
  }
}

/** An action for commander: the handler gets the invocation, the command's own options, and the arguments. */
export function toAction<Options, Arguments extends unknown[]>(
  handler: (invocation: Invocation, options: Options, ...args: Arguments) => Promise<void>,
): (...values: unknown[]) => Promise<void> {
  return async (...values) => {
    const command = values.at(-1) as Command;
    const options = command.optsWithGlobals<Options & GlobalOptions>();
    await handler(
      new Invocation(commandPath(command), options),
      options,
      ...(values.slice(0, -2) as Arguments),
    );
  };
}

/** The names from the program (exclusive) down to the command. */
export function commandPath(command: Command): string {
  const names: string[] = [];
  for (let at: Command | null = command; at !== null && at.parent !== null; at = at.parent)
    names.unshift(at.name());
  return names.join(" ");
}

/**
 * Runs long work that Ctrl-C can cancel. The signal asks the work to stop and gives it a moment; a second Ctrl-C does not wait. Work that cannot
 * be cancelled (`isPatient: false`) writes nothing and is abandoned. SIGTERM also ends a service.
 */
export async function runCancellable<T>(
  work: (signal: AbortSignal) => Promise<T>,
  options: { readonly isPatient: boolean; readonly what: string; readonly isService?: boolean },
): Promise<T> {
  const controller = new AbortController();
  let leave: (error: Error) => void = () => undefined;
  const left = new Promise<never>((_, reject) => {
    leave = reject;
  });
  const onInterrupt = (): void => {
    if (controller.signal.aborted) process.exit(EXIT_CANCELLED);
    controller.abort();
    if (!options.isPatient) leave(new EngineError("aborted", `cannot finish ${options.what}: cancelled`));
  };
  const signals = options.isService === true ? (["SIGINT", "SIGTERM"] as const) : (["SIGINT"] as const);
  for (const signal of signals) process.on(signal, onInterrupt);
  try {
    return await Promise.race([work(controller.signal), left]);
  } finally {
    for (const signal of signals) process.off(signal, onInterrupt);
  }
}

/** Prints progress at every tenth. */
function noteTenths(what: string, note: (text: string) => void): (done: number, total: number) => void {
  let told = -1;
  return (done, total) => {
    const tenth = Math.floor((10 * done) / total);
    if (tenth !== told) note(`${what}: ${tenth * 10} %`);
    told = tenth;
  };
}

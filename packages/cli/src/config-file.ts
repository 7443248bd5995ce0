/**
 * Config files for programs that run outside a host. Ours is `<state>/lcm.json`; the host's `<state>/openclaw.json` is read and never written.
 * Core interprets the values (`settings/settings-resolve.ts`); this file only reads and writes. A file is replaced atomically.
 */
import { randomBytes } from "node:crypto";
import { mkdir, open, readFile, realpath, rename, rm } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { EngineError, resolveSettings } from "@lossless/core";
import { flushPath, isObject } from "@lossless/core/doors";
import { withFileLock } from "lossless-claw/file-lock";
import { findStateDir } from "@lossless/core/settings";
import type { ConfigLayer, ConfigObject, Environment, ResolvedSettings } from "@lossless/core/settings";

const PLUGIN = "lossless-claw";

export interface ConfigLocations {
  readonly stateDir: string;
  /** Our own file, which `lcm config set` writes. */
  readonly ownFile: string;
  readonly hostFile: string;
}

export function findConfigLocations(env: Environment, stateDir?: string): ConfigLocations {
  const { path } = findStateDir(env, stateDir);
  return { stateDir: path, ownFile: join(path, "lcm.json"), hostFile: join(path, "openclaw.json") };
}

export interface LoadedSettings extends ResolvedSettings {
  readonly locations: ConfigLocations;
}

/** Environment over `lcm.json` over the host's config over defaults; `options` (the command line) over everything. */
export async function loadSettings(input: {
  readonly env: Environment;
  readonly stateDir?: string | undefined;
  readonly options?: ConfigLayer | undefined;
}): Promise<LoadedSettings> {
  const locations = findConfigLocations(input.env, input.stateDir);
  const own = await readConfigFile(locations.ownFile);
  const host = await readHostConfig(locations.hostFile);
  const layers = [...(own === null ? [] : [{ source: locations.ownFile, config: own }]), ...host.layers];
  const resolved = resolveSettings({ ...input, layers, replaceConflicts: true });
  if (resolved.storingProblems.length > 0) {
    throw new EngineError(
      "config",
      `cannot read the settings:\n  - ${resolved.storingProblems.join("\n  - ")}`,
      {
        hint: "Nothing is stored until redaction works. Correct the setting where it was set; docs/configuration.md lists every setting.",
      },
    );
  }
  return { ...resolved, notices: [...host.notices, ...resolved.notices], locations };
}

/** The object in the file, or null when there is no file. Anything else is refused. */
export async function readConfigFile(file: string): Promise<ConfigObject | null> {
  const text = await readText(file, (cause) => {
    throw new EngineError("config", `cannot read config ${file}: ${describeCause(cause)}`, {
      hint: "Give yourself the right to read it, or move it away.",
      cause,
    });
  });
  if (text === null) return null;
  const parsed = parseJson(text);
  if (parsed.ok && isObject(parsed.value)) return parsed.value;
  throw new EngineError(
    "config",
    `cannot read config ${file}: ${parsed.ok ? "it does not hold a JSON object" : parsed.cause}`,
    { hint: "Correct the file by hand, or move it away; it was not changed." },
  );
}

const LOCK_WAIT_MS = 10_000;

/** Reads, changes and replaces the file under a lock, so that concurrent changes do not overwrite each other. */
export async function updateConfigFile(
  file: string,
  change: (config: ConfigObject) => ConfigObject,
): Promise<{ readonly changed: boolean }> {
  await makeFolder(file);
  return withFileLock(join(dirname(file), `.${basename(file)}.lock`), LOCK_WAIT_MS, async () => {
    const before = (await readConfigFile(file)) ?? {};
    const after = change(before);
    const changed = JSON.stringify(before) !== JSON.stringify(after);
    if (changed) await writeConfigFile(file, after);
    return { changed };
  });
}

async function makeFolder(file: string): Promise<void> {
  try {
    await mkdir(dirname(file), { recursive: true, mode: 0o700 });
  } catch (cause) {
    throw refuseToWrite(file, cause);
  }
}

function refuseToWrite(file: string, cause: unknown): EngineError {
  return new EngineError("config", `cannot write config ${file}: ${describeCause(cause)}`, {
    hint: "The file is as it was before. Check the folder's permissions and free space.",
    cause,
  });
}

/** Replaces the file atomically and makes it private. Refuses if the current content is not a JSON object. */
export async function writeConfigFile(file: string, config: ConfigObject): Promise<void> {
  await readConfigFile(file);
  try {
    await mkdir(dirname(file), { recursive: true, mode: 0o700 });
    await replaceFile(await followLink(file), `${JSON.stringify(config, null, 2)}\n`);
  } catch (cause) {
    throw refuseToWrite(file, cause);
  }
}

/** The plugin's section of the host's config. The host allows more than JSON there, so an unreadable file is skipped. */
export async function readHostConfig(
  file: string,
): Promise<{ readonly layers: readonly ConfigLayer[]; readonly notices: readonly string[] }> {
  const notices: string[] = [];
  const text = await readText(file, (cause) => {
    notices.push(`${file} was passed over: ${describeCause(cause)}`);
    return null;
  });
  if (text === null) return { layers: [], notices };
  const parsed = parseJson(text);
  if (!parsed.ok) {
    notices.push(`${file} was passed over, because it is not plain JSON: ${parsed.cause}`);
    return { layers: [], notices };
  }
  const layers: ConfigLayer[] = [];
  const current = dig(parsed.value, ["plugins", "entries", PLUGIN, "config"]);
  // The plugin starts with the valid ones of these settings, so we do too.
  if (current !== undefined) layers.push({ source: file, config: current, tolerant: true });
  const older = dig(parsed.value, ["plugins", "config", PLUGIN]);
  if (older !== undefined) {
    layers.push({ source: `${file} (plugins.config)`, config: older, tolerant: true });
    notices.push(
      `${file} has settings at plugins.config["${PLUGIN}"]; move them to plugins.entries.${PLUGIN}.config`,
    );
  }
  return { layers, notices };
}

async function readText(file: string, onFailure: (cause: unknown) => null): Promise<string | null> {
  try {
    const text = await readFile(file, "utf8");
    return text.startsWith("\uFEFF") ? text.slice(1) : text;
  } catch (cause) {
    return isMissing(cause) ? null : onFailure(cause);
  }
}

/** Keeps a link to a file elsewhere. */
async function followLink(file: string): Promise<string> {
  try {
    return await realpath(file);
  } catch (cause) {
    if (isMissing(cause)) return file;
    throw cause;
  }
}

async function replaceFile(file: string, text: string): Promise<void> {
  const folder = dirname(file);
  const temporary = join(folder, `.${basename(file)}.${randomBytes(6).toString("hex")}.tmp`);
  try {
    const handle = await open(temporary, "wx", 0o600);
    try {
      await handle.writeFile(text);
      await handle.sync();
    } finally {
      await handle.close();
    }
    await rename(temporary, file);
  } catch (cause) {
    await rm(temporary, { force: true });
    throw cause;
  }
  await flushPath(folder);
}

function parseJson(text: string): { ok: true; value: unknown } | { ok: false; cause: string } {
  try {
    return { ok: true, value: JSON.parse(text) as unknown };
  } catch (cause) {
    return { ok: false, cause: describeCause(cause) };
  }
}

function dig(value: unknown, path: readonly string[]): unknown {
  let inner = value;
  for (const name of path) {
    if (!isObject(inner) || !Object.hasOwn(inner, name)) return undefined;
    inner = inner[name];
  }
  return inner;
}

const isMissing = (cause: unknown): boolean =>
  cause instanceof Error && "code" in cause && cause.code === "ENOENT";

const describeCause = (cause: unknown): string => (cause instanceof Error ? cause.message : String(cause));

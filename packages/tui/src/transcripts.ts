/**
 * Transcripts of agents on this machine: the folders where they keep their sessions, and the files in them. Only lists them; a file is read when
 * the user wants to import it.
 */
import { stat } from "node:fs/promises";
import { join, resolve } from "node:path";
import { EngineError } from "@lossless/core";
import { listTranscripts } from "@lossless/interchange";

/** Below the home folder. OpenClaw's are below its state folder. */
const LOCATIONS = [
  [".claude", "projects"],
  [".codex", "sessions"],
  [".gemini", "tmp"],
  [".pi", "agent", "sessions"],
  [".qwen", "projects"],
  [".factory", "sessions"],
  [".local", "share", "opencode", "storage"],
];

export interface TranscriptFile {
  readonly path: string;
  readonly bytes: number;
  readonly changedAt: number;
}

/** Existing session folders. */
export async function findSessionFolders(home: string, stateDir: string): Promise<string[]> {
  const locations = [join(stateDir, "agents"), ...LOCATIONS.map((names) => join(home, ...names))];
  const found = await Promise.all(locations.map(async (path) => ((await isFolder(path)) ? [path] : [])));
  return found.flat();
}

/** The named folder, or an error. */
export async function requireFolder(path: string): Promise<string> {
  const folder = resolve(path);
  if (await isFolder(folder)) return folder;
  throw new EngineError("usage", `cannot list transcripts in ${folder}: there is no such folder`, {
    hint: "--sessions takes a folder in which an agent keeps its sessions",
  });
}

const isFolder = async (path: string): Promise<boolean> =>
  (await stat(path).catch(() => null))?.isDirectory() ?? false;

const AT_ONCE = 64;

/** The files in folders, the newest first. Archives are left to `lcm import`, which can say what they would replace. */
export async function listTranscriptFiles(folders: readonly string[]): Promise<TranscriptFile[]> {
  const paths = new Set<string>();
  for (const folder of folders)
    for (const path of await listTranscripts(folder)) if (!/\.lcmx(\.zst)?$/.test(path)) paths.add(path);
  const files: TranscriptFile[] = [];
  const all = [...paths];
  for (let at = 0; at < all.length; at += AT_ONCE) {
    const found = await Promise.all(all.slice(at, at + AT_ONCE).map(readFacts));
    files.push(...found.flat());
  }
  return files.sort((a, b) => b.changedAt - a.changedAt || (a.path < b.path ? -1 : 1));
}

/** Empty for a file that is gone meanwhile. */
async function readFacts(path: string): Promise<TranscriptFile[]> {
  const stats = await stat(path).catch(() => null);
  return stats === null ? [] : [{ path, bytes: stats.size, changedAt: stats.mtimeMs }];
}

/**
 * Sets up an agent, in its own files: changes are shown first, the original files are kept, and removal restores them.
 *
 * Invariants: a file that nobody changed since is restored byte for byte; otherwise only our entries are removed. Setup is idempotent. Only the
 * files of the plan are written, and the record of the changes, beside the database.
 */
import { existsSync, rmSync } from "node:fs";
import { sep } from "node:path";
import { EngineError } from "@lossless/core";
import { addEntry, isEmptyJson, removeEntry, type Entry, type JsonEntry } from "./entries.ts";
import { hashText, listMissingFolders, readIfThere, removeIfEmpty, replaceFile } from "./files.ts";
import { listFiles, SETUP_AGENTS, type HostFile, type SetupRequest } from "./hosts.ts";
import { dropRecord, readRecord, writeRecord, type FileRecord, type SetupRecord } from "./record.ts";

/** One file, before and after; null when there is none. */
export interface SetupEdit {
  readonly path: string;
  readonly before: string | null;
  readonly after: string | null;
  /** From one to the other, one entry at a time. */
  readonly steps: readonly SetupStep[];
  /** Existing values of others at the place of an entry; they are kept. */
  readonly left: readonly string[];
}

export type SetupStep = readonly [before: string, after: string];

/** The changes of a setup, file by file. */
export function planSetup(request: SetupRequest): SetupEdit[] {
  const record = readRecord(request);
  return listFiles(request).map((file) => planFile(file, record.files[file.path]));
}

function planFile({ path, entries }: HostFile, known: FileRecord | undefined): SetupEdit {
  const before = readIfThere(path);
  const left: string[] = [];
  const steps: SetupStep[] = [];
  let after = before;
  for (const entry of entries) {
    if (entry.kind === "file") refuseOther(path, before, entry.text, known);
    const next = addEntry(after, entry, path);
    if (next !== after) steps.push([after ?? "", next]);
    else if (entry.kind === "json" && isLeft(next, entry, path)) left.push(entry.key ?? "");
    after = next;
  }
  return { path, before, after, steps, left };
}

/** Refuses an existing file unless it is an older one of ours. */
function refuseOther(path: string, before: string | null, text: string, known: FileRecord | undefined): void {
  if (before === null || before === text || before.includes(MARK)) return;
  if (known?.afterHash === hashText(before)) return;
  throw new EngineError("invalid_input", `cannot write ${path}: another file is there`, {
    hint: "move it away and run the command again",
  });
}

/** In every file that is entirely ours and may have a comment. */
const MARK = "ritten by lcm setup";

const isLeft = (text: string, entry: JsonEntry, path: string): boolean =>
  entry.whenTaken === "leave" && entry.key !== null && removeEntry(text, entry, null, path) === text;

/** The changes of a removal, file by file. */
export function planRemoval(request: SetupRequest): SetupEdit[] {
  const record = readRecord(request);
  return listFiles(request).map((file) => planFileRemoval(file, record.files[file.path]));
}

function planFileRemoval({ path, entries }: HostFile, known: FileRecord | undefined): SetupEdit {
  const before = readIfThere(path);
  if (before === null) return { path, before, after: null, steps: [], left: [] };
  const isUnchanged = known !== undefined && known.afterHash === hashText(before);
  const { text, steps } = takeOut(before, entries, known?.before ?? null, path);
  if (isUnchanged) {
    const after = known.before;
    return { path, before, after, steps: steps.length > 0 ? steps : [[before, after ?? ""]], left: [] };
  }
  const isNothing = text === null || (known?.before === null && isEmpty(text));
  const left = entries.some(({ kind }) => kind === "file") && text !== null ? ["the file"] : [];
  return { path, before, after: isNothing ? null : text, steps, left };
}

const isEmpty = (text: string): boolean => text === "" || isEmptyJson(text);

function takeOut(
  before: string,
  entries: readonly Entry[],
  original: string | null,
  path: string,
): { text: string | null; steps: SetupStep[] } {
  const steps: SetupStep[] = [];
  let text: string | null = before;
  for (const entry of entries) {
    const next: string | null = text === null ? null : removeEntry(text, entry, original, path);
    if (next !== text) steps.push([text ?? "", next ?? ""]);
    text = next;
  }
  return { text, steps };
}

/** Writes the planned changes, unless one of the files has changed since it was read. */
export function applySetup(request: SetupRequest, edits: readonly SetupEdit[], isRemoval: boolean): void {
  for (const { path, before } of edits)
    if (readIfThere(path) !== before)
      throw new EngineError("database_busy", `cannot change ${path}: another program has just written it`, {
        hint: "run the command again",
      });
  const record = readRecord(request);
  const changed = edits.filter(({ before, after }) => before !== after);
  // The record first: if this program is killed, its changes can be undone.
  if (!isRemoval && changed.length > 0) writeRecord(request, addToRecord(request, record, changed));
  for (const { path, after } of changed) {
    if (after === null) rmSync(path, { force: true });
    else replaceFile(path, after);
  }
  if (!isRemoval) return;
  removeIfEmpty(record.folders);
  handOver(request, record.folders.filter(existsSync));
  dropRecord(request);
}

/** A folder that was created for one agent and is still used by others is removed with the last of them. */
function handOver(request: SetupRequest, folders: readonly string[]): void {
  for (const agent of SETUP_AGENTS.filter((other) => other !== request.agent)) {
    const other = { ...request, agent };
    const record = readRecord(other);
    const paths = Object.keys(record.files);
    const used = folders.filter((folder) => paths.some((path) => path.startsWith(folder + sep)));
    if (used.length > 0)
      writeRecord(other, { ...record, folders: [...new Set([...record.folders, ...used])] });
  }
}

function addToRecord(request: SetupRequest, record: SetupRecord, edits: readonly SetupEdit[]): SetupRecord {
  const entries = new Map(listFiles(request).map((file) => [file.path, file.entries]));
  const files = { ...record.files };
  for (const { path, before, after } of edits) {
    const known = files[path];
    const isOurs = known !== undefined && before !== null && known.afterHash === hashText(before);
    files[path] = {
      before: isOurs ? known.before : findOriginal(before, entries.get(path) ?? [], known, path),
      afterHash: hashText(after ?? ""),
    };
  }
  const folders = listMissingFolders(edits.map(({ path }) => path));
  return { files, folders: [...new Set([...record.folders, ...folders])] };
}

/** The file without our entries: as before the first setup, or as others have written it since. */
function findOriginal(
  before: string | null,
  entries: readonly Entry[],
  known: FileRecord | undefined,
  path: string,
): string | null {
  if (before === null || entries.some(({ kind }) => kind === "file")) return null;
  return takeOut(before, entries, known?.before ?? null, path).text;
}

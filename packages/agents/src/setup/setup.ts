/**
 * Sets up an agent, in its own files: what changes is shown first, the files as they were are kept, and removing gives them back.
 *
 * Invariants: a file that nobody changed since is given back byte for byte; otherwise only our entries are taken out. Doing it twice changes
 * nothing. No file is written but those that the plan names, and the record of what was done, beside the database.
 */
import { existsSync, rmSync } from "node:fs";
import { sep } from "node:path";
import { EngineError } from "@lossless/core";
import { addEntry, isEmptyJson, removeEntry, type Entry, type JsonEntry } from "./entries.ts";
import { hashText, listMissingFolders, readIfThere, removeIfEmpty, replaceFile } from "./files.ts";
import { listFiles, SETUP_AGENTS, type HostFile, type SetupRequest } from "./hosts.ts";
import { dropRecord, readRecord, writeRecord, type FileRecord, type SetupRecord } from "./record.ts";

/** One file, as it is and as it would be; null when there is none. */
export interface SetupEdit {
  readonly path: string;
  readonly before: string | null;
  readonly after: string | null;
  /** From one to the other, an entry at a time. */
  readonly steps: readonly SetupStep[];
  /** What somebody else has in the place of an entry, and keeps. */
  readonly left: readonly string[];
}

export type SetupStep = readonly [before: string, after: string];

/** What setting up would change, file by file. */
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

/** What is there may be an older one of ours, but nobody else's. */
function refuseOther(path: string, before: string | null, text: string, known: FileRecord | undefined): void {
  if (before === null || before === text || before.includes(MARK)) return;
  if (known?.afterHash === hashText(before)) return;
  throw new EngineError("invalid_input", `cannot write ${path}: another file is there`, {
    hint: "move it away and run the command again",
  });
}

/** In every file that is wholly ours and may have a comment. */
const MARK = "ritten by lcm setup";

const isLeft = (text: string, entry: JsonEntry, path: string): boolean =>
  entry.whenTaken === "leave" && entry.key !== null && removeEntry(text, entry, null, path) === text;

/** What removing would change, file by file. */
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

/** Writes what was planned, unless one of the files changed since it was looked at. */
export function applySetup(request: SetupRequest, edits: readonly SetupEdit[], isRemoval: boolean): void {
  for (const { path, before } of edits)
    if (readIfThere(path) !== before)
      throw new EngineError("database_busy", `cannot change ${path}: another program has just written it`, {
        hint: "run the command again",
      });
  const record = readRecord(request);
  const changed = edits.filter(({ before, after }) => before !== after);
  // First the record: whatever ends this program, what it has written can be taken back.
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

/** A folder that was made for one agent and is still used for others goes with the last of them. */
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

/** The file without our entries: as it was before the first time, or else as somebody else has written it since. */
function findOriginal(
  before: string | null,
  entries: readonly Entry[],
  known: FileRecord | undefined,
  path: string,
): string | null {
  if (before === null || entries.some(({ kind }) => kind === "file")) return null;
  return takeOut(before, entries, known?.before ?? null, path).text;
}

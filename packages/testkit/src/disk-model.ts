/**
 * A disk in memory that models what a power cut leaves. A file has its current content, and its content at the last flush; a name is durable
 * once its folder was flushed.
 *
 * It is stricter than most file systems: nothing becomes durable without a flush.
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join, relative, sep } from "node:path";
import type { DiskStep } from "./disk-trace.ts";
import type { Random } from "./random.ts";

interface File {
  content: Buffer;
  flushed: Buffer;
}

/** What remains: everything written, as after a kill; only what was flushed; or that and some of the rest. */
export type Remains = "written" | "flushed" | "some";

const FOLDER = null;
type Entry = File | typeof FOLDER;

export class DiskModel {
  readonly #folder: string;
  readonly #entries = new Map<string, Entry>();
  readonly #durable = new Map<string, Entry>();

  /** Starts with the content of a folder, all of it durable; or as a copy of another model. */
  constructor(from: string | DiskModel) {
    this.#folder = typeof from === "string" ? from : from.#folder;
    if (typeof from === "string") this.#read(from);
    else for (const [path, entry] of from.#entries) this.#entries.set(path, entry && { ...entry });
    for (const [path, entry] of this.#entries) this.#durable.set(path, entry);
  }

  #read(folder: string): void {
    this.#entries.set(folder, FOLDER);
    for (const found of readdirSync(folder, { recursive: true, withFileTypes: true })) {
      const path = join(found.parentPath, found.name);
      if (found.isDirectory()) this.#entries.set(path, FOLDER);
      else if (!path.endsWith("-shm")) this.#entries.set(path, makeFile(readFileSync(path)));
    }
  }

  apply(step: DiskStep): void {
    if (step.kind === "print") return;
    const { path } = step;
    if (step.kind === "create") {
      if (!(this.#entries.get(path) ?? null)) this.#entries.set(path, makeFile(NOTHING));
      if (step.truncates) this.#file(path).content = NOTHING;
    } else if (step.kind === "write") write(this.#file(path), step.at, step.data);
    else if (step.kind === "copy") {
      const { content } = this.#file(step.from);
      write(this.#file(path), step.at, content.subarray(step.start, step.start + step.length));
    } else if (step.kind === "resize") resize(this.#file(path), step.size);
    else if (step.kind === "flush") this.#flush(path);
    else if (step.kind === "mkdir") this.#entries.set(path, FOLDER);
    else if (step.kind === "link") this.#entries.set(step.to, this.#file(path));
    else if (step.kind === "remove") this.#entries.delete(path);
    else this.#rename(path, step.to);
  }

  /** Writes what a crash at this moment leaves into an empty folder. */
  leave(remains: Remains, target: string, random: Random): void {
    rmSync(target, { recursive: true, force: true });
    mkdirSync(target, { recursive: true });
    for (const [path, entry] of this.#survivors(remains, random)) {
      const at = join(target, relative(this.#folder, path));
      if (entry === FOLDER) mkdirSync(at, { recursive: true });
      else if (existsSync(dirname(at))) writeFileSync(at, this.#contentOf(entry, remains, random));
    }
  }

  /** Both sides of a rename are durable or neither: names are from one moment, contents from two. */
  #survivors(remains: Remains, random: Random): [string, Entry][] {
    const isWritten = remains === "written" || (remains === "some" && random.next() < 0.5);
    // Folders before their content.
    return [...(isWritten ? this.#entries : this.#durable)].sort(([a], [b]) => (a < b ? -1 : 1));
  }

  #contentOf({ content, flushed }: File, remains: Remains, random: Random): Buffer {
    if (remains !== "some") return remains === "written" ? content : flushed;
    const mixed = Buffer.alloc(random.next() < 0.5 ? content.length : flushed.length);
    for (let at = 0; at < mixed.length; at += SECTOR) {
      const source = random.next() < 0.5 ? content : flushed;
      source.subarray(at, at + SECTOR).copy(mixed, at);
    }
    return mixed;
  }

  #flush(path: string): void {
    const entry = this.#entries.get(path);
    if (entry) entry.flushed = Buffer.from(entry.content);
    if (entry !== FOLDER) return;
    const isIn = (name: string): boolean => dirname(name) === path;
    for (const name of this.#durable.keys())
      if (isIn(name) && !this.#entries.has(name)) this.#durable.delete(name);
    for (const [name, found] of this.#entries) if (isIn(name)) this.#durable.set(name, found);
  }

  #rename(path: string, to: string): void {
    const moved = this.#entries
      .entries()
      .filter(([name]) => name === path || name.startsWith(path + sep))
      .toArray();
    for (const [name, entry] of moved) {
      this.#entries.delete(name);
      this.#entries.set(to + name.slice(path.length), entry);
      // Moving a folder takes its durable content along; its own name follows when its new parent is flushed.
      if (name !== path && this.#durable.has(name)) this.#durable.set(to + name.slice(path.length), entry);
    }
  }

  #file(path: string): File {
    const entry = this.#entries.get(path);
    if (!entry) throw new Error(`the trace uses ${path}, which is not a file then`);
    return entry;
  }
}

const NOTHING = Buffer.alloc(0);
const SECTOR = 512;

const makeFile = (content: Buffer): File => ({ content, flushed: content });

function write(file: File, at: number, data: Buffer): void {
  if (at + data.length > file.content.length) resize(file, at + data.length);
  else file.content = Buffer.from(file.content);
  data.copy(file.content, at);
}

function resize(file: File, size: number): void {
  const content = Buffer.alloc(size);
  file.content.copy(content);
  file.content = content;
}

/**
 * Finds the entries of a transcript that are off its active branch. Pure: takes entries in file order and returns their numbers. A file may have
 * millions of entries, so only the parent and a few flags of each are kept.
 *
 * A parent is looked up among the entries before its child, so that an entry's place never changes when the file grows. Only the choice of the
 * active branch can change. A tree may start in the middle of a file, knowing only the last entry before it; it then reports whether later
 * entries merely extend the branch, and refuses to list entries it cannot know.
 */

import { assert, must } from "@lossless/core";

import type { BranchRule } from "../formats/format.ts";
import { NameTable } from "./name-table.ts";

export interface TreeEntry {
  readonly id: string | undefined;
  readonly parentId: string | null | undefined;
  readonly takesBack?: string | undefined;
  readonly isPrompt: boolean;
  readonly isHeader: boolean;
  /** Hidden when it was stored, independent of branches. */
  readonly isSidechain: boolean;
}

/** The last entry of the part of a file that is not read again. */
export interface TreeEnd {
  readonly id: string | null;
  /** False when the entry is off the branch: then so are its descendants. */
  readonly isActive: boolean;
}

/** What the tree decided: entries are numbered in file order, from 0. */
export interface Decision {
  readonly isOff: (entry: number) => boolean;
  readonly end: TreeEnd | null;
}

const ROOT = -1;
const HEADER = 1;
const SIDECHAIN = 2;
const JUMP = 4;
const FIRST_ROOM = 1024;

export class EntryTree {
  /** False when the tree starts in the middle of a file. */
  readonly isComplete: boolean;
  readonly #rule: BranchRule;
  /**
   * Most entries are children of the entry before them. For the others this holds, in order, the index and that of the parent (-1 for a root); a
   * flag marks the entries that are in this list.
   */
  #jumps = new Int32Array(FIRST_ROOM);
  #jumpCount = 0;
  #marks = new Uint8Array(FIRST_ROOM);
  #count = 0;
  /** Of prompts: those with the same value replace each other. */
  readonly #siblings = new Map<number, string>();
  /** The latest entry of each id, its index plus one; zero for a name that is not an entry. */
  readonly #table: NameTable;
  readonly #promptGroups = new Set<string>();
  readonly #start: TreeEnd | null;
  #onlyHeaders = true;
  #extendsBranch = true;
  #end: TreeEnd | null;

  constructor(rule: BranchRule, end: TreeEnd | null = null, table: NameTable = new NameTable()) {
    this.#rule = rule;
    this.#end = end;
    this.#start = end;
    this.#table = table;
    this.isComplete = end === null;
    // The entry before the start has index 0, whatever it was.
    if (end !== null) this.#push(ROOT, 0);
  }

  /** True while every entry so far continues the previously active branch: nothing has to be hidden or shown. */
  get extendsBranch(): boolean {
    return this.#extendsBranch;
  }

  /** The last entry, for a later tree to start from. `isActive` is only right while the branch is extended. */
  get end(): TreeEnd | null {
    return this.#end;
  }

  add(entry: TreeEntry): void {
    const parent = this.#place(entry);
    this.#push(parent, (entry.isHeader ? HEADER : 0) | (entry.isSidechain ? SIDECHAIN : 0));
    if (!entry.isHeader) this.#onlyHeaders = false;
    if (entry.id !== undefined) this.#table.set(entry.id, this.#count);
    this.#end = { id: entry.id ?? null, isActive: true };
  }

  #place(entry: TreeEntry): number {
    if (this.#rule === "log") return this.#placeInLog(entry);
    return this.#rule === "path" ? this.#placeOnPath(entry) : this.#placeBelowPrompt(entry);
  }

  #push(parent: number, marks: number): void {
    if (this.#count === this.#marks.length) {
      const kept = new Uint8Array(Math.ceil(1.5 * this.#count));
      kept.set(this.#marks);
      this.#marks = kept;
    }
    const isJump = parent !== this.#count - 1;
    if (isJump) this.#pushJump(parent);
    this.#marks[this.#count] = marks | (isJump ? JUMP : 0);
    this.#count += 1;
  }

  #pushJump(parent: number): void {
    const at = 2 * this.#jumpCount;
    if (at === this.#jumps.length) {
      const kept = new Int32Array(2 * Math.ceil(0.75 * at));
      kept.set(this.#jumps);
      this.#jumps = kept;
    }
    this.#jumps[at] = this.#count;
    this.#jumps[at + 1] = parent;
    this.#jumpCount += 1;
  }

  #parentOf(entry: number): number {
    if (((this.#marks[entry] ?? 0) & JUMP) === 0) return entry - 1;
    let [low, high] = [0, this.#jumpCount - 1];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (must(this.#jumps[2 * middle], "jump") < entry) low = middle + 1;
      else high = middle;
    }
    return must(this.#jumps[2 * low + 1], "parent");
  }

  /** The entries off the active branch, sidechains included, and the resulting end. */
  decide(): Decision {
    assert(this.isComplete, "branches are decided over the whole file");
    const off = this.#rule === "prompts" ? this.#markReplacedPrompts() : this.#markOffPath();
    const marks = this.#marks;
    const end = this.#end === null ? null : { id: this.#end.id, isActive: off[this.#count - 1] !== 1 };
    return { isOff: (entry) => off[entry] === 1 || ((marks[entry] ?? 0) & SIDECHAIN) !== 0, end };
  }

  /** The latest entry of an id, among those placed and the one before the start. */
  #latest(id: string): number | undefined {
    const placed = this.#table.get(id) ?? 0;
    if (placed > 0) return placed - 1;
    return this.#start !== null && this.#start.id === id ? 0 : undefined;
  }

  #placeOnPath(entry: TreeEntry): number {
    const previous = this.#count - 1;
    const parent = entry.isHeader ? previous : this.#resolve(entry, previous);
    const opensFile = parent === ROOT && this.isComplete && this.#onlyHeaders;
    if (parent !== previous && !opensFile) this.#extendsBranch = false;
    return parent;
  }

  /** A rewritten entry takes the place of the old one; a retracted entry becomes a sibling of the line that retracts it. */
  #placeInLog({ id, takesBack, isHeader }: TreeEntry): number {
    const previous = this.#count - 1;
    const named = takesBack ?? (isHeader ? undefined : id);
    const known = named === undefined ? undefined : this.#latest(named);
    const isOver = takesBack !== undefined || (known !== undefined && known === previous);
    if (!isOver) return previous;
    this.#extendsBranch = false;
    return known === undefined ? ROOT : this.#parentOf(known);
  }

  #resolve(entry: TreeEntry, previous: number): number {
    if (entry.id === undefined || entry.parentId === undefined) return previous;
    if (entry.parentId === null) return ROOT;
    // Most entries are children of the entry before them, which is the latest of its id.
    if (entry.parentId === this.#end?.id) return previous;
    const known = this.#latest(entry.parentId);
    // The parent may exist before the start of a partial tree; only the whole file can tell.
    if (known === undefined && !this.isComplete) this.#extendsBranch = false;
    return known ?? previous;
  }

  #placeBelowPrompt(entry: TreeEntry): number {
    const { parentId } = entry;
    if (parentId === null || parentId === undefined) return ROOT;
    const parent = this.#latest(parentId);
    // Below an unknown parent or an abandoned prompt, only the whole file can tell where the entry belongs.
    const isUncertain = parent === undefined || (parent === 0 && this.#start?.isActive === false);
    if (!this.isComplete && isUncertain) this.#extendsBranch = false;
    if (entry.isPrompt) this.#addPrompt(parent === undefined ? `?${parentId}` : String(parent));
    return parent ?? ROOT;
  }

  #addPrompt(siblings: string): void {
    if (this.#promptGroups.has(siblings)) this.#extendsBranch = false;
    this.#promptGroups.add(siblings);
    this.#siblings.set(this.#count, siblings);
  }

  #markOffPath(): Uint8Array {
    const off = new Uint8Array(this.#count);
    for (let at = 0; at < this.#count; at += 1) off[at] = ((this.#marks[at] ?? 0) & HEADER) === 0 ? 1 : 0;
    for (let at = this.#count - 1; at !== ROOT; at = this.#parentOf(at)) off[at] = 0;
    return off;
  }

  #markReplacedPrompts(): Uint8Array {
    const lastOfGroup = new Map<string, number>();
    for (const [index, siblings] of this.#siblings) lastOfGroup.set(siblings, index);
    const off = new Uint8Array(this.#count);
    // Parents come before their children, so one pass marks whole subtrees.
    for (let at = 0; at < this.#count; at += 1) {
      const siblings = this.#siblings.get(at);
      const isReplaced = siblings !== undefined && lastOfGroup.get(siblings) !== at;
      const parent = this.#parentOf(at);
      off[at] = isReplaced || (parent !== ROOT && off[parent] === 1) ? 1 : 0;
    }
    return off;
  }
}

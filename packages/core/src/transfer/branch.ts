/**
 * Which entries of a transcript lie off its active branch. Pure: entries go in, in file order, a list of event ids comes out.
 *
 * A parent is looked up among the entries before its child, so that an entry's place never changes when the file grows. What
 * can change is which branch is the active one. A tree may start in the middle of a file, knowing only the last entry before
 * it; it then says whether what follows merely extends the branch, and refuses to list what it cannot know.
 */

import { assert, must } from "../model/errors.ts";

import type { BranchRule } from "./format.ts";

export interface TreeEntry {
  readonly eventId: string;
  readonly id: string | undefined;
  readonly parentId: string | null | undefined;
  readonly isPrompt: boolean;
  readonly isHeader: boolean;
  /** Hidden when it was stored, whatever the branches say. */
  readonly isSidechain: boolean;
}

/** The last entry of the part of a file that is not read again. */
export interface TreeEnd {
  readonly id: string | null;
  /** False when the entry lies off the branch: then so does what hangs below it. */
  readonly isActive: boolean;
}

interface Node {
  readonly entry: TreeEntry | null;
  /** Index of the parent; -1 for a root. */
  readonly parent: number;
  /** Prompts with the same value replace each other. */
  readonly siblings: string | null;
}

const ROOT = -1;

export class EntryTree {
  /** False when the tree starts in the middle of a file. */
  readonly isComplete: boolean;
  readonly #rule: BranchRule;
  readonly #nodes: Node[] = [];
  readonly #latestById = new Map<string, number>();
  readonly #promptGroups = new Set<string>();
  readonly #startsActive: boolean;
  #extendsBranch = true;
  #end: TreeEnd | null;

  constructor(rule: BranchRule, end: TreeEnd | null = null) {
    this.#rule = rule;
    this.#end = end;
    this.isComplete = end === null;
    this.#startsActive = end?.isActive ?? true;
    if (end === null) return;
    this.#nodes.push({ entry: null, parent: ROOT, siblings: null });
    if (end.id !== null) this.#latestById.set(end.id, 0);
  }

  /** True while every entry so far continues the branch that was active before it: nothing has to be hidden or shown. */
  get extendsBranch(): boolean {
    return this.#extendsBranch;
  }

  /** The last entry, for a later tree to start from. Its activity is only right while the branch is extended. */
  get end(): TreeEnd | null {
    return this.#end;
  }

  add(entry: TreeEntry): void {
    const node = this.#rule === "path" ? this.#placeOnPath(entry) : this.#placeBelowPrompt(entry);
    this.#nodes.push(node);
    if (entry.id !== undefined) this.#latestById.set(entry.id, this.#nodes.length - 1);
    this.#end = { id: entry.id ?? null, isActive: true };
  }

  /** The event ids off the active branch, sidechains included, in file order; and the end as it stands after that. */
  decide(): { offBranch: string[]; end: TreeEnd | null } {
    assert(this.isComplete, "branches are decided over the whole file");
    const isOff = this.#rule === "path" ? this.#markOffPath() : this.#markReplacedPrompts();
    const entries = this.#nodes.map((node) => must(node.entry, "entry of a complete tree"));
    const offEntries = entries.filter((entry, index) => isOff[index] === true || entry.isSidechain);
    const end = this.#end === null ? null : { id: this.#end.id, isActive: isOff.at(-1) !== true };
    return { offBranch: offEntries.map((entry) => entry.eventId), end };
  }

  #placeOnPath(entry: TreeEntry): Node {
    const previous = this.#nodes.length - 1;
    const parent = entry.isHeader ? previous : this.#resolve(entry, previous);
    if (parent !== previous && !(parent === ROOT && this.#holdsOnlyHeaders())) this.#extendsBranch = false;
    return { entry, parent, siblings: null };
  }

  #resolve(entry: TreeEntry, previous: number): number {
    if (entry.id === undefined || entry.parentId === undefined) return previous;
    if (entry.parentId === null) return ROOT;
    const known = this.#latestById.get(entry.parentId);
    // Before the start of a partial tree the parent may exist after all; only the whole file can say.
    if (known === undefined && !this.isComplete) this.#extendsBranch = false;
    return known ?? previous;
  }

  #holdsOnlyHeaders(): boolean {
    return this.isComplete && this.#nodes.every((node) => node.entry?.isHeader === true);
  }

  #placeBelowPrompt(entry: TreeEntry): Node {
    const { parentId } = entry;
    if (parentId === null || parentId === undefined) return { entry, parent: ROOT, siblings: null };
    const parent = this.#latestById.get(parentId);
    // Below the unknown, or below an abandoned prompt, only the whole file can say where the entry lies.
    const isUncertain = parent === undefined || (parent === 0 && !this.#startsActive);
    if (!this.isComplete && isUncertain) this.#extendsBranch = false;
    const siblings = entry.isPrompt ? (parent === undefined ? `?${parentId}` : String(parent)) : null;
    if (siblings !== null) {
      if (this.#promptGroups.has(siblings)) this.#extendsBranch = false;
      this.#promptGroups.add(siblings);
    }
    return { entry, parent: parent ?? ROOT, siblings };
  }

  #markOffPath(): boolean[] {
    const isOff = this.#nodes.map((node) => node.entry?.isHeader !== true);
    for (let at = this.#nodes.length - 1; at !== ROOT; at = must(this.#nodes[at], "parent").parent)
      isOff[at] = false;
    return isOff;
  }

  #markReplacedPrompts(): boolean[] {
    const lastOfGroup = new Map<string, number>();
    for (const [index, { siblings }] of this.#nodes.entries())
      if (siblings !== null) lastOfGroup.set(siblings, index);
    const isOff: boolean[] = [];
    // Parents stand before their children, so one pass carries the mark down whole subtrees.
    for (const [index, { siblings, parent }] of this.#nodes.entries()) {
      const isReplaced = siblings !== null && lastOfGroup.get(siblings) !== index;
      isOff.push(isReplaced || (parent !== ROOT && isOff[parent] === true));
    }
    return isOff;
  }
}

/**
 * What an import remembers of the lines it has read: the names in use and the tree of entries.
 *
 * An index that starts at a cursor does without the lines before it while they cannot matter. Completing it reads the file again and never
 * changes an event id that it has assigned.
 */

import { EntryTree, type TreeEnd, type TreeEntry } from "./branch.ts";
import { EventIds } from "./event-ids.ts";
import type { BranchRule, EntryFacts } from "../formats/format.ts";
import { NameTable } from "./name-table.ts";

/** The name and place of a line; `facts` is `null` for a blank or unreadable line. */
export interface NamedLine {
  readonly name: string;
  readonly facts: EntryFacts | null;
}

export class EntryIndex {
  readonly #rule: BranchRule;
  #ids: EventIds;
  #tree: EntryTree;
  #lines = 0;

  /** Starts at the beginning of the file, or after the entry that `end` names. */
  constructor(rule: BranchRule, end: TreeEnd | null = null) {
    this.#rule = rule;
    const table = new NameTable();
    this.#ids = new EventIds(table);
    this.#tree = new EntryTree(rule, end, table);
  }

  /** True when every line before the next one has been placed. */
  get isComplete(): boolean {
    return this.#tree.isComplete;
  }

  /** True while the placed entries merely continue the previously active branch. */
  get extendsBranch(): boolean {
    return this.#tree.extendsBranch;
  }

  get end(): TreeEnd | null {
    return this.#tree.end;
  }

  hasName(name: string): boolean {
    return this.#ids.has(name);
  }

  /** Assigns an event id to the next line. `openEventId` is the one it got when it was the unfinished end of the file. */
  place(line: NamedLine, openEventId: string | null = null): string {
    this.#lines += 1;
    const isAdopted = openEventId !== null && this.#ids.adopt(line.name, openEventId);
    const eventId = isAdopted ? openEventId : this.#ids.assign(line.name);
    if (isInTree(line.facts)) this.#tree.add(toTreeEntry(line.facts));
    return eventId;
  }

  /** Places the lines before the start, `before` of them, then again those since. `lines` are the lines of the file from its beginning. */
  async complete(lines: AsyncIterable<NamedLine>, before: number): Promise<void> {
    const placed = before + this.#lines;
    this.#begin();
    for await (const line of lines) {
      if (this.#lines === placed) break;
      this.place(line);
    }
  }

  /**
   * The event ids off the active branch, in file order, and the resulting end. Event ids are not kept, because almost no file needs them:
   * `lines` are the lines of the file again, and nothing can be placed afterwards.
   */
  async decideBranch(lines: AsyncIterable<NamedLine>): Promise<{ offBranch: string[]; end: TreeEnd | null }> {
    const { isOff, end } = this.#tree.decide();
    const placed = this.#lines;
    this.#begin();
    const offBranch: string[] = [];
    let entry = 0;
    for await (const { name, facts } of lines) {
      if (this.#lines === placed) break;
      this.#lines += 1;
      const eventId = this.#ids.assign(name);
      if (isInTree(facts) && isOff(entry++)) offBranch.push(eventId);
    }
    return { offBranch, end };
  }

  #begin(): void {
    const table = new NameTable();
    this.#lines = 0;
    this.#ids = new EventIds(table);
    this.#tree = new EntryTree(this.#rule, null, table);
  }
}

const isInTree = (facts: EntryFacts | null): facts is EntryFacts =>
  facts !== null && facts.treeRole !== "none";

function toTreeEntry({ id, parentId, takesBack, isPrompt, treeRole, hidden }: EntryFacts): TreeEntry {
  return {
    id,
    parentId,
    takesBack,
    isPrompt,
    isHeader: treeRole === "header",
    isSidechain: hidden.includes("branch"),
  };
}

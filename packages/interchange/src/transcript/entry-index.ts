/**
 * What an import remembers of the lines of a file while it goes through them: the names in use and the tree of entries.
 *
 * An index that starts at a cursor does without the lines before it for as long as they cannot matter. Completing it reads the file once more
 * and never changes an event id that it has given out.
 */

import { EntryTree, type TreeEnd, type TreeEntry } from "./branch.ts";
import { EventIds } from "./event-ids.ts";
import type { BranchRule, EntryFacts } from "../formats/format.ts";
import { NameTable } from "./name-table.ts";

/** A line as far as its name and place go; `facts` is `null` for a line that is blank or unreadable. */
export interface NamedLine {
  readonly name: string;
  readonly facts: EntryFacts | null;
}

export class EntryIndex {
  readonly #rule: BranchRule;
  #ids: EventIds;
  #tree: EntryTree;
  #lines = 0;

  /** Without `end` from the start of a file; with it from behind the entry it names. */
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

  /** True while the placed entries merely continue the branch that was active before them. */
  get extendsBranch(): boolean {
    return this.#tree.extendsBranch;
  }

  get end(): TreeEnd | null {
    return this.#tree.end;
  }

  hasName(name: string): boolean {
    return this.#ids.has(name);
  }

  /** Gives the next line its event id. `openEventId` is the one it got when it was the unfinished end of the file. */
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
   * The event ids off the active branch, in file order, and the end as it stands after that. Event ids are not kept, because almost no
   * file asks for them: `lines` are the lines of the file once more, and nothing can be placed afterwards.
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

/**
 * What an import remembers of the lines of a file while it goes through them: the names in use and the tree of entries.
 *
 * An index that starts at a cursor does without the lines before it for as long as they cannot matter, and keeps the little it
 * needs to add them later. Completing it never changes an event id that it has given out.
 */

import { EntryTree, type TreeEnd } from "./branch.ts";
import { EventIds } from "./event-ids.ts";
import type { BranchRule, EntryFacts } from "./format.ts";

/** A line as far as its name and place go; `facts` is `null` for a line that is blank or unreadable. */
export interface NamedLine {
  readonly name: string;
  readonly facts: EntryFacts | null;
}

export class EntryIndex {
  readonly #rule: BranchRule;
  #ids = new EventIds();
  #tree: EntryTree;
  #tail: NamedLine[] = [];

  /** Without `end` from the start of a file; with it from behind the entry it names. */
  constructor(rule: BranchRule, end: TreeEnd | null = null) {
    this.#rule = rule;
    this.#tree = new EntryTree(rule, end);
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
    if (!this.isComplete) this.#tail.push(line);
    const isAdopted = openEventId !== null && this.#ids.adopt(line.name, openEventId);
    const eventId = isAdopted ? openEventId : this.#ids.assign(line.name);
    this.#addToTree(eventId, line.facts);
    return eventId;
  }

  /** Places the lines before the start, then again those since. */
  async complete(before: AsyncIterable<NamedLine>): Promise<void> {
    const tail = this.#tail;
    this.#tail = [];
    this.#ids = new EventIds();
    this.#tree = new EntryTree(this.#rule);
    for await (const line of before) this.place(line);
    for (const line of tail) this.place(line);
  }

  decideBranch(): { offBranch: string[]; end: TreeEnd | null } {
    return this.#tree.decide();
  }

  #addToTree(eventId: string, facts: EntryFacts | null): void {
    if (facts === null || facts.place === "none") return;
    this.#tree.add({
      eventId,
      id: facts.id,
      parentId: facts.parentId,
      isPrompt: facts.isPrompt,
      isHeader: facts.place === "header",
      isSidechain: facts.hidden.includes("branch"),
    });
  }
}

/** What the parts of `verify` share: the list of problems, the changes recorded in the ledger, and the check of a counter. */
import type { Problem } from "../store/rows.ts";

const MAX_PROBLEMS = 1_000;

/** Collects problems up to a limit; a badly damaged archive must not exhaust memory. */
export class Problems {
  readonly list: Problem[] = [];
  #dropped = 0;

  add(code: string, id: string, message: string): void {
    if (this.list.length < MAX_PROBLEMS) this.list.push({ code, id, message });
    else this.#dropped += 1;
  }

  finish(): Problem[] {
    if (this.#dropped > 0) {
      this.list.push({
        code: "more_problems",
        id: "archive",
        message: `${this.#dropped} further problems are not listed`,
      });
    }
    return this.list;
  }
}

/** Which messages were hidden or shown later, according to the ledger. Small, because it only has changes. */
export type HiddenChanges = Map<number, { hide: boolean; mask: number }[]>;

export function checkCounter<C extends string>(
  row: Readonly<Record<C, number | null>>,
  column: C,
  actual: number | null,
  name: string,
  problems: Problems,
): void {
  if (row[column] === actual) return;
  problems.add("counter", name, `${column} of ${name} is ${row[column]}, counted ${actual}`);
}

export function noteHidden(
  changes: HiddenChanges,
  seqs: readonly number[],
  change: { hide: boolean; mask: number },
): void {
  for (const seq of seqs) {
    const list = changes.get(seq) ?? [];
    list.push(change);
    changes.set(seq, list);
  }
}

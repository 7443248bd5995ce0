/**
 * Names for the lines of one file: the entry's own id, or the hash of the line; followed by a count when the file has used that name before. The
 * same file always gives the same names, so an import can be repeated.
 */

import { createHash } from "node:crypto";

import { NameTable } from "./name-table.ts";

const HASH_DIGITS = 24;

/** The name of a line before repetitions are counted. */
export function nameLine(bytes: Uint8Array, id: string | undefined): string {
  return id ?? `line:${createHash("sha256").update(bytes).digest("hex").slice(0, HASH_DIGITS)}`;
}

/** True if `eventId` is the name itself or a repetition of it. */
export function isNamedAfter(eventId: string, name: string): boolean {
  return eventId.startsWith(name) && /^(?:#\d+)?$/u.test(eventId.slice(name.length));
}

/** The value of a name that does not belong to an entry of the tree. */
const NAME_ONLY = 0;

export class EventIds {
  /** Every event id assigned, and every name used. */
  readonly #table: NameTable;
  /** The highest occurrence assigned, for names that were used more than once. */
  readonly #occurrences = new Map<string, number>();

  constructor(table: NameTable = new NameTable()) {
    this.#table = table;
  }

  has(name: string): boolean {
    return this.#table.has(name);
  }

  assign(name: string): string {
    if (this.#table.add(name, NAME_ONLY)) return name;
    let occurrence = (this.#occurrences.get(name) ?? 1) + 1;
    // An entry may itself be called `x#2`.
    while (this.#table.has(`${name}#${occurrence}`)) occurrence += 1;
    const eventId = `${name}#${occurrence}`;
    this.#occurrences.set(name, occurrence);
    this.#table.set(eventId, NAME_ONLY);
    return eventId;
  }

  /** Gives the line called `name` the event id that an earlier import assigned; false if that id is not one of its own. */
  adopt(name: string, eventId: string): boolean {
    if (!isNamedAfter(eventId, name)) return false;
    const occurrence = Number(eventId.slice(name.length + 1)) || 1;
    if (occurrence > 1) this.#occurrences.set(name, occurrence);
    for (const used of [name, eventId]) this.#table.add(used, NAME_ONLY);
    return true;
  }
}

/**
 * Names for the lines of one file: the entry's own id, or the hash of the line; with a count behind it when the file has used
 * that name before. The same file always yields the same names, which is what makes an import repeatable.
 */

import { createHash } from "node:crypto";

const HASH_DIGITS = 24;

/** The name of a line before repetitions are counted. */
export function nameLine(bytes: Uint8Array, id: string | undefined): string {
  return id ?? `line:${createHash("sha256").update(bytes).digest("hex").slice(0, HASH_DIGITS)}`;
}

/** True if `eventId` is the name itself or a repetition of it. */
export function isNamedAfter(eventId: string, name: string): boolean {
  return eventId.startsWith(name) && /^(?:#\d+)?$/u.test(eventId.slice(name.length));
}

export class EventIds {
  /** Every event id given out, with the highest occurrence given out for it as a name. */
  readonly #occurrences = new Map<string, number>();

  has(name: string): boolean {
    return this.#occurrences.has(name);
  }

  assign(name: string): string {
    const last = this.#occurrences.get(name);
    if (last === undefined) {
      this.#occurrences.set(name, 1);
      return name;
    }
    let occurrence = last + 1;
    // An entry may itself be called `x#2`.
    while (this.#occurrences.has(`${name}#${occurrence}`)) occurrence += 1;
    const eventId = `${name}#${occurrence}`;
    this.#occurrences.set(name, occurrence);
    this.#occurrences.set(eventId, 1);
    return eventId;
  }

  /** Gives the line called `name` the event id that an earlier import gave it; false if that id is not one of its own. */
  adopt(name: string, eventId: string): boolean {
    if (!isNamedAfter(eventId, name)) return false;
    const occurrence = Number(eventId.slice(name.length + 1)) || 1;
    this.#occurrences.set(eventId, 1);
    this.#occurrences.set(name, occurrence);
    return true;
  }
}

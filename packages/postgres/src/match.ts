/**
 * Matches clues with the posting blocks of one segment. A clue about single words needs only the lists of ids. Phrases, words near each other
 * and first words also need positions, but only those of documents that contain all of the words: until these are loaded, such documents count
 * as found.
 *
 * Invariant: with all positions loaded, the result is the ids of the documents of the segment for which `holdsClue` is true, in order.
 */
import type { TextClue } from "@lossless/core/ports";
import { decodePlaces } from "./posting-blocks.ts";
import type { BlockDocuments } from "./posting-blocks.ts";

/** A term of a segment. */
export interface TermPostings extends BlockDocuments {
  /** As long as all positions together; null until some were read, and then only the requested ones are filled in. */
  places: Uint8Array | null;
}

/** The terms of a question in one segment. */
export interface SegmentTerms {
  readonly words: ReadonlyMap<string, TermPostings>;
  readonly identifiers: ReadonlyMap<string, Float64Array>;
}

/** A part of the positions of a term. */
export interface PlaceSlice {
  readonly term: string;
  readonly from: number;
  readonly length: number;
}

/** The terms to look up for some clues. */
export interface SoughtTerms {
  readonly words: ReadonlySet<string>;
  readonly prefixes: ReadonlySet<string>;
  readonly identifiers: ReadonlySet<string>;
  /** Words and prefixes whose positions may be needed: those of a phrase, words near each other, first words. */
  readonly placed: ReadonlySet<string>;
}

const NOTHING = new Float64Array(0);
const NO_PLACES = new Int32Array(0);
/** Slices nearer to each other than this are read as one: a value is stored in pieces of about two thousand bytes. */
const SLICE_GAP = 4_096;

export function listTerms(clues: readonly TextClue[]): SoughtTerms {
  const sought = {
    words: new Set<string>(),
    prefixes: new Set<string>(),
    identifiers: new Set<string>(),
    placed: new Set<string>(),
  };
  // A single word needs no positions.
  const place = (words: readonly string[]): void => {
    if (words.length > 1) words.forEach((word) => sought.placed.add(word));
  };
  const visit = (clue: TextClue): void => {
    switch (clue.kind) {
      case "any":
      case "all":
        return clue.of.forEach(visit);
      case "identifier":
        return void sought.identifiers.add(clue.identifier);
      case "first":
        sought.placed.add(clue.word);
        return void sought.words.add(clue.word);
      case "prefix":
        place(clue.words);
        sought.prefixes.add(clue.words.at(-1) ?? "");
        return clue.words.slice(0, -1).forEach((word) => sought.words.add(word));
      default:
        place(clue.words);
        return clue.words.forEach((word) => sought.words.add(word));
    }
  };
  clues.forEach(visit);
  return sought;
}

/** Matches clues in one segment. */
export class SegmentMatcher {
  readonly #segment: SegmentTerms;
  /** Documents whose positions are missing, by term. */
  readonly #missing = new Map<string, Float64Array[]>();
  #isMissing = false;

  constructor(segment: SegmentTerms) {
    this.#segment = segment;
  }

  /** The documents that match a clue, or may, while positions are missing. */
  match(clue: TextClue): Float64Array {
    switch (clue.kind) {
      case "phrase":
        return this.#matchRun(clue.words.map((word) => this.#find(word)));
      case "prefix":
        return this.#matchRun([
          ...clue.words.slice(0, -1).map((word) => this.#find(word)),
          this.#findPrefix(clue.words.at(-1) ?? ""),
        ]);
      case "first":
        return this.#filter([this.#find(clue.word)], ([places]) => places?.[0] === 0);
      case "identifier":
        return this.#segment.identifiers.get(clue.identifier) ?? NOTHING;
      case "near":
        return this.#filter(
          clue.words.map((word) => this.#find(word)),
          ([first = NO_PLACES, second = NO_PLACES]) => areNear(first, second, clue.between),
        );
      case "any":
        return unite(clue.of.map((one) => this.match(one)));
      case "all":
        return intersect(clue.of.map((one) => this.match(one)));
    }
  }

  /** The documents that match a clue; null while positions are missing. */
  tryMatch(clue: TextClue): Float64Array | null {
    this.#isMissing = false;
    const ids = this.match(clue);
    return this.#isMissing ? null : ids;
  }

  /** The missing positions, as slices to read. */
  listMissing(): PlaceSlice[] {
    return [...this.#missing].flatMap(([term, lists]) => {
      const postings = this.#segment.words.get(term);
      return postings === undefined ? [] : sliceFor(term, postings, unite(lists));
    });
  }

  #find(word: string): Spelled {
    const postings = this.#segment.words.get(word);
    return postings === undefined ? [] : [[word, postings]];
  }

  #findPrefix(prefix: string): Spelled {
    return [...this.#segment.words].filter(([term]) => term.startsWith(prefix));
  }

  #matchRun(words: readonly Spelled[]): Float64Array {
    const [only] = words;
    if (only !== undefined && words.length === 1) return unite(only.map(([, { ids }]) => ids));
    return this.#filter(words, followEachOther);
  }

  /** Of the documents that contain all of the words, those whose positions pass. */
  #filter(words: readonly Spelled[], isHeld: (places: readonly Int32Array[]) => boolean): Float64Array {
    const ids = intersect(words.map((spelled) => unite(spelled.map(([, postings]) => postings.ids))));
    if (ids.length === 0 || this.#noteMissing(words, ids)) return ids;
    const readers = words.map(makePlaceReader);
    const places: Int32Array[] = readers.map(() => NO_PLACES);
    return ids.filter((id) => {
      for (let at = 0; at < readers.length; at++) places[at] = readers[at]?.(id) ?? NO_PLACES;
      return isHeld(places);
    });
  }

  #noteMissing(words: readonly Spelled[], ids: Float64Array): boolean {
    let isMissing = false;
    for (const [term, postings] of words.flat()) {
      if (postings.places !== null) continue;
      const shared = intersect([ids, postings.ids]);
      if (shared.length === 0) continue;
      isMissing = true;
      const lists = this.#missing.get(term);
      if (lists) lists.push(shared);
      else this.#missing.set(term, [shared]);
    }
    this.#isMissing ||= isMissing;
    return isMissing;
  }
}

/** A word of a question as the matching terms of a segment: one, none, or several for a prefix. */
type Spelled = readonly (readonly [term: string, postings: TermPostings])[];

function sliceFor(term: string, { ids, starts }: TermPostings, wanted: Float64Array): PlaceSlice[] {
  const slices: { term: string; from: number; length: number }[] = [];
  let at = 0;
  for (const id of wanted) {
    at = seek(ids, id, at);
    if (ids[at] !== id) continue;
    const from = starts[at] ?? 0;
    const end = starts[at + 1] ?? 0;
    const last = slices.at(-1);
    if (last !== undefined && from - (last.from + last.length) <= SLICE_GAP) last.length = end - last.from;
    else slices.push({ term, from, length: end - from });
  }
  return slices;
}

/** Reads the positions of documents that are requested in order. */
class PlaceCursor {
  readonly #postings: TermPostings;
  #at = 0;
  #room = new Int32Array(16);

  constructor(postings: TermPostings) {
    this.#postings = postings;
  }

  /** Valid until the next call. */
  read(id: number): Int32Array {
    const { ids, starts, places } = this.#postings;
    this.#at = seek(ids, id, this.#at);
    if (ids[this.#at] !== id || places === null) return this.#room.subarray(0, 0);
    const start = starts[this.#at] ?? 0;
    const end = starts[this.#at + 1] ?? 0;
    if (end - start > this.#room.length) this.#room = new Int32Array(2 * (end - start));
    return this.#room.subarray(0, decodePlaces(places, start, end, this.#room));
  }
}

/** The index of an id, or where it would be, at `from` or after it. Steps grow, because the next one is usually near. */
function seek(ids: Float64Array, id: number, from: number): number {
  let low = from;
  let step = 1;
  while (low + step < ids.length && (ids[low + step] ?? 0) <= id) {
    low += step;
    step *= 2;
  }
  let high = Math.min(low + step, ids.length);
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((ids[middle] ?? 0) < id) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Reads the positions of a word in one document after the other; for a prefix, those of all matching terms, in order. */
function makePlaceReader(spelled: Spelled): (id: number) => Int32Array {
  const cursors = spelled.map(([, postings]) => new PlaceCursor(postings));
  const [only] = cursors;
  if (only !== undefined && cursors.length === 1) return (id) => only.read(id);
  return (id) => Int32Array.from(cursors.flatMap((cursor) => [...cursor.read(id)])).sort();
}

/** Whether each list has a position right after one of the list before it, from the first list to the last. */
function followEachOther(lists: readonly Int32Array[]): boolean {
  const [first = NO_PLACES] = lists;
  for (const start of first) if (isRunAt(lists, start)) return true;
  return false;
}

function isRunAt(lists: readonly Int32Array[], start: number): boolean {
  for (let at = 1; at < lists.length; at++) if (!hasPlace(lists[at] ?? NO_PLACES, start + at)) return false;
  return true;
}

function hasPlace(places: Int32Array, wanted: number): boolean {
  let low = 0;
  let high = places.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((places[middle] ?? 0) < wanted) low = middle + 1;
    else high = middle;
  }
  return places[low] === wanted;
}

function areNear(first: Int32Array, second: Int32Array, between: number): boolean {
  for (let one = 0, other = 0; one < first.length && other < second.length;) {
    const distance = (first[one] ?? 0) - (second[other] ?? 0);
    if (Math.abs(distance) - 1 <= between) return true;
    if (distance < 0) one++;
    else other++;
  }
  return false;
}

/** The ids that are in every list. */
export function intersect(lists: readonly Float64Array[]): Float64Array {
  const [shortest = NOTHING, ...others] = lists.toSorted((a, b) => a.length - b.length);
  return others.reduce((common, list) => {
    let at = 0;
    return common.filter((id) => list[(at = seek(list, id, at))] === id);
  }, shortest);
}

/** The ids that are in any list, in order, each once. */
export function unite(lists: readonly Float64Array[]): Float64Array {
  const [first = NOTHING, ...others] = lists.filter(({ length }) => length > 0);
  if (others.length === 0) return first;
  if (others.length > 1) return uniteMany([first, ...others]);
  return uniteTwo(first, others[0] as Float64Array);
}

function uniteTwo(one: Float64Array, other: Float64Array): Float64Array {
  const all = new Float64Array(one.length + other.length);
  let length = 0;
  for (let a = 0, b = 0; a < one.length || b < other.length;) {
    const left = one[a] ?? Infinity;
    const right = other[b] ?? Infinity;
    if (left <= right) a++;
    if (right <= left) b++;
    all[length++] = Math.min(left, right);
  }
  return all.subarray(0, length);
}

function uniteMany(lists: readonly Float64Array[]): Float64Array {
  const all = new Float64Array(lists.reduce((sum, { length }) => sum + length, 0));
  let length = 0;
  for (const list of lists) {
    all.set(list, length);
    length += list.length;
  }
  all.sort();
  return all.filter((id, at) => id !== all[at - 1]);
}

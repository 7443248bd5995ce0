/**
 * Posting blocks: the documents of a segment that contain a term, and the positions in their text, as bytes. Two values, so that a query that
 * needs no positions never reads any:
 *
 * - `documents`: for each document, in the order of ids, the distance to the previous id and the number of bytes of its positions;
 * - `places`: for each document its positions in the text, each as the distance to the previous one.
 *
 * All numbers are varints, seven bits a byte, lowest first. Lists without positions (identifiers, conversations) have only the ids.
 *
 * Invariant: ids and positions grow strictly. A block that breaks this, or ends inside a number, is damaged and refused.
 */

/** Above this, bit operations would lose bits. */
const MAX_SMALL = 0x0fff_ffff;
const FIRST_BYTES = 8;

/** A growing byte buffer. */
class VarintWriter {
  #bytes = new Uint8Array(FIRST_BYTES);
  length = 0;

  write(value: number): void {
    let rest = value;
    while (rest > MAX_SMALL) {
      this.#push((rest % 128) | 0x80);
      rest = Math.floor(rest / 128);
    }
    while (rest > 0x7f) {
      this.#push((rest & 0x7f) | 0x80);
      rest >>>= 7;
    }
    this.#push(rest);
  }

  append(bytes: Uint8Array): void {
    while (this.length + bytes.length > this.#bytes.length) this.#grow();
    this.#bytes.set(bytes, this.length);
    this.length += bytes.length;
  }

  finish(): Uint8Array {
    return this.#bytes.subarray(0, this.length);
  }

  #push(byte: number): void {
    if (this.length === this.#bytes.length) this.#grow();
    this.#bytes[this.length++] = byte;
  }

  #grow(): void {
    const grown = new Uint8Array(2 * this.#bytes.length);
    grown.set(this.#bytes);
    this.#bytes = grown;
  }
}

export interface PostingBlock {
  readonly documents: Uint8Array;
  readonly places: Uint8Array;
}

/** Writes the block of one term. Documents are added in order of ids, the positions of each in order. */
export class PostingWriter {
  readonly #documents = new VarintWriter();
  readonly #places = new VarintWriter();
  #lastId = 0;
  /** The current document: where its positions begin, and the last of them. */
  #id = 0;
  #start = 0;
  #lastPlace = 0;

  addPlace(id: number, place: number): void {
    if (id !== this.#id) this.#begin(id);
    this.#places.write(place - this.#lastPlace);
    this.#lastPlace = place;
  }

  /** A document with its positions as encoded in another block. */
  addDocument(id: number, places: Uint8Array): void {
    this.#begin(id);
    this.#places.append(places);
  }

  finish(): PostingBlock {
    this.#end();
    return { documents: this.#documents.finish(), places: this.#places.finish() };
  }

  #begin(id: number): void {
    this.#end();
    this.#id = id;
    this.#start = this.#places.length;
    this.#lastPlace = 0;
  }

  #end(): void {
    if (this.#id === 0) return;
    this.#documents.write(this.#id - this.#lastId);
    this.#documents.write(this.#places.length - this.#start);
    this.#lastId = this.#id;
    this.#id = 0;
  }
}

/** The documents of a block. */
export interface BlockDocuments {
  /** In order. */
  readonly ids: Float64Array;
  /** Where the positions of each begin; one more entry is the end of the last ones. */
  readonly starts: Uint32Array;
}

export function decodeDocuments(bytes: Uint8Array): BlockDocuments {
  const count = countNumbers(bytes) / 2;
  if (!Number.isInteger(count)) throw damaged();
  const ids = new Float64Array(count);
  const starts = new Uint32Array(count + 1);
  let id = 0;
  let start = 0;
  let next = 0;
  for (let at = 0; at < count; at++) {
    // Nearly all numbers take one byte; calling a function for each would cost more than reading it.
    const step = bytes[next] ?? 0;
    if (step < 0x80) next++;
    else next = endOf(bytes, next);
    id += step < 0x80 ? step : readVarint(bytes, next);
    const size = bytes[next] ?? 0;
    if (size < 0x80) next++;
    else next = endOf(bytes, next);
    start += size < 0x80 ? size : readVarint(bytes, next);
    if (step === 0) throw damaged();
    ids[at] = id;
    starts[at + 1] = start;
  }
  return { ids, starts };
}

export function encodeIds(ids: Iterable<number>): Uint8Array {
  const writer = new VarintWriter();
  let last = 0;
  for (const id of ids) {
    writer.write(id - last);
    last = id;
  }
  return writer.finish();
}

export function decodeIds(bytes: Uint8Array): Float64Array {
  const ids = new Float64Array(countNumbers(bytes));
  let id = 0;
  let next = 0;
  for (let at = 0; at < ids.length; at++) {
    const step = bytes[next] ?? 0;
    if (step === 0) throw damaged();
    next = endOf(bytes, next);
    ids[at] = id += step < 0x80 ? step : readVarint(bytes, next);
  }
  if (next !== bytes.length) throw damaged();
  return ids;
}

/** Decodes the positions of one document into `into`, which is large enough; returns their number. */
export function decodePlaces(places: Uint8Array, start: number, end: number, into: Int32Array): number {
  let place = 0;
  let count = 0;
  for (let next = start; next < end; count++) {
    const step = places[next] ?? 0;
    next = endOf(places, next);
    into[count] = place += step < 0x80 ? step : readVarint(places, next);
  }
  return count;
}

/** A varint ends with a byte below 128. */
function countNumbers(bytes: Uint8Array): number {
  let count = 0;
  for (let at = 0; at < bytes.length; at++) count += ((bytes[at] ?? 0) >>> 7) ^ 1;
  return count;
}

/** The end of the number that begins at a byte. */
function endOf(bytes: Uint8Array, start: number): number {
  let at = start;
  while ((bytes[at] ?? 0) >= 0x80) at++;
  return at + 1;
}

/** The number of more than one byte that ends before a byte. */
function readVarint(bytes: Uint8Array, end: number): number {
  let value = bytes[end - 1] ?? 0;
  for (let at = end - 2; at >= 0 && (bytes[at] ?? 0) >= 0x80; at--)
    value = value * 128 + ((bytes[at] ?? 0) & 0x7f);
  return value;
}

const damaged = (): Error => new Error("a posting block is damaged");

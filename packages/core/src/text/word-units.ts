/** The units of words (`text/text-units.ts` has those of texts), and their hashes: the same for a word anywhere. */

let copied = new Uint16Array(1_024);

/** The units of a short text, until the next is copied. */
export function copyUnits(text: string): Uint16Array<ArrayBuffer> {
  if (text.length > copied.length) copied = new Uint16Array(text.length);
  for (let at = 0; at < text.length; at++) copied[at] = text.charCodeAt(at);
  return copied;
}

const HASH_PRIME = 0x01000193;
/** The hash of the empty sequence. */
export const HASH_SEED = 0x1b873593;

/** Extends a hash by one unit. */
export const addToHash = (hash: number, unit: number): number => Math.imul(hash ^ unit, HASH_PRIME);

/** For a table with a power of two slots: the lower bits of a hash depend only on the lower bits of its units. */
export const spreadHash = (hash: number): number => hash ^ (hash >>> 15);

/** The hash of units, or of bytes. */
export function hashUnits(units: Uint16Array | Uint8Array, start: number, end: number): number {
  let hash = HASH_SEED;
  for (let at = start; at < end; at++) hash = addToHash(hash, units[at] as number);
  return hash;
}

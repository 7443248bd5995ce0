/** Hashes of names, for tables of millions of them: two independent FNV-1a hashes with different starts and factors, mixed at the end. */

export const hashHigh = (name: string): number => hash(name, 0x811c9dc5, 0x01000193);
export const hashLow = (name: string): number => hash(name, 0x9e3779b1, 0x85ebca6b);

function hash(name: string, start: number, factor: number): number {
  let value = start;
  for (let at = 0; at < name.length; at += 1) value = Math.imul(value ^ name.charCodeAt(at), factor);
  value = Math.imul(value ^ (value >>> 16), 0xc2b2ae35);
  return value ^ (value >>> 13);
}

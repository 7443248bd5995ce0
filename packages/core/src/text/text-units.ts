/**
 * A text as an array of its UTF-16 units. Reading a unit of an array is a load, of a string often a call; texts are read unit by unit
 * several times, so each is first copied into an array that is reused for the next.
 *
 * Invariant: two zeros follow the last unit, so that code that looks ahead needs no check for the end.
 */
import { endianness } from "node:os";

const IS_BIG_ENDIAN = endianness() === "BE";
const SENTINELS = 2;
/** Fits nearly every text; a longer array is not kept. */
const KEPT_UNITS = 1 << 16;

let spare: TextUnits | null = null;

/** The units of one text, and the same memory as bytes. */
class TextUnits {
  readonly units: Uint16Array<ArrayBuffer>;
  readonly bytes: Buffer<ArrayBuffer>;
  /** How many units the text has. */
  length = 0;

  constructor(capacity: number) {
    this.units = new Uint16Array(capacity);
    this.bytes = Buffer.from(this.units.buffer);
  }
}

export type { TextUnits };

/** The units of a text, until they are returned with {@link returnUnits}. */
export function takeUnits(text: string): TextUnits {
  const taken = takeRoom(text.length + SENTINELS);
  const { units, bytes } = taken;
  const { length } = text;
  bytes.write(text, "utf16le");
  if (IS_BIG_ENDIAN) bytes.subarray(0, 2 * length).swap16();
  units[length] = 0;
  units[length + 1] = 0;
  taken.length = length;
  return taken;
}

function takeRoom(needed: number): TextUnits {
  if (spare === null || needed > spare.units.length) return new TextUnits(Math.max(needed, KEPT_UNITS));
  const taken = spare;
  spare = null;
  return taken;
}

export function returnUnits(taken: TextUnits): void {
  if (taken.units.length <= KEPT_UNITS) spare = taken;
}

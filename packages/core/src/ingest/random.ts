/**
 * Random bytes from a pool: asking the system for the sixteen of every message would cost more than hashing it. No byte is ever used twice.
 */
import { randomBytes } from "node:crypto";

const STOCK_BYTES = 4_096;
let stock = new Uint8Array();
let taken = 0;

export function drawRandom(size: number): Uint8Array {
  if (size > STOCK_BYTES) return randomBytes(size);
  if (taken + size > stock.length) {
    stock = randomBytes(STOCK_BYTES);
    taken = 0;
  }
  return stock.subarray(taken, (taken += size));
}

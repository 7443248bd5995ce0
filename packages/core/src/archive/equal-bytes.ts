/** Compares stored bytes with expected ones; anything stored instead of bytes is simply not equal. */
export function equalBytes(expected: Uint8Array, stored: unknown): boolean {
  return stored instanceof Uint8Array && Buffer.compare(expected, stored) === 0;
}

/** A compressor that is kept gives what one made for each body gives. */
import { constants, zstdCompressSync, zstdDecompressSync } from "node:zlib";
import { fc } from "@lossless/testkit/properties.ts";
import { expect, test } from "vitest";
import { DICTIONARIES } from "../../src/store/body-dictionary.ts";
import { Compressor } from "../../src/store/compressor.ts";

const dictionary = DICTIONARIES[0] as Uint8Array;
const compressAlone = (bytes: Uint8Array): Buffer =>
  zstdCompressSync(bytes, { dictionary, params: { [constants.ZSTD_c_compressionLevel]: 3 } });

test("gives each body a frame of its own, whatever came before", () => {
  const compressor = new Compressor(dictionary, 3);
  const text = fc.string({
    unit: fc.constantFrom('"', "{", "type", "text", "é", " ", "\\n"),
    maxLength: 4_000,
  });
  const body = fc.oneof(
    text.map((value) => Buffer.from(value)),
    fc.uint8Array({ maxLength: 20_000 }),
  );
  fc.assert(
    fc.property(body, (bytes) => {
      const compressed = compressor.compress(bytes);
      expect(Buffer.compare(compressed, compressAlone(bytes))).toBe(0);
      expect(Buffer.compare(zstdDecompressSync(compressed, { dictionary }), bytes)).toBe(0);
    }),
  );
});

test("takes bodies of every length, one after the other", () => {
  const compressor = new Compressor(dictionary, 3);
  const held: [Uint8Array, Uint8Array][] = [];
  for (const length of [0, 1, 700, 16_384, 262_144, 262_145, 3_000_000, 700]) {
    const bytes = Buffer.alloc(length, '{"type":"message","id":"0123456789"}');
    held.push([bytes, compressor.compress(bytes)]);
  }
  // Looked at afterwards: a later body must not change an earlier one.
  for (const [bytes, compressed] of held)
    expect(Buffer.compare(zstdDecompressSync(compressed, { dictionary }), bytes)).toBe(0);
});

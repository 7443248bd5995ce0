/** How bodies are kept: as they are when short, compressed otherwise. Each body stands alone; none needs another to be read. */
import { zstdDecompressSync } from "node:zlib";
import { must } from "../model/errors.ts";
import { DICTIONARIES } from "./body-dictionary.ts";
import { Compressor } from "./compressor.ts";

/** Stored in `messages.encoding`. A code above this one is zstd with the dictionary of that version. */
export const PLAIN = 0;
const CURRENT_VERSION = DICTIONARIES.length;

/** Reading a compressed body has a fixed price, whatever its length; shorter bodies are a fortieth of real transcripts. */
const COMPRESS_ABOVE_BYTES = 640;
/** Level 5 gives 4 % less on real transcripts and takes half as long again. */
const LEVEL = 3;

export interface EncodedBody {
  readonly body: Uint8Array;
  readonly encoding: number;
}

let compressor: Compressor | null = null;

export function encodeBody(bytes: Uint8Array): EncodedBody {
  if (bytes.byteLength > COMPRESS_ABOVE_BYTES) {
    compressor ??= new Compressor(must(DICTIONARIES[CURRENT_VERSION - 1], "the dictionary"), LEVEL);
    const compressed = compressor.compress(bytes);
    if (compressed.byteLength < bytes.byteLength) return { body: compressed, encoding: CURRENT_VERSION };
  }
  return { body: bytes, encoding: PLAIN };
}

/** A body decompresses into pieces of this size, and keeps the last one whole however little of it is used. */
const MAX_CHUNK_BYTES = 16_384;
const MIN_CHUNK_BYTES = 64;

/** `expectedBytes` saves memory where many short bodies are read: how long the result is, as far as that is known. */
export function decodeBody({ body, encoding }: EncodedBody, expectedBytes = MAX_CHUNK_BYTES): Uint8Array {
  if (encoding === PLAIN) return body;
  const dictionary = DICTIONARIES[encoding - 1];
  if (!dictionary) throw new Error(`its body has the unknown encoding ${encoding}`);
  const chunkSize = Math.max(MIN_CHUNK_BYTES, Math.min(MAX_CHUNK_BYTES, expectedBytes));
  return zstdDecompressSync(body, { dictionary, chunkSize });
}

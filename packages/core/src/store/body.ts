/** How bodies are stored: as they are when short, compressed otherwise. Each body is independent; none is needed to read another. */
import { zstdDecompressSync } from "node:zlib";
import { must } from "../model/errors.ts";
import { DICTIONARIES } from "./body-dictionary.ts";
import { Compressor } from "./compressor.ts";

/** Stored in `messages.encoding`. A code above this one is zstd with the dictionary of that version. */
export const PLAIN = 0;
const CURRENT_VERSION = DICTIONARIES.length;

/** Reading a compressed body has a fixed cost, whatever its length; shorter bodies are a fortieth of real transcripts. */
const COMPRESS_ABOVE_BYTES = 640;
/** Level 5 saves 4 % on real transcripts and takes half as long again. */
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

/** A body decompresses into pieces of this size, and keeps the whole last one however little of it is used. */
const MAX_CHUNK_BYTES = 16_384;
const MIN_CHUNK_BYTES = 64;

/** `expectedBytes` saves memory when many short bodies are read: the length of the result, as far as known. */
export function decodeBody({ body, encoding }: EncodedBody, expectedBytes = MAX_CHUNK_BYTES): Uint8Array {
  if (encoding === PLAIN) return body;
  const dictionary = DICTIONARIES[encoding - 1];
  if (!dictionary) throw new Error(`its body has the unknown encoding ${encoding}`);
  const chunkSize = Math.max(MIN_CHUNK_BYTES, Math.min(MAX_CHUNK_BYTES, expectedBytes));
  return zstdDecompressSync(body, { dictionary, chunkSize });
}

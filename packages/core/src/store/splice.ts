/**
 * Cuts payloads out of a body and puts them back. A payload's file has readable content (text, or decoded base64); its encoding says how
 * that content becomes, byte for byte, what was in the message. Both directions are here, so that a cut is only made after its way back was
 * tested.
 */
import type { PayloadEncoding } from "./rows.ts";

export interface Splice {
  /** Place in the arrival bytes. */
  readonly at: number;
  readonly length: number;
  readonly encoding: PayloadEncoding;
  readonly content: Uint8Array;
}

/** The bytes a payload had inside the message. */
export function encodePayload(content: Uint8Array, encoding: PayloadEncoding): Buffer {
  const buffer = Buffer.from(content.buffer, content.byteOffset, content.byteLength);
  switch (encoding) {
    case "raw":
      return buffer;
    case "base64":
      return Buffer.from(buffer.toString("base64"), "latin1");
    case "json":
      return Buffer.from(JSON.stringify(buffer.toString("utf8")).slice(1, -1));
    case "json-ascii":
      return Buffer.from(escapeNonAscii(JSON.stringify(buffer.toString("utf8")).slice(1, -1)), "latin1");
  }
}

function escapeNonAscii(text: string): string {
  return text.replaceAll(
    /[\u007f-\uffff]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}

/** The body with the ranges removed. Ranges are sorted and do not overlap. */
export function cutRanges(bytes: Uint8Array, ranges: readonly { at: number; length: number }[]): Buffer {
  const kept: Uint8Array[] = [];
  let from = 0;
  for (const { at, length } of ranges) {
    kept.push(bytes.subarray(from, at));
    from = at + length;
  }
  kept.push(bytes.subarray(from));
  return Buffer.concat(kept);
}

/** The arrival bytes, rebuilt from the body and its payloads. */
export function spliceRanges(body: Uint8Array, splices: readonly Splice[]): Uint8Array {
  if (splices.length === 0) return body;
  const pieces: Uint8Array[] = [];
  let from = 0;
  let restored = 0;
  for (const splice of [...splices].sort((a, b) => a.at - b.at)) {
    const upTo = splice.at - restored;
    pieces.push(body.subarray(from, upTo), encodePayload(splice.content, splice.encoding));
    from = upTo;
    restored += splice.length;
  }
  pieces.push(body.subarray(from));
  return Buffer.concat(pieces);
}

/**
 * A part of a message as people read it: its text, perhaps cut, what a call does, and its picture. Only picture types that a browser displays
 * and never executes are allowed.
 */
import type { PartView } from "@lossless/core";
import { isObject } from "@lossless/core/doors";
import { readCall } from "./tool-call.ts";
import type { ReadableCall } from "./tool-call.ts";

export interface ReadablePart {
  readonly ordinal: number;
  readonly type: PartView["type"];
  readonly text: string;
  /** Length of the whole text. */
  readonly chars: number;
  readonly toolCallId: string | null;
  readonly toolName: string | null;
  readonly isError: boolean;
  readonly mimeType: string | null;
  readonly fileName: string | null;
  readonly payloadBytes: number | null;
  /** Whether its picture is available. */
  readonly hasImage: boolean;
  readonly call: ReadableCall | null;
}

export function readPart(bytes: Uint8Array, part: PartView, maxChars: number): ReadablePart {
  return {
    ordinal: part.ordinal,
    type: part.type,
    text: part.text.slice(0, maxChars),
    chars: part.text.length,
    toolCallId: part.toolCallId ?? null,
    toolName: part.toolName ?? null,
    isError: part.isError ?? false,
    mimeType: part.mimeType ?? null,
    fileName: part.fileName ?? null,
    payloadBytes: part.payloadBytes ?? null,
    hasImage: hasPicture(bytes, part),
    call: part.type === "tool_call" ? readCall(parseBlock(bytes, part)) : null,
  };
}

/** A line of the host that has no parts, as it is stored, under the type it names. */
export function readBareLine(bytes: Uint8Array, maxChars: number): ReadablePart {
  const text = Buffer.from(bytes).toString("utf8").trim();
  return {
    ordinal: 0,
    type: "other",
    text: text.slice(0, maxChars),
    chars: text.length,
    toolCallId: null,
    toolName: readType(text),
    isError: false,
    mimeType: null,
    fileName: null,
    payloadBytes: null,
    hasImage: false,
    call: null,
  };
}

function readType(text: string): string | null {
  try {
    const line: unknown = JSON.parse(text);
    return isObject(line) && typeof line["type"] === "string" ? line["type"] : null;
  } catch {
    // Not JSON: it has no type.
    return null;
  }
}

export interface Picture {
  readonly mimeType: string;
  readonly bytes: Buffer;
}

/** Detected by file signature: the type that the message claims is not trusted. No SVG, which can hold scripts. */
const SIGNATURES: readonly (readonly [mimeType: string, hex: RegExp])[] = [
  ["image/png", /^89504e470d0a1a0a/],
  ["image/jpeg", /^ffd8ff/],
  ["image/gif", /^474946383[79]61/],
  ["image/webp", /^52494646.{8}57454250/],
];

/** The picture of a part, if there is one that may be shown. */
export function readPicture(bytes: Uint8Array, part: PartView): Picture | null {
  const data = findBase64(parseBlock(bytes, part));
  const mimeType = findType(data);
  return data === null || mimeType === null ? null : { mimeType, bytes: Buffer.from(data, "base64") };
}

const hasPicture = (bytes: Uint8Array, part: PartView): boolean =>
  part.type === "image" &&
  (part.payloadBytes ?? 0) > 0 &&
  findType(findBase64(parseBlock(bytes, part))) !== null;

/** The first bytes are enough. */
function findType(data: string | null): string | null {
  const head = Buffer.from((data ?? "").slice(0, 64), "base64").toString("hex");
  return SIGNATURES.find(([, hex]) => hex.test(head))?.[0] ?? null;
}

function parseBlock(bytes: Uint8Array, { at, length }: PartView): unknown {
  try {
    return JSON.parse(Buffer.from(bytes.buffer, bytes.byteOffset + at, length).toString("utf8")) as unknown;
  } catch {
    // Bytes that are not JSON hold neither a picture nor arguments.
    return null;
  }
}

/** Hosts put the data under `data`, `source.data`, `image_url.url`, …: take the longest text that can be base64. */
function findBase64(block: unknown): string | null {
  let best: string | null = null;
  const pending: unknown[] = [block];
  for (let value = pending.pop(); value !== undefined; value = pending.pop()) {
    if (typeof value === "string") {
      const data = value.startsWith("data:") ? value.slice(value.indexOf(",") + 1) : value;
      if (data.length > (best?.length ?? 15) && /^[A-Za-z0-9+/_=\r\n-]{16}/.test(data)) best = data;
    } else if (Array.isArray(value)) pending.push(...value.slice(0, 100));
    else if (isObject(value)) pending.push(...Object.values(value));
  }
  return best;
}

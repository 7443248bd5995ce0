/**
 * Readable text for values that are not text: tool arguments, structured results, unknown blocks. It is meant for a search index and a
 * summariser, so keys and values stay and JSON's punctuation is dropped. Iterative, hence safe for any depth; base64 is never included.
 */
import type { ByteRange } from "../model/message.ts";
import { hideBase64, type ReadableText } from "./base64.ts";
import type { JsonObject } from "../text/json-object.ts";
import { serializeExact } from "./json-text.ts";

/** The first of the given members that is a non-empty string. */
export function firstString(object: JsonObject, ...keys: readonly string[]): string | undefined {
  for (const key of keys) {
    const value = object[key];
    if (typeof value === "string" && value !== "") return value;
  }
  return undefined;
}

interface Pending {
  readonly key: string | null;
  readonly value: unknown;
}

/** One line per member (`key: value`), lists of scalars on one line, nested members on the lines below. */
export function renderValue(root: unknown): ReadableText {
  const lines: string[] = [];
  let hiddenBytes = 0;
  const pending: Pending[] = [{ key: null, value: root }];
  const add = (key: string | null, text: string): void => {
    const readable = hideBase64(text);
    hiddenBytes += readable.hiddenBytes;
    lines.push(key === null ? readable.text : `${key}: ${readable.text}`);
  };
  for (let item = pending.pop(); item; item = pending.pop()) {
    const { key, value } = item;
    if (!isNested(value)) {
      if (value !== null) add(key, String(value));
      else if (key !== null) lines.push(key);
    } else if (Array.isArray(value) && value.length > 0 && !value.some(isNested)) {
      add(key, value.join(" "));
    } else {
      if (key !== null) lines.push(key);
      pushChildren(pending, value);
    }
  }
  return { text: lines.join("\n"), hiddenBytes };
}

function isNested(value: unknown): value is object {
  return typeof value === "object" && value !== null;
}

/** Children are pushed last first, so that they are popped in order. */
function pushChildren(pending: Pending[], value: object): void {
  if (Array.isArray(value)) {
    for (let i = value.length - 1; i >= 0; i--) pending.push({ key: null, value: value[i] as unknown });
    return;
  }
  const keys = Object.keys(value);
  for (let i = keys.length - 1; i >= 0; i--) {
    const key = keys[i] as string;
    pending.push({ key, value: (value as JsonObject)[key] });
  }
}

/** Characters of an unknown value that are shown. */
const MAX_SHOWN_CHARS = 4096;
/** Larger values are shown as written, without serialising all of them again for a few lines. */
const MAX_COMPACT_BYTES = 65_536;

/** Compact JSON of a value, bounded. Empty without the bytes: large values are shown as written. */
export function renderJson(bytes: Buffer | null, range: ByteRange, value: unknown): ReadableText {
  if (bytes === null) return { text: "", hiddenBytes: 0 };
  const json = range.length > MAX_COMPACT_BYTES ? null : writeJson(value);
  if (json === null) return renderBytes(bytes, range);
  const readable = hideBase64(json);
  return { text: clipText(readable.text), hiddenBytes: readable.hiddenBytes };
}

/** Null for a number that JSON text can contain and JavaScript cannot, like 1e999. */
function writeJson(value: unknown): string | null {
  try {
    return serializeExact(value);
  } catch {
    return null;
  }
}

/** The beginning of bytes that are not JSON, decoded as far as possible. */
export function renderBytes(bytes: Buffer, range: ByteRange): ReadableText {
  const end = range.at + Math.min(range.length, MAX_SHOWN_CHARS);
  const isCut = range.length > MAX_SHOWN_CHARS;
  const readable = hideBase64(bytes.toString("utf8", range.at, end));
  // A cut inside a character leaves replacement characters at the end.
  const text = isCut ? `${readable.text.replace(/\ufffd{1,3}$/, "")}…` : readable.text;
  return { text, hiddenBytes: readable.hiddenBytes };
}

function clipText(text: string): string {
  if (text.length <= MAX_SHOWN_CHARS) return text;
  const last = text.charCodeAt(MAX_SHOWN_CHARS - 1);
  const splitsPair = last >= 0xd800 && last < 0xdc00;
  return `${text.slice(0, MAX_SHOWN_CHARS - (splitsPair ? 1 : 0))}…`;
}

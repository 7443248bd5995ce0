/**
 * Writes a value as JSON text that parses back deeply equal, so that a message passed as an object can be stored as bytes and returned.
 * `JSON.stringify` alone is not enough: it loses `-0`, turns `NaN` into null, silently drops functions and overflows the stack on deep
 * values. A cheap check decides: plain values take the native path, all others the careful writer below, which tracks its path and names
 * the member it cannot write. Invariant: either the text parses back to the input, or an `invalid_input` error names the offending member.
 */
import { types } from "node:util";
import { EngineError } from "../model/errors.ts";

/** Deeper values take the careful writer, which uses no stack. */
const NATIVE_DEPTH = 500;

/**
 * JSON text of any JSON value. As in JSON, `undefined` members are left out, `undefined` elements become null, and
 * `toJSON` is honoured.
 *
 * @example serializeExact({ b: -0, a: "\ud800" }) // '{"b":-0,"a":"\\ud800"}'
 */
export function serializeExact(value: unknown): string {
  try {
    return isPlain(value, 0) ? JSON.stringify(value) : writeCarefully(value);
  } catch (error) {
    if (error instanceof RangeError) {
      throw new EngineError("invalid_input", "cannot write message as JSON: the text would be too long", {
        hint: "Split the message; one message may contain about 500 million characters.",
        cause: error,
      });
    }
    throw error;
  }
}

/** True when `JSON.stringify` is known to write the value without loss. */
function isPlain(value: unknown, depth: number): boolean {
  switch (typeof value) {
    case "string":
    case "boolean":
      return true;
    case "number":
      return Number.isFinite(value) && !Object.is(value, -0);
    case "object":
      return value === null || (depth < NATIVE_DEPTH && isPlainObject(value, depth + 1));
    default:
      return false;
  }
}

function isPlainObject(value: object, depth: number): boolean {
  if (Array.isArray(value)) {
    if ("toJSON" in value) return false;
    for (const element of value) if (!isPlain(element, depth)) return false;
    return true;
  }
  const prototype: unknown = Object.getPrototypeOf(value);
  if ((prototype !== Object.prototype && prototype !== null) || "toJSON" in value) return false;
  const members = value as Record<string, unknown>;
  for (const key of Object.keys(members)) {
    const member = members[key];
    if (member !== undefined && !isPlain(member, depth)) return false;
  }
  return true;
}

/** An object or array that is being written. `keys` is null for an array. */
interface Frame {
  readonly value: object;
  readonly keys: readonly string[] | null;
  readonly size: number;
  next: number;
  isEmpty: boolean;
}

function writeCarefully(root: unknown): string {
  const out: string[] = [];
  const frames: Frame[] = [];
  const open = new Set<object>();

  /** Writes a scalar or opens a frame; false when JSON omits the value. */
  const write = (raw: unknown, key: string, prefix: string): boolean => {
    const value = toJsonValue(raw, key);
    if (value === undefined) return false;
    if (typeof value !== "object" || value === null) {
      out.push(prefix, writeScalar(value, frames));
      return true;
    }
    if (open.has(value)) refuse(frames, "is a circular reference");
    if (types.isMap(value) || types.isSet(value)) refuse(frames, `is a ${value.constructor.name}`);
    const keys = Array.isArray(value) ? null : Object.keys(value);
    out.push(prefix, keys ? "{" : "[");
    open.add(value);
    frames.push({
      value,
      keys,
      size: keys ? keys.length : (value as unknown[]).length,
      next: 0,
      isEmpty: true,
    });
    return true;
  };

  if (!write(root, "", "")) refuse(frames, "is undefined");
  for (let frame = frames.at(-1); frame; frame = frames.at(-1)) {
    if (frame.next === frame.size) {
      out.push(frame.keys ? "}" : "]");
      open.delete(frame.value);
      frames.pop();
      continue;
    }
    writeNext(frame, write);
  }
  return out.join("");
}

function writeNext(frame: Frame, write: (raw: unknown, key: string, prefix: string) => boolean): void {
  const comma = frame.isEmpty ? "" : ",";
  const index = frame.next++;
  if (frame.keys === null) {
    const element = (frame.value as unknown[])[index];
    frame.isEmpty = false;
    if (!write(element, String(index), comma)) write(null, String(index), comma);
    return;
  }
  const key = frame.keys[index] as string;
  const member = (frame.value as Record<string, unknown>)[key];
  if (write(member, key, `${comma}${JSON.stringify(key)}:`)) frame.isEmpty = false;
}

/** What JSON would write for a value: the result of `toJSON`, or the content of a boxed scalar. */
function toJsonValue(raw: unknown, key: string): unknown {
  let value = raw;
  if (
    typeof value === "object" &&
    value !== null &&
    "toJSON" in value &&
    typeof value.toJSON === "function"
  ) {
    value = value.toJSON(key) as unknown;
  }
  return types.isBoxedPrimitive(value) ? (value as object).valueOf() : value;
}

function writeScalar(value: unknown, frames: readonly Frame[]): string {
  switch (typeof value) {
    case "number":
      if (!Number.isFinite(value)) refuse(frames, `is ${value}`);
      return Object.is(value, -0) ? "-0" : String(value);
    case "bigint":
      return refuse(frames, "is a BigInt");
    case "function":
    case "symbol":
      return refuse(frames, `is a ${typeof value}`);
    default:
      return JSON.stringify(value);
  }
}

function refuse(frames: readonly Frame[], cause: string): never {
  throw new EngineError("invalid_input", `cannot write message as JSON: ${formatPath(frames)} ${cause}`, {
    hint: "Pass only JSON values: objects, arrays, strings, finite numbers, booleans and null.",
  });
}

/** The path being written, as `$.content[2].text`. Very deep paths show their end. */
function formatPath(frames: readonly Frame[]): string {
  const shown = frames.slice(-20);
  const steps = shown.map(({ keys, next }) => {
    if (keys === null) return `[${next - 1}]`;
    const key = keys[next - 1] as string;
    return /^[\p{L}_$][\p{L}\p{N}_$]*$/u.test(key) ? `.${key}` : `[${JSON.stringify(key)}]`;
  });
  return (shown.length < frames.length ? "$…" : "$") + steps.join("");
}

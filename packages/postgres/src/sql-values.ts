/**
 * Converts values to and from SQL: the only place where an SQL value gets its JavaScript type. PostgreSQL text cannot contain a zero character
 * or half of a surrogate pair, so these, and the escape character, are written as numbers.
 *
 * Invariant: a declared column is read as it was written: integers as numbers, bytes in their own buffer, texts complete.
 */
import pg from "pg";

export type SqlValue = number | string | boolean | Uint8Array | null | readonly (number | string | null)[];

const ESCAPE = "\u0001";
// eslint-disable-next-line no-control-regex
const NEEDS_ESCAPE = /[\0\u0001]|\p{Surrogate}/gu;
// eslint-disable-next-line no-control-regex
const ESCAPED = /\u0001([0-9a-f]{4})/g;

/** A text as the server stores it. Equal texts stay equal, and different ones different. */
const escapeText = (text: string): string =>
  text.includes("\0") || text.includes(ESCAPE) || !text.isWellFormed()
    ? text.replaceAll(NEEDS_ESCAPE, (found) => ESCAPE + found.charCodeAt(0).toString(16).padStart(4, "0"))
    : text;

const unescapeText = (text: string): string =>
  text.includes(ESCAPE)
    ? text.replaceAll(ESCAPED, (_, code: string) => String.fromCharCode(Number.parseInt(code, 16)))
    : text;

/** A value as it is sent: as text, or bytes as they are. */
export type Parameter = string | Buffer | null;

export function toParameter(value: SqlValue): Parameter {
  if (value === null) return null;
  if (typeof value === "string") return escapeText(value);
  if (value instanceof Uint8Array) return Buffer.from(value.buffer, value.byteOffset, value.byteLength);
  return isList(value) ? toList(value) : String(value);
}

/** What a text in a list may not contain as it is. */
// eslint-disable-next-line no-control-regex
const SPECIAL = /["\\\0\u0001\ud800-\udfff]/;

function toList(items: readonly (number | string | null)[]): string {
  let list = "";
  for (const item of items) {
    const text = typeof item === "string" && SPECIAL.test(item) ? escapeItem(item) : item;
    list += `${list === "" ? "" : ","}${typeof text === "string" ? `"${text}"` : (text ?? "NULL")}`;
  }
  return `{${list}}`;
}

const escapeItem = (text: string): string => escapeText(text).replaceAll(/["\\]/g, String.raw`\$&`);

/** A value of a column of any type, which is jsonb. */
export function toJson(value: number | string | Uint8Array): string {
  if (value instanceof Uint8Array) throw new Error("a column of any type cannot hold bytes");
  return JSON.stringify(typeof value === "string" ? escapeText(value) : value);
}

const isList = (value: SqlValue): value is readonly (number | string | null)[] => Array.isArray(value);

/** In its own buffer: the driver's read buffer is shared, and would be copied as a whole to another thread. */
const parseBytes = (text: string): Uint8Array => new Uint8Array(Buffer.from(text.slice(2), "hex"));

/** By type OID: 16 bool, 17 bytea, 20 int8, 21 int2, 23 int4, 25 text, 700 and 701 floats, 1700 numeric, 3802 jsonb. */
const PARSERS: Readonly<Record<number, (text: string) => unknown>> = {
  16: (text) => text === "t",
  17: parseBytes,
  20: Number,
  21: Number,
  23: Number,
  25: unescapeText,
  700: Number,
  701: Number,
  1700: Number,
  3802: (text) => unescapeJson(JSON.parse(text)),
};

const unescapeJson = (value: unknown): unknown => (typeof value === "string" ? unescapeText(value) : value);

/** Any other type is returned as text. */
export const SQL_TYPES: pg.CustomTypesConfig = {
  getTypeParser: (oid) => PARSERS[oid] ?? String,
};

/**
 * Lines in which a host records its requests: copies of what it sent, names of tools, costs. Their content is also in other lines, so they
 * are stored like any other line but never found by a search. Decided only here, because `verify` derives it again from the bytes.
 */
import { isObject } from "../text/json-object.ts";

/**
 * Claude Code's. A line that can be the only one with somebody's words, such as the `queue-operation` of a waiting prompt, is not included.
 */
export const BOOKKEEPING_TYPES = [
  "api-request",
  "api-request-blob",
  "api-request-shape",
  "atis-latch",
  "cost-state",
  "tools-used",
] as const;

const TYPES: ReadonlySet<unknown> = new Set(BOOKKEEPING_TYPES);

export const isBookkeeping = (line: unknown): boolean => isObject(line) && TYPES.has(line["type"]);

const NAMES_TYPE = new RegExp(`"(?:${BOOKKEEPING_TYPES.join("|")})"`);

/** Whether bytes that may have had large payloads cut out can be such a line: true for all of them, and for few others. */
export const mayBeBookkeeping = (bytes: Uint8Array): boolean =>
  NAMES_TYPE.test(Buffer.from(bytes).toString("latin1"));

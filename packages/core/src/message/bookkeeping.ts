/**
 * Lines in which a host keeps books of its requests: copies of what it sent, names of tools, what it cost. Whatever is said in them stands in
 * a line of its own as well, so they are stored like any other, and never found by a search. The one place where that is decided, because
 * `verify` derives it again from the bytes.
 */
import { isObject } from "../text/json-object.ts";

/** Claude Code's. A line that can be the only one with somebody's words, such as `queue-operation` of a prompt that waits, is not among them. */
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

/** Whether bytes of which large payloads may have been cut out can be such a line: every one is among them, and few others. */
export const mayBeBookkeeping = (bytes: Uint8Array): boolean =>
  NAMES_TYPE.test(Buffer.from(bytes).toString("latin1"));

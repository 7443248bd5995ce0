/**
 * How messages are posted to the engine's thread. Objects are serialised first, because a copy between threads changes values that are not
 * plain; the bytes of all messages are in one block, which is transferred instead of copied.
 *
 * Invariant: the other side receives exactly what was posted, field by field, and the caller's own buffers stay usable.
 */
import { listBuffers } from "../bulk/index.ts";
import type { Arrival } from "../model/message.ts";
import { arrivalBytes } from "./ingest.ts";
import type { IngestRequest } from "./ingest.ts";
import type { Posted } from "./verb.ts";

export interface PostedArrivals {
  readonly messages: readonly Arrival[];
  readonly transfer: ArrayBuffer[];
}

/** Serialising a text of this length as JSON takes about a millisecond; the host's thread can copy it ten times faster. */
const LONG_TEXT_CHARS = 300_000;
/** A message with more values than this is not checked: it is long for other reasons. */
const MAX_VALUES = 2_000;

/** A batch as it is posted; the bytes of one that was prepared ahead are already in blocks. */
export function postBatch(request: IngestRequest): Posted {
  if (request.prepared !== undefined) return { request, transfer: listBuffers(request.prepared) };
  const { messages, transfer } = postArrivals(request.messages);
  return { request: { ...request, messages }, transfer };
}

export function postArrivals(arrivals: readonly Arrival[]): PostedArrivals {
  const bodies = arrivals.map((arrival) => (travelsWhole(arrival) ? null : arrivalBytes(arrival)));
  const block = new Uint8Array(bodies.reduce((sum, body) => sum + (body?.byteLength ?? 0), 0));
  let at = 0;
  const messages = arrivals.map((arrival, index) => {
    const body = bodies[index] ?? null;
    if (body === null) return arrival;
    const { message: _, ...rest } = arrival;
    block.set(body, at);
    return { ...rest, bytes: block.subarray(at, (at += body.byteLength)) };
  });
  return { messages, transfer: [block.buffer] };
}

/** True for a long message that a copy between threads leaves exactly as it is: plain objects, arrays and scalars only. */
function travelsWhole({ message, bytes }: Arrival): boolean {
  if (bytes !== undefined) return false;
  const values: unknown[] = [message];
  let chars = 0;
  for (let visited = 0; values.length > 0; visited++) {
    const value = values.pop();
    if (typeof value === "string") chars += value.length;
    else if (typeof value === "object" && value !== null) {
      if (visited > MAX_VALUES || !isPlainContainer(value)) return false;
      for (const member of Object.values(value)) values.push(member);
    } else if (typeof value === "function" || typeof value === "symbol" || typeof value === "bigint")
      return false;
  }
  return chars > LONG_TEXT_CHARS;
}

function isPlainContainer(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value);
  const isPlain = prototype === Object.prototype || prototype === null || Array.isArray(value);
  return isPlain && !("toJSON" in value);
}

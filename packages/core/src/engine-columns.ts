/**
 * Messages on their way to the engine's thread, and what became of them on the way back. A copy of an object per message would cost
 * both threads dearly, so they travel in columns, with all bytes in one block, which is handed over instead of copied.
 *
 * Invariant: unpacking gives what was packed, field by field.
 */
import type { IngestResult } from "./engine-arrivals.ts";
import type { Arrival, IngestedMessage, IngestOutcome } from "./model/message.ts";

/** A message with very long texts travels as it is: the host's thread can copy it ten times faster than write it as JSON. */
export interface PackedArrivals {
  readonly block: Uint8Array<ArrayBuffer>;
  /** Of the bytes of each message; null where the message itself is there. */
  readonly lengths: readonly (number | null)[];
  /** Those that travel whole, in order. */
  readonly whole: readonly unknown[];
  readonly eventIds: readonly Arrival["eventId"][];
  readonly eventIdKinds: readonly Arrival["eventIdKind"][];
  readonly positions: readonly Arrival["position"][];
  readonly times: readonly Arrival["createdAt"][];
  readonly hidden: readonly Arrival["hidden"][];
}

/** Writing a text of this length as JSON takes about a millisecond. */
const LONG_TEXT_CHARS = 300_000;
/** More values than this are not looked at: such a message is long for other reasons. */
const MAX_VALUES = 2_000;

export function packArrivals(
  arrivals: readonly Arrival[],
  toBytes: (arrival: Arrival) => Uint8Array,
): PackedArrivals {
  const bodies = arrivals.map((arrival) => (travelsWhole(arrival) ? null : toBytes(arrival)));
  return {
    block: joinBytes(bodies.filter((body) => body !== null)),
    lengths: bodies.map((body) => body?.byteLength ?? null),
    whole: arrivals.filter((_, index) => bodies[index] === null).map(({ message }) => message),
    eventIds: arrivals.map(({ eventId }) => eventId),
    eventIdKinds: arrivals.map(({ eventIdKind }) => eventIdKind),
    positions: arrivals.map(({ position }) => position),
    times: arrivals.map(({ createdAt }) => createdAt),
    hidden: arrivals.map(({ hidden }) => (hidden?.length === 0 ? undefined : hidden)),
  };
}

export function unpackArrivals(packed: PackedArrivals): Arrival[] {
  const take = takeBytes(packed.block);
  const whole = packed.whole.values();
  return packed.lengths.map((length, index) => {
    const [eventId, eventIdKind] = [packed.eventIds[index], packed.eventIdKinds[index]];
    const [position, createdAt] = [packed.positions[index], packed.times[index]];
    const hidden = packed.hidden[index];
    return {
      ...(length === null ? { message: whole.next().value } : { bytes: take(length) }),
      ...(eventId === undefined ? null : { eventId }),
      ...(eventIdKind === undefined ? null : { eventIdKind }),
      ...(position === undefined ? null : { position }),
      ...(createdAt === undefined ? null : { createdAt }),
      ...(hidden === undefined ? null : { hidden }),
    };
  });
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

export interface PackedResult extends Omit<IngestResult, "results"> {
  readonly messageIds: readonly number[];
  readonly seqs: readonly number[];
  readonly outcomes: readonly IngestOutcome[];
  /** Null where the message came with it. */
  readonly eventIds: readonly (string | null)[];
}

export function packResult({ results, ...rest }: IngestResult, arrivals: readonly Arrival[]): PackedResult {
  return {
    ...rest,
    messageIds: results.map(({ messageId }) => messageId),
    seqs: results.map(({ seq }) => seq),
    outcomes: results.map(({ outcome }) => outcome),
    eventIds: results.map(({ eventId }, index) => (arrivals[index]?.eventId === eventId ? null : eventId)),
  };
}

export function unpackResult(packed: PackedResult, arrivals: readonly Arrival[]): IngestResult {
  const { messageIds, seqs, outcomes, eventIds, ...rest } = packed;
  const results = messageIds.map((messageId, index): IngestedMessage => {
    const eventId = (eventIds[index] ?? arrivals[index]?.eventId) as string;
    return { messageId, eventId, seq: seqs[index] as number, outcome: outcomes[index] as IngestOutcome };
  });
  return { ...rest, results };
}

function joinBytes(pieces: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  const block = new Uint8Array(pieces.reduce((sum, piece) => sum + piece.byteLength, 0));
  let at = 0;
  for (const piece of pieces) {
    block.set(piece, at);
    at += piece.byteLength;
  }
  return block;
}

/** Hands out a block piece by piece. */
function takeBytes(block: Uint8Array): (length: number) => Uint8Array {
  let at = 0;
  return (length) => block.subarray(at, (at += length));
}

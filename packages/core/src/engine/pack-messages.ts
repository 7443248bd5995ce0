/**
 * Messages on their way to the engine's thread, and what became of them on the way back. A copy of an object per message would cost
 * both threads dearly, so they travel in columns, with all bytes in one block, which is handed over instead of copied.
 *
 * Invariant: unpacking gives what was packed, field by field.
 */
import type { IngestResult } from "./ingest.ts";
import type { Arrival, IngestedMessage, IngestOutcome } from "../model/message.ts";
import type { Writable } from "../model/writable.ts";

/** What is the same for all, as it mostly is with an import, travels in a few bytes. A value that is none stays what it is: the engine refuses it. */
type Column<T> = Float64Array | readonly T[] | null;

/** A message with very long texts travels as it is: the host's thread can copy it ten times faster than write it as JSON. */
export interface PackedArrivals {
  readonly block: Uint8Array<ArrayBuffer>;
  /** Of the bytes of each message; null where the message itself is there. */
  readonly lengths: Column<number | null>;
  /** Those that travel whole, in order. */
  readonly whole: readonly unknown[];
  readonly eventIds: readonly Arrival["eventId"][];
  readonly eventIdKinds: Column<Arrival["eventIdKind"]>;
  readonly positions: Column<Arrival["position"]>;
  readonly times: Column<Arrival["createdAt"]>;
  readonly hidden: Column<Arrival["hidden"]>;
}

/** Writing a text of this length as JSON takes about a millisecond. */
const LONG_TEXT_CHARS = 300_000;
/** More values than this are not looked at: such a message is long for other reasons. */
const MAX_VALUES = 2_000;

/** With `mayHandOver`, a block in which all the bytes lie already is handed over itself. */
export function packArrivals(
  arrivals: readonly Arrival[],
  toBytes: (arrival: Arrival) => Uint8Array,
  mayHandOver = false,
): PackedArrivals {
  const bodies = arrivals.map((arrival) => (travelsWhole(arrival) ? null : toBytes(arrival)));
  return {
    block: takeBlock(bodies, mayHandOver),
    lengths: packColumn(bodies.map((body) => body?.byteLength ?? null)),
    whole: arrivals.filter((_, index) => bodies[index] === null).map(({ message }) => message),
    eventIds: arrivals.map(({ eventId }) => eventId),
    eventIdKinds: packColumn(arrivals.map(({ eventIdKind }) => eventIdKind)),
    positions: packColumn(arrivals.map(({ position }) => position)),
    times: packColumn(arrivals.map(({ createdAt }) => createdAt)),
    hidden: packColumn(arrivals.map(({ hidden }) => (hidden?.length === 0 ? undefined : hidden))),
  };
}

/** Null for a column of nothing, numbers where there are only numbers. */
function packColumn<T>(values: readonly T[]): Column<T> {
  if (values.every((value) => value === undefined)) return null;
  const isNumbers = values.every((value) => typeof value === "number");
  return isNumbers ? Float64Array.from(values as readonly number[]) : values;
}

export function unpackArrivals(packed: PackedArrivals): Arrival[] {
  const take = takeBytes(packed.block);
  const whole = packed.whole.values();
  return packed.eventIds.map((eventId, index) => {
    const length = packed.lengths?.[index] ?? null;
    const eventIdKind = packed.eventIdKinds?.[index] as Arrival["eventIdKind"];
    const position = packed.positions?.[index];
    const createdAt = packed.times?.[index];
    const hidden = packed.hidden?.[index] as Arrival["hidden"];
    // What is absent stays absent, without an object more for each of them.
    const arrival: Writable<Arrival> =
      length === null ? { message: whole.next().value } : { bytes: take(length) };
    if (eventId !== undefined) arrival.eventId = eventId;
    if (eventIdKind !== undefined) arrival.eventIdKind = eventIdKind;
    if (position !== undefined) arrival.position = position;
    if (createdAt !== undefined) arrival.createdAt = createdAt;
    if (hidden !== undefined) arrival.hidden = hidden;
    return arrival;
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
  readonly messageIds: Float64Array;
  readonly seqs: Float64Array;
  /** One for all, where they are all the same. */
  readonly outcomes: IngestOutcome | readonly IngestOutcome[];
  /** Undefined where the message came with it. */
  readonly eventIds: Column<string | undefined>;
}

export function packResult({ results, ...rest }: IngestResult, arrivals: readonly Arrival[]): PackedResult {
  return {
    ...rest,
    messageIds: Float64Array.from(results, ({ messageId }) => messageId),
    seqs: Float64Array.from(results, ({ seq }) => seq),
    outcomes: packOutcomes(results.map(({ outcome }) => outcome)),
    eventIds: packColumn(
      results.map(({ eventId }, index) => (arrivals[index]?.eventId === eventId ? undefined : eventId)),
    ),
  };
}

function packOutcomes(outcomes: readonly IngestOutcome[]): PackedResult["outcomes"] {
  const [first] = outcomes;
  return first !== undefined && outcomes.every((outcome) => outcome === first) ? first : outcomes;
}

/** `given` are the event ids that the messages came with. */
export function unpackResult(packed: PackedResult, given: PackedArrivals["eventIds"]): IngestResult {
  const { messageIds, seqs, outcomes, eventIds, ...rest } = packed;
  const results = Array.from(messageIds, (messageId, index): IngestedMessage => {
    const eventId = (eventIds?.[index] ?? given[index]) as string;
    const outcome = (typeof outcomes === "string" ? outcomes : outcomes[index]) as IngestOutcome;
    return { messageId, eventId, seq: seqs[index] as number, outcome };
  });
  return { ...rest, results };
}

function takeBlock(bodies: readonly (Uint8Array | null)[], mayHandOver: boolean): Uint8Array<ArrayBuffer> {
  const pieces = bodies.filter((body) => body !== null);
  return (mayHandOver ? findBlock(pieces) : null) ?? joinBytes(pieces);
}

/** The block that pieces fill from its beginning, one behind the other. */
function findBlock(pieces: readonly Uint8Array[]): Uint8Array<ArrayBuffer> | null {
  const [first] = pieces;
  if (first === undefined || !(first.buffer instanceof ArrayBuffer)) return null;
  let end = 0;
  for (const { buffer, byteOffset, byteLength } of pieces) {
    if (buffer !== first.buffer || byteOffset !== end) return null;
    end += byteLength;
  }
  return new Uint8Array(first.buffer, 0, end);
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

/**
 * Prepared messages for another thread, in columns: all bytes and terms in one block, which is transferred instead of copied, all numbers
 * in one array. An object per message would cost both threads more than storing it, and data outside the heap is not scanned by the garbage
 * collector while a batch fills up.
 *
 * Invariant: unpacking gives what was packed, field by field.
 */
import { ByteWriter } from "../text/byte-writer.ts";
import { NumberWriter } from "./number-writer.ts";
import type { Writable } from "../message/writable.ts";
import { PLAIN } from "../store/body.ts";
import type { PreparedMessage, PreparedPart } from "../store/store.ts";
import { numberSink } from "../text/index.ts";
import type { IndexTerms, SpelledSink } from "../text/index.ts";

/** Fields that most messages do not have. */
type Rare = Pick<PreparedMessage, "redaction" | "payloads" | "calibration" | "cacheUsage">;

export interface PackedPrepared {
  readonly block: Uint8Array<ArrayBuffer>;
  /** {@link COLUMNS} for each message. */
  readonly numbers: Float64Array<ArrayBuffer>;
  readonly roles: readonly string[];
  readonly parts: {
    readonly types: readonly PreparedPart["type"][];
    /** Offset and length of each. */
    readonly ranges: Float64Array<ArrayBuffer>;
    readonly toolCallIds: readonly PreparedPart["toolCallId"][];
    readonly toolNames: readonly PreparedPart["toolName"][];
  };
  readonly spelled: PackedSpelled;
  readonly rare: readonly (Rare | null)[];
  /** The block with the arrival bytes of the messages, transferred as well. */
  readonly arrivals: Uint8Array<ArrayBuffer>;
}

/** The spelled words of all messages, and those of each message by number. */
interface PackedSpelled {
  readonly bytes: Uint8Array<ArrayBuffer>;
  /** The offset at which each word ends, its separator included, and the next begins; a 0 first. */
  readonly ends: Uint32Array<ArrayBuffer>;
  /** The words of all messages, one message after the other, counted from 1; {@link OPAQUE} for opaque content. */
  readonly numbers: Uint32Array<ArrayBuffer>;
}

const OPAQUE = 0;
const SEPARATOR = 0x0a;

/** The layout of `numbers`. Lengths are those of the pieces in the block, in their order there. */
const COLUMNS = {
  tokens: 0,
  createdAt: 1,
  hidden: 2,
  encoding: 3,
  arrivalBytes: 4,
  parts: 5,
  bodyLength: 6,
  saltLength: 7,
  commitmentLength: 8,
  wordsLength: 9,
  identsLength: 10,
  spelled: 11,
  isDated: 12,
} as const;
const WIDTH = Object.keys(COLUMNS).length;
/** Instead of a length: the body is the arrival, which is transferred anyway. */
const AS_ARRIVED = -1;

const FIRST_BYTES = 512 * 1024;
const FIRST_SPELLED_BYTES = 32 * 1024;
const FIRST_MESSAGES = 256;
const FIRST_NUMBERS = 32 * 1024;

/** Packs one batch after the other, reusing its memory. */
export class PreparedPacker {
  readonly #bytes = new ByteWriter(FIRST_BYTES);
  readonly #numbers = new NumberWriter(Float64Array, FIRST_MESSAGES * WIDTH);
  #roles: string[] = [];
  #types: PreparedPart["type"][] = [];
  readonly #ranges = new NumberWriter(Float64Array, 4 * FIRST_MESSAGES);
  #toolCallIds: PreparedPart["toolCallId"][] = [];
  #toolNames: PreparedPart["toolName"][] = [];
  readonly #spelled = new SpelledNumbers();
  #rare: (Rare | null)[] = [];

  /** Terms are analysed here, to spare the storing thread. */
  add(message: PreparedMessage): void {
    const { parts, encoding } = message;
    const [bytes, numbers] = [this.#bytes, this.#numbers];
    const isAsArrived = encoding === PLAIN && message.payloads.length === 0;
    const spelledBefore = this.#spelled.count;
    const { words, idents } = message.readTerms(this.#spelled.nextMessage());
    this.#roles.push(message.role);
    // In the order of COLUMNS.
    numbers.write(message.tokens);
    numbers.write(message.createdAt);
    numbers.write(message.hidden);
    numbers.write(encoding);
    numbers.write(message.arrivalBytes);
    numbers.write(parts.length);
    numbers.write(isAsArrived ? AS_ARRIVED : bytes.write(message.body));
    numbers.write(bytes.write(message.salt));
    numbers.write(bytes.write(message.commitment));
    numbers.write(bytes.write(words));
    numbers.write(bytes.write(idents));
    numbers.write(this.#spelled.count - spelledBefore);
    numbers.write(Number(message.isDated));
    for (const { type, at, length, toolCallId, toolName } of parts) {
      this.#types.push(type);
      this.#ranges.write(at);
      this.#ranges.write(length);
      this.#toolCallIds.push(toolCallId);
      this.#toolNames.push(toolName);
    }
    this.#rare.push(pickRare(message));
  }

  /** The batch, whose arrival bytes are all that is in `arrivals`; what is added from now on belongs to the next. */
  finish(arrivals: Uint8Array<ArrayBuffer>): PackedPrepared {
    const packed = {
      block: this.#bytes.release(),
      numbers: this.#numbers.finish(),
      roles: this.#roles,
      parts: {
        types: this.#types,
        ranges: this.#ranges.finish(),
        toolCallIds: this.#toolCallIds,
        toolNames: this.#toolNames,
      },
      spelled: this.#spelled.finish(),
      rare: this.#rare,
      arrivals,
    };
    [this.#roles, this.#types, this.#toolCallIds, this.#toolNames, this.#rare] = [[], [], [], [], []];
    return packed;
  }
}

/** The spelled words of a batch, numbered: texts repeat their words, so each is transferred once. */
class SpelledNumbers implements SpelledSink {
  number = 0;
  batch = numberSink();
  /** A word may be in it twice, written in different ways. */
  readonly #bytes = new ByteWriter(FIRST_SPELLED_BYTES);
  readonly #ends = new NumberWriter(Uint32Array, FIRST_NUMBERS);
  readonly #numbers = new NumberWriter(Uint32Array, FIRST_NUMBERS);

  constructor() {
    this.#ends.write(0);
  }

  /** The next words belong to another message. */
  nextMessage(): this {
    this.number = numberSink();
    return this;
  }

  get count(): number {
    return this.#numbers.length;
  }

  add(bytes: Uint8Array, start: number, end: number): number {
    this.#bytes.writeRange(bytes, start, end, SEPARATOR);
    this.#ends.write(this.#bytes.length);
    const number = this.#ends.length - 1;
    this.#numbers.write(number);
    return number;
  }

  repeat(number: number): void {
    this.#numbers.write(number);
  }

  addOpaque(): void {
    this.#numbers.write(OPAQUE);
  }

  finish(): PackedSpelled {
    const packed = {
      bytes: this.#bytes.release(),
      ends: this.#ends.finish(),
      numbers: this.#numbers.finish(),
    };
    this.batch = numberSink();
    this.#ends.write(0);
    return packed;
  }
}

function pickRare({ redaction, payloads, calibration, cacheUsage }: PreparedMessage): Rare | null {
  const isPlain = redaction === null && payloads.length === 0 && calibration === null && cacheUsage === null;
  if (isPlain) return null;
  // Cut payloads may be in the arrival, whose bytes need not outlive this call.
  const kept = payloads.map((payload) => ({ ...payload, content: Buffer.from(payload.content) }));
  return { redaction, payloads: kept, calibration, cacheUsage };
}

/** The buffers that may be transferred. */
export function listBuffers({ block, numbers, parts, spelled, arrivals }: PackedPrepared): ArrayBuffer[] {
  const ofSpelled = [spelled.bytes.buffer, spelled.ends.buffer, spelled.numbers.buffer];
  return [block.buffer, numbers.buffer, parts.ranges.buffer, arrivals.buffer, ...ofSpelled];
}

const NOTHING_RARE: Rare = { redaction: null, payloads: [], calibration: null, cacheUsage: null };

/**
 * The messages of a batch, each made on request: all at once would survive the garbage collector's short rounds, and be copied in each of
 * them.
 *
 * Invariant: what was read of a batch stays valid until every message, and the batch itself, has been released.
 */
export class PreparedBatch {
  readonly #packed: PackedPrepared;
  readonly #bodies: readonly Uint8Array[];
  readonly #spelled: SpelledWords;
  /** Where the pieces of each message begin in the block, and how many parts and spelled words precede it; one more at the end. */
  readonly #starts: Uint32Array;
  readonly #partsBefore: Uint32Array;
  readonly #spelledBefore: Uint32Array;
  /** How many of the messages and the batch are not released yet. */
  #held: number;

  /** `bodies` are the arrival bytes of the same messages. */
  constructor(packed: PackedPrepared, bodies: readonly Uint8Array[]) {
    const count = packed.roles.length;
    this.#packed = packed;
    this.#held = count + 1;
    this.#bodies = bodies;
    this.#spelled = new SpelledWords(packed.spelled);
    this.#starts = new Uint32Array(count + 1);
    this.#partsBefore = new Uint32Array(count + 1);
    this.#spelledBefore = new Uint32Array(count + 1);
    for (let index = 0; index < count; index++) {
      const length =
        Math.max(0, this.#number(index, COLUMNS.bodyLength)) +
        this.#number(index, COLUMNS.saltLength) +
        this.#number(index, COLUMNS.commitmentLength) +
        this.#number(index, COLUMNS.wordsLength) +
        this.#number(index, COLUMNS.identsLength);
      this.#starts[index + 1] = (this.#starts[index] as number) + length;
      this.#partsBefore[index + 1] =
        (this.#partsBefore[index] as number) + this.#number(index, COLUMNS.parts);
      this.#spelledBefore[index + 1] =
        (this.#spelledBefore[index] as number) + this.#number(index, COLUMNS.spelled);
    }
  }

  get length(): number {
    return this.#packed.roles.length;
  }

  read(index: number): PreparedMessage {
    const rare = this.#packed.rare[index] ?? NOTHING_RARE;
    const bodyLength = this.#number(index, COLUMNS.bodyLength);
    const saltAt = (this.#starts[index] as number) + Math.max(0, bodyLength);
    const commitmentAt = saltAt + this.#number(index, COLUMNS.saltLength);
    const commitmentEnd = commitmentAt + this.#number(index, COLUMNS.commitmentLength);
    return {
      role: this.#packed.roles[index] as PreparedMessage["role"],
      tokens: this.#number(index, COLUMNS.tokens),
      createdAt: this.#number(index, COLUMNS.createdAt),
      isDated: this.#number(index, COLUMNS.isDated) === 1,
      hidden: this.#number(index, COLUMNS.hidden),
      encoding: this.#number(index, COLUMNS.encoding),
      arrivalBytes: this.#number(index, COLUMNS.arrivalBytes),
      body:
        bodyLength === AS_ARRIVED
          ? (this.#bodies[index] as Uint8Array)
          : this.#bytes(this.#starts[index] as number, saltAt),
      salt: this.#bytes(saltAt, commitmentAt),
      commitment: this.#bytes(commitmentAt, commitmentEnd),
      parts: unpackParts(
        this.#packed.parts,
        this.#partsBefore[index] as number,
        this.#partsBefore[index + 1] as number,
      ),
      readTerms: (sink) => this.#readTerms(index, sink),
      release: () => this.release(),
      redaction: rare.redaction,
      payloads: rare.payloads,
      calibration: rare.calibration,
      cacheUsage: rare.cacheUsage,
    };
  }

  /**
   * Called once for each message and once for the batch when nothing of it will be read any more. The last call frees the memory: to the
   * garbage collector a batch is a few small objects, so it would let many pile up, and then scan the whole heap for them.
   */
  release(): void {
    this.#held -= 1;
    if (this.#held > 0) return;
    for (const buffer of listBuffers(this.#packed)) buffer.transfer(0);
  }

  #readTerms(index: number, sink: SpelledSink | null): IndexTerms {
    if (sink !== null)
      this.#spelled.give(
        sink,
        this.#spelledBefore[index] as number,
        this.#spelledBefore[index + 1] as number,
      );
    // They are last.
    const end = this.#starts[index + 1] as number;
    const identsAt = end - this.#number(index, COLUMNS.identsLength);
    const wordsAt = identsAt - this.#number(index, COLUMNS.wordsLength);
    return { words: this.#bytes(wordsAt, identsAt), idents: this.#bytes(identsAt, end) };
  }

  #number(index: number, column: number): number {
    return this.#packed.numbers[index * WIDTH + column] as number;
  }

  #bytes(start: number, end: number): Uint8Array {
    const { buffer, byteOffset } = this.#packed.block;
    return new Uint8Array(buffer, byteOffset + start, end - start);
  }
}

/** The spelled words of a batch, each passed to a sink at most once. */
class SpelledWords {
  readonly #packed: PackedSpelled;
  /** The number of the last sink that was given the word. */
  readonly #givenTo: Int32Array;

  constructor(packed: PackedSpelled) {
    this.#packed = packed;
    this.#givenTo = new Int32Array(packed.ends.length);
  }

  /** Passes on the words of one message: those between two places in the list of numbers. */
  give(sink: SpelledSink, from: number, to: number): void {
    const { bytes, ends, numbers } = this.#packed;
    const givenTo = this.#givenTo;
    for (let index = from; index < to; index++) {
      const number = numbers[index] as number;
      if (number === OPAQUE) sink.addOpaque();
      else if (givenTo[number] !== sink.number) {
        givenTo[number] = sink.number;
        sink.add(bytes, ends[number - 1] as number, (ends[number] as number) - 1);
      }
    }
  }
}

function unpackParts(packed: PackedPrepared["parts"], from: number, to: number): PreparedPart[] {
  const { types, ranges, toolCallIds, toolNames } = packed;
  const parts: PreparedPart[] = [];
  for (let index = from; index < to; index++) {
    const [toolCallId, toolName] = [toolCallIds[index], toolNames[index]];
    const part: Writable<PreparedPart> = {
      type: types[index] as PreparedPart["type"],
      at: ranges[2 * index] as number,
      length: ranges[2 * index + 1] as number,
    };
    if (toolCallId !== undefined) part.toolCallId = toolCallId;
    if (toolName !== undefined) part.toolName = toolName;
    parts.push(part);
  }
  return parts;
}

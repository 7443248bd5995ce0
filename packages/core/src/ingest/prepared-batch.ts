/**
 * Prepared messages on their way to another thread, in columns: all bytes and terms in one block, which is handed over instead of copied,
 * all numbers in one array. An object per message would cost both threads more than storing it, and what is kept out of the heap until a
 * batch is full need not be looked through by the garbage collector meanwhile.
 *
 * Invariant: unpacking gives what was packed, field by field.
 */
import { PLAIN } from "../store/body.ts";
import type { PreparedMessage, PreparedPart } from "../store/store.ts";
import { OPAQUE, Spelling } from "../text/index.ts";
import type { WordNote } from "../text/index.ts";

/** What most messages have none of. */
type Rare = Pick<PreparedMessage, "redaction" | "payloads" | "calibration" | "cacheUsage">;

export interface PackedPrepared {
  readonly block: Uint8Array<ArrayBuffer>;
  /** {@link COLUMNS} for each message. */
  readonly numbers: Float64Array<ArrayBuffer>;
  readonly roles: readonly string[];
  readonly parts: {
    readonly types: readonly PreparedPart["type"][];
    /** At and length of each. */
    readonly places: Float64Array<ArrayBuffer>;
    readonly toolCallIds: readonly PreparedPart["toolCallId"][];
    readonly toolNames: readonly PreparedPart["toolName"][];
  };
  /** The spelled words of all messages, each once, and those of each message by number. */
  readonly spelled: { readonly words: string; readonly numbers: Uint32Array<ArrayBuffer> };
  readonly rare: readonly (Rare | null)[];
}

/** What is in `numbers`. Lengths are those of the pieces in the block, in the order in which they stand there. */
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
} as const;
const WIDTH = Object.keys(COLUMNS).length;
/** Instead of a length: the body is the arrival, which travels anyway. */
const AS_ARRIVED = -1;

/** Takes the messages of one batch, one after the other. */
export class PreparedPacker {
  readonly #bytes = new ByteWriter();
  readonly #numbers: number[] = [];
  readonly #roles: string[] = [];
  readonly #types: PreparedPart["type"][] = [];
  readonly #places: number[] = [];
  readonly #toolCallIds: PreparedPart["toolCallId"][] = [];
  readonly #toolNames: PreparedPart["toolName"][] = [];
  readonly #spelled = new SpelledNumbers();
  readonly #rare: (Rare | null)[] = [];

  /** Terms are analysed here: the thread that stores is to be spared that. */
  add(message: PreparedMessage): void {
    const { body, salt, commitment, tokens, createdAt, hidden, encoding, arrivalBytes, parts } = message;
    const isAsArrived = encoding === PLAIN && message.payloads.length === 0;
    const spelledBefore = this.#spelled.numbers.length;
    const { words, idents } = message.readTerms(new NumberedSpelling(this.#spelled));
    this.#roles.push(message.role);
    this.#numbers.push(tokens, createdAt, hidden, encoding, arrivalBytes, parts.length);
    this.#numbers.push(isAsArrived ? AS_ARRIVED : this.#bytes.write(body));
    this.#numbers.push(this.#bytes.write(salt), this.#bytes.write(commitment));
    this.#numbers.push(this.#bytes.writeText(words), this.#bytes.writeText(idents));
    this.#numbers.push(this.#spelled.numbers.length - spelledBefore);
    for (const { type, at, length, toolCallId, toolName } of parts) {
      this.#types.push(type);
      this.#places.push(at, length);
      this.#toolCallIds.push(toolCallId);
      this.#toolNames.push(toolName);
    }
    this.#rare.push(pickRare(message));
  }

  finish(): PackedPrepared {
    return {
      block: this.#bytes.finish(),
      numbers: Float64Array.from(this.#numbers),
      roles: this.#roles,
      parts: {
        types: this.#types,
        places: Float64Array.from(this.#places),
        toolCallIds: this.#toolCallIds,
        toolNames: this.#toolNames,
      },
      spelled: {
        words: this.#spelled.words.join(" "),
        numbers: Uint32Array.from(this.#spelled.numbers),
      },
      rare: this.#rare,
    };
  }
}

let batches = 0;

/** The spelled words of a batch, numbered: texts repeat their words, so that each travels once. */
class SpelledNumbers {
  /** Marks the notes of this batch. */
  readonly batch = ++batches;
  /** By number. A word may stand there twice, written in different ways. */
  readonly words: string[] = [];
  /** The words of all messages, one message after the other. */
  readonly numbers: number[] = [];
  /** Words on which nothing can be noted. */
  readonly #unnoted = new Map<string, number>();

  numberOf(word: string, note: WordNote | undefined): number {
    if (note === undefined) return this.#numberUnnoted(word);
    if (note.notedBy !== this.batch) {
      note.notedBy = this.batch;
      note.note = this.words.push(word) - 1;
    }
    return note.note;
  }

  #numberUnnoted(word: string): number {
    let number = this.#unnoted.get(word);
    if (number === undefined) this.#unnoted.set(word, (number = this.words.push(word) - 1));
    return number;
  }
}

/** Collects the words of one message. */
class NumberedSpelling extends Spelling {
  readonly #into: SpelledNumbers;

  constructor(into: SpelledNumbers) {
    super();
    this.#into = into;
  }

  override add(word: string, note?: WordNote): void {
    this.#into.numbers.push(this.#into.numberOf(word, note));
  }
}

function pickRare({ redaction, payloads, calibration, cacheUsage }: PreparedMessage): Rare | null {
  const isPlain = redaction === null && payloads.length === 0 && calibration === null && cacheUsage === null;
  return isPlain ? null : { redaction, payloads, calibration, cacheUsage };
}

/** The buffers that may be handed over. */
export function listBuffers({ block, numbers, parts, spelled }: PackedPrepared): ArrayBuffer[] {
  return [block.buffer, numbers.buffer, parts.places.buffer, spelled.numbers.buffer];
}

const NOTHING_RARE: Rare = { redaction: null, payloads: [], calibration: null, cacheUsage: null };

/** `bodies` are the arrival bytes of the same messages. */
export function unpackPrepared(packed: PackedPrepared, bodies: readonly Uint8Array[]): PreparedMessage[] {
  const block = Buffer.from(packed.block.buffer, packed.block.byteOffset, packed.block.byteLength);
  const { numbers } = packed;
  const spelled = new SpelledWords(packed.spelled);
  let [at, partsBefore, spelledBefore] = [0, 0, 0];
  const take = (length: number): Uint8Array => block.subarray(at, (at += length));
  return packed.roles.map((role, index) => {
    const read = (column: keyof typeof COLUMNS): number => numbers[index * WIDTH + COLUMNS[column]] as number;
    const bodyLength = read("bodyLength");
    const body = bodyLength === AS_ARRIVED ? (bodies[index] as Uint8Array) : take(bodyLength);
    const [salt, commitment] = [take(read("saltLength")), take(read("commitmentLength"))];
    const termsAt = at;
    const identsAt = termsAt + read("wordsLength");
    const termsEnd = identsAt + read("identsLength");
    const firstPart = partsBefore;
    partsBefore += read("parts");
    const firstSpelled = spelledBefore;
    const spelledEnd = (spelledBefore += read("spelled"));
    at = termsEnd;
    return {
      role,
      tokens: read("tokens"),
      createdAt: read("createdAt"),
      hidden: read("hidden"),
      encoding: read("encoding"),
      arrivalBytes: read("arrivalBytes"),
      body,
      salt,
      commitment,
      parts: unpackParts(packed.parts, firstPart, partsBefore),
      readTerms: (spelling) => {
        if (spelling !== null) spelled.give(spelling, firstSpelled, spelledEnd);
        return {
          words: block.toString("utf8", termsAt, identsAt),
          idents: block.toString("utf8", identsAt, termsEnd),
        };
      },
      ...(packed.rare[index] ?? NOTHING_RARE),
    };
  });
}

/** The spelled words of a batch, handed to a spelling at most once each. */
class SpelledWords {
  readonly #words: readonly string[];
  readonly #numbers: Uint32Array;
  /** The last spelling that was given the word, by number. */
  readonly #givenTo: Float64Array;

  constructor({ words, numbers }: PackedPrepared["spelled"]) {
    this.#words = words.split(" ");
    this.#numbers = numbers;
    this.#givenTo = new Float64Array(this.#words.length);
  }

  /** Gives the words of one message: those between two places in the list of numbers. */
  give(spelling: Spelling, from: number, to: number): void {
    for (let index = from; index < to; index++) {
      const number = this.#numbers[index] as number;
      const word = this.#words[number] as string;
      // That a text is opaque is asked for message by message.
      if (this.#givenTo[number] === spelling.number && word !== OPAQUE) continue;
      this.#givenTo[number] = spelling.number;
      spelling.add(word);
    }
  }
}

function unpackParts(packed: PackedPrepared["parts"], from: number, to: number): PreparedPart[] {
  const { types, places, toolCallIds, toolNames } = packed;
  const parts: PreparedPart[] = [];
  for (let index = from; index < to; index++) {
    const [toolCallId, toolName] = [toolCallIds[index], toolNames[index]];
    parts.push({
      type: types[index] as PreparedPart["type"],
      at: places[2 * index] as number,
      length: places[2 * index + 1] as number,
      ...(toolCallId === undefined ? null : { toolCallId }),
      ...(toolName === undefined ? null : { toolName }),
    });
  }
  return parts;
}

const FIRST_BYTES = 256 * 1024;
const MAX_BYTES_PER_UNIT = 3;

/** Bytes and texts one after the other, in a block that grows. */
class ByteWriter {
  #block = Buffer.allocUnsafeSlow(FIRST_BYTES);
  #length = 0;

  /** Says how many bytes were written. */
  write(bytes: Uint8Array): number {
    this.#makeRoom(bytes.byteLength);
    this.#block.set(bytes, this.#length);
    this.#length += bytes.byteLength;
    return bytes.byteLength;
  }

  writeText(text: string): number {
    this.#makeRoom(text.length * MAX_BYTES_PER_UNIT);
    const written = this.#block.write(text, this.#length, "utf8");
    this.#length += written;
    return written;
  }

  finish(): Uint8Array<ArrayBuffer> {
    return this.#block.subarray(0, this.#length);
  }

  #makeRoom(bytes: number): void {
    const needed = this.#length + bytes;
    if (needed <= this.#block.byteLength) return;
    const grown = Buffer.allocUnsafeSlow(Math.max(needed, 2 * this.#block.byteLength));
    grown.set(this.#block.subarray(0, this.#length));
    this.#block = grown;
  }
}

/**
 * The lines of one batch, from reading to storing. Their bytes are copied one after the other into one block, which the engine can use without
 * another copy: the read buffer is reused for the next lines, and little more than its name is kept per line.
 */
import { must } from "@lossless/core";
import type { Arrival } from "@lossless/core";
import { ByteWriter } from "@lossless/core/formats";
import type { BatchPreparer, JsonObject, PackedPrepared } from "@lossless/core/formats";
import type { NamedLine } from "./entry-index.ts";
import type { Line } from "./lines.ts";

const FIRST_BYTES = 64 * 1024;

/** What a batch keeps of one line. */
type LineArrival = Omit<Arrival, "bytes" | "message" | "eventId">;

export class LineBatch {
  readonly #bytes: ByteWriter;
  readonly #preparer: BatchPreparer | undefined;
  readonly #named: NamedLine[] = [];
  readonly #arrivals: LineArrival[] = [];
  /** Where the bytes of each line end. */
  readonly #ends: number[] = [];
  #last: Line | null = null;

  /** `expectedBytes`: the size of the previous batch. */
  constructor(preparer: BatchPreparer | undefined, expectedBytes: number) {
    this.#preparer = preparer;
    this.#bytes = new ByteWriter(Math.max(FIRST_BYTES, expectedBytes));
  }

  get lines(): number {
    return this.#ends.length;
  }

  get bytes(): number {
    return this.#bytes.length;
  }

  get named(): readonly NamedLine[] {
    return this.#named;
  }

  /** The line added last. */
  get last(): Line {
    return must(this.#last, "last line of a batch");
  }

  /** `entry` is the parsed line, if it is a JSON object. */
  add(line: Line, named: NamedLine, arrival: LineArrival, entry: JsonObject | undefined): void {
    this.#preparer?.add({ ...arrival, bytes: line.bytes }, entry);
    this.#bytes.write(line.bytes);
    this.#ends.push(this.#bytes.length);
    this.#named.push(named);
    this.#arrivals.push(arrival);
    this.#last = line;
  }

  /** The lines as messages, each with the id it is given. */
  finish(chooseEventId: (line: NamedLine, index: number) => string): {
    readonly messages: readonly Arrival[];
    readonly prepared: PackedPrepared | undefined;
  } {
    const block = this.#bytes.finish();
    const messages = this.#arrivals.map((arrival, index) => ({
      ...arrival,
      eventId: chooseEventId(this.#named[index] as NamedLine, index),
      bytes: block.subarray(this.#ends[index - 1] ?? 0, this.#ends[index]),
    }));
    return { messages, prepared: this.#preparer?.finish(block) };
  }
}

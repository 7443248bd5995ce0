/** What passes between the threads comes out as it went in. */
import * as fc from "fast-check";
import { describe, expect, test } from "vitest";

import { arrivalBytes } from "../../src/engine/ingest.ts";
import type { IngestResult } from "../../src/engine/ingest.ts";
import { packArrivals, packResult, unpackArrivals, unpackResult } from "../../src/engine/pack-messages.ts";
import type { Arrival } from "../../src/model/message.ts";

/** A value of a field as a careless caller may give it. */
const sloppy = <T>(value: fc.Arbitrary<T>): fc.Arbitrary<T> =>
  fc.oneof(value, value, fc.constantFrom(Number.NaN, "7", null) as unknown as fc.Arbitrary<T>);

const anyArrival: fc.Arbitrary<Arrival> = fc.record(
  {
    bytes: fc.uint8Array({ maxLength: 40 }),
    eventId: fc.string(),
    eventIdKind: fc.constantFrom("entry" as const, "provisional" as const),
    position: sloppy(fc.integer({ min: 0 })),
    createdAt: sloppy(fc.integer({ min: 0 })),
    hidden: fc.subarray(["meta", "branch"] as const, { minLength: 1 }),
  },
  { requiredKeys: ["bytes"] },
);

/** As the other thread gets it. */
const send = <T>(value: T): T => structuredClone(value);

const plain = (arrivals: readonly Arrival[]): unknown[] =>
  arrivals.map(({ bytes, ...rest }) => ({ ...rest, bytes: [...(bytes ?? [])] }));

describe("arrivals in columns", () => {
  test("come out field by field, what is absent or no good included", () => {
    fc.assert(
      fc.property(fc.array(anyArrival, { maxLength: 8 }), (arrivals) => {
        expect(plain(unpackArrivals(send(packArrivals(arrivals, arrivalBytes))))).toEqual(plain(arrivals));
      }),
    );
  });

  test("hand over the block they fill only where they may, and copy everything else", () => {
    const block = Buffer.from("onetwothree");
    const own = new Uint8Array(block);
    const pieces = [own.subarray(0, 3), own.subarray(3, 6), own.subarray(6)];
    const arrivals = pieces.map((bytes) => ({ bytes }));
    expect(packArrivals(arrivals, arrivalBytes, true).block.buffer).toBe(own.buffer);
    expect(packArrivals(arrivals, arrivalBytes).block.buffer).not.toBe(own.buffer);
    for (const some of [
      arrivals.slice(1),
      [...arrivals].reverse(),
      [{ bytes: Buffer.from("x") }, ...arrivals],
    ]) {
      const packed = packArrivals(some, arrivalBytes, true);
      expect(packed.block.buffer).not.toBe(own.buffer);
      expect(plain(unpackArrivals(packed))).toEqual(plain(some));
    }
  });
});

describe("results in columns", () => {
  const anyResult = fc.array(
    fc.record({
      messageId: fc.nat(),
      eventId: fc.string(),
      seq: fc.nat(),
      outcome: fc.constantFrom(
        "stored" as const,
        "known" as const,
        "revision" as const,
        "forgotten" as const,
      ),
      isGiven: fc.boolean(),
    }),
    { maxLength: 8 },
  );

  test("come out field by field, with the ids that the messages came with", () => {
    fc.assert(
      fc.property(anyResult, fc.boolean(), (rows, allAlike) => {
        const results = rows.map(({ messageId, eventId, seq, outcome }) => ({
          messageId,
          eventId,
          seq,
          outcome: allAlike ? ("stored" as const) : outcome,
        }));
        const result: IngestResult = { conversationId: 3, results, duplicateTurn: false, skipped: null };
        const arrivals: Arrival[] = rows.map(({ eventId, isGiven }) =>
          isGiven ? { bytes: new Uint8Array(), eventId } : { bytes: new Uint8Array() },
        );
        const packed = send(packResult(result, arrivals));
        expect(unpackResult(packed, packArrivals(arrivals, arrivalBytes).eventIds)).toEqual(result);
      }),
    );
  });
});

/** What passes to the engine's thread comes out as it went in. */
import { fc } from "@lossless/testkit/properties.ts";
import { describe, expect, test } from "vitest";

import { postArrivals } from "../../src/engine/post-arrivals.ts";
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
function send(arrivals: readonly Arrival[]): readonly Arrival[] {
  const { messages, transfer } = postArrivals(arrivals);
  return structuredClone(messages, { transfer });
}

const plain = (arrivals: readonly Arrival[]): unknown[] =>
  arrivals.map(({ bytes, ...rest }) => ({ ...rest, bytes: [...(bytes ?? [])] }));

describe("arrivals for another thread", () => {
  test("come out field by field, what is absent or no good included, and leave the caller's bytes alone", () => {
    fc.assert(
      fc.property(fc.array(anyArrival, { maxLength: 8 }), (arrivals) => {
        const before = plain(arrivals);
        expect(plain(send(arrivals))).toEqual(before);
        expect(plain(arrivals)).toEqual(before);
      }),
    );
  });

  test("take no more along than their own bytes", () => {
    const large = new Uint8Array(1_000_000).fill(120);
    const { messages, transfer } = postArrivals([
      { bytes: large.subarray(10, 13) },
      { message: { role: "user", content: "hi", odd: -0 } },
    ]);
    expect(messages.map(({ bytes }) => Buffer.from(bytes ?? []).toString())).toEqual([
      "xxx",
      '{"role":"user","content":"hi","odd":-0}',
    ]);
    expect(transfer.map(({ byteLength }) => byteLength)).toEqual([42]);
  });

  test("travel whole where they are long and plain, and as bytes where a copy would change them", () => {
    const long = { role: "user", content: "x".repeat(400_000) };
    const [whole, odd] = send([{ message: long }, { message: { ...long, toJSON: () => "short" } }]);
    expect(whole).toEqual({ message: long });
    expect(odd?.message).toBeUndefined();
  });
});

/** What is packed for another thread comes out as it went in. */
import { fc } from "@lossless/testkit/properties.ts";
import { expect, test } from "vitest";
import { prepareMessage } from "../../src/ingest/prepare.ts";
import { listBuffers, PreparedBatch, PreparedPacker } from "../../src/bulk/prepared-batch.ts";
import type { PackedPrepared } from "../../src/bulk/prepared-batch.ts";
import type { PreparedMessage } from "../../src/store/store.ts";
import { decodeTerms, Spelling } from "../../src/text/index.ts";

const prepare = (bytes: Uint8Array): PreparedMessage =>
  prepareMessage(bytes, {
    hidden: 0,
    createdAt: 1_700_000_000_000,
    largeFileThresholdTokens: 1_000,
    random: (size) => Buffer.alloc(size, 7),
  });

const join = (bodies: readonly Uint8Array[]): Uint8Array<ArrayBuffer> =>
  new Uint8Array(Buffer.concat(bodies));

function unpackPrepared(packed: PackedPrepared, bodies: readonly Uint8Array[]): PreparedMessage[] {
  const batch = new PreparedBatch(packed, bodies);
  return Array.from({ length: batch.length }, (_, index) => batch.read(index));
}

/** Everything of a message that can be compared. */
function describeMessage({ readTerms, ...message }: PreparedMessage): unknown {
  const { release: _release, ...rest } = message;
  const spelling = new Spelling();
  const terms = readTerms(spelling);
  const [body, salt, commitment] = [rest.body, rest.salt, rest.commitment].map((bytes) => [...bytes]);
  const payloads = rest.payloads.map((payload) => ({ ...payload, content: [...payload.content] }));
  return {
    ...rest,
    body,
    salt,
    commitment,
    payloads,
    terms: { words: decodeTerms(terms.words), idents: decodeTerms(terms.idents) },
    spelled: [...spelling.readWords()].toSorted(),
    isOpaque: spelling.takeOpaque(),
  };
}

const message = fc.oneof(
  fc.record({ role: fc.constant("user"), content: fc.string({ unit: "grapheme", maxLength: 2_000 }) }),
  fc.record({
    role: fc.constant("assistant"),
    model: fc.constant("claude-example"),
    usage: fc.record({ output: fc.nat(), cacheRead: fc.nat(), input: fc.nat() }),
    content: fc.array(
      fc.oneof(
        fc.record({ type: fc.constant("text"), text: fc.string() }),
        fc.record({
          type: fc.constant("toolCall"),
          id: fc.string(),
          name: fc.string(),
          arguments: fc.object(),
        }),
      ),
      { maxLength: 4 },
    ),
  }),
  fc.record({ role: fc.constant("user"), content: fc.constant("a long line of a log file\n".repeat(800)) }),
  fc.json(),
);

test("gives the words of each message, also to whoever collects those of several", () => {
  const texts = [
    "parseConfig failed",
    "PARSECONFIG failed again",
    "",
    "failed at src/parseConfig.ts",
    "数 x2",
  ];
  const bodies = texts.map((content) => Buffer.from(JSON.stringify({ role: "user", content })));
  const base64 = Buffer.from(Array.from({ length: 90 }, (_, i) => (i * 73) % 256)).toString("base64");
  bodies.push(Buffer.from(JSON.stringify({ role: "user", content: `see ${base64} failed` })));
  const packer = new PreparedPacker();
  for (const body of bodies) packer.add(prepare(body));
  const [together, apart] = [new Spelling(), new Spelling()];
  const opaque: boolean[] = [];
  for (const { readTerms } of unpackPrepared(packer.finish(join(bodies)), bodies)) {
    readTerms(together);
    opaque.push(together.takeOpaque());
  }
  for (const body of bodies) prepare(body).readTerms(apart);
  expect([...together.readWords()].toSorted()).toEqual([...apart.readWords()].toSorted());
  expect(opaque).toEqual([false, false, false, false, false, true]);
  expect([...together.readWords()]).toEqual(expect.arrayContaining(["parseconfig", "failed", "x2", "see"]));
});

test("gives back every field of every message, from a copy as a thread would get it", () => {
  fc.assert(
    fc.property(fc.array(message, { maxLength: 12 }), (messages) => {
      const bodies = messages.map((value) => Buffer.from(JSON.stringify(value)));
      const packer = new PreparedPacker();
      for (const body of bodies) packer.add(prepare(body));
      const packed = packer.finish(join(bodies));
      const expected = bodies.map((body) => describeMessage(prepare(body)));
      const copy = structuredClone(packed, { transfer: listBuffers(packed) });
      expect(packed.block.byteLength).toBe(0);
      expect(unpackPrepared(copy, bodies).map(describeMessage)).toEqual(expected);
    }),
    { numRuns: 60 },
  );
});

test("keeps its memory until every message and the batch itself are released, then gives it back", () => {
  const bodies = ["one", "two"].map((content) => Buffer.from(JSON.stringify({ role: "user", content })));
  const packer = new PreparedPacker();
  for (const body of bodies) packer.add(prepare(body));
  const arrivals = join(bodies);
  const packed = packer.finish(arrivals);
  const batch = new PreparedBatch(packed, bodies);
  const [first, second] = [batch.read(0), batch.read(1)];
  batch.release();
  first.release?.();
  expect(decodeTerms(second.readTerms(null).words)).toContain("two");
  expect(arrivals.byteLength).toBeGreaterThan(0);
  second.release?.();
  expect(listBuffers(packed).every((buffer) => buffer.detached)).toBe(true);
});

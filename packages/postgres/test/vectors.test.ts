/** Vectors on a server: one filler at a time, what they belong to, and the nearest of a space or of a scope. */
import { deriveMessage } from "@lossless/core/testing";
import { batchOf, makeEvent, say } from "@lossless/testkit/contract/parts.ts";
import { describePostgres } from "@lossless/testkit/postgres-server.ts";
import { makeRandom } from "@lossless/testkit/random.ts";
import { expect, onTestFinished, test } from "vitest";
import { openPostgresStore } from "../src/postgres-store.ts";
import type { PostgresStore } from "../src/postgres-store.ts";

const DIMENSIONS = 64;
const LEASE = { holder: "a", now: 1_000, leaseMs: 100 };

function makeVector(seed: number): Float32Array {
  const random = makeRandom(seed);
  const vector = Float32Array.from({ length: DIMENSIONS }, () => random.next() - 0.5);
  const length = Math.hypot(...vector);
  return vector.map((value) => value / length);
}

const dot = (a: Float32Array, b: Float32Array): number =>
  a.reduce((sum, value, at) => sum + value * (b[at] ?? 0), 0);

describePostgres("vectors on a server", (server) => {
  async function open(messages: number): Promise<{ store: PostgresStore; ids: number[] }> {
    const store = await openPostgresStore({
      address: await server.createDatabase(),
      create: true,
      derive: deriveMessage,
    });
    onTestFinished(() => store.close());
    const events = Array.from({ length: messages }, (_, i) => makeEvent(`e${i}`, say(`message ${i}`)));
    const { results } = await store.append(batchOf(events));
    return { store, ids: results.flatMap(({ messageId }) => messageId ?? []) };
  }

  test("finds the nearest by codes as it does without them", async () => {
    const { store, ids } = await open(700);
    const space = await store.claimVectorSpace({ model: "m", ...LEASE });
    const spaceId = space?.spaceId ?? 0;
    const vectors = ids.map((messageId) => ({ messageId, vector: makeVector(messageId) }));
    expect(await store.storeVectors({ spaceId, ...LEASE, vectors })).toEqual({ kind: "stored", stored: 700 });
    const wanted = makeVector(100_000);
    const expected = vectors
      .map(({ messageId, vector }) => ({ messageId, score: dot(wanted, vector) }))
      .toSorted((a, b) => b.score - a.score)
      .slice(0, 5)
      .map(({ messageId }) => messageId);
    const scan = async (scope: object, isExact: boolean): Promise<number[]> => {
      const request = { spaceId, vector: wanted, scope, limit: 5, after: null, isExact };
      const { nearest, next } = await store.scanVectors(request);
      expect(next).toBeNull();
      return nearest.map(({ id }) => id);
    };
    expect(await scan({}, true)).toEqual(expected);
    expect(await scan({}, false)).toEqual(expected);
    // The second time by the codes of the first.
    expect(await scan({}, false)).toEqual(expected);
    expect(await scan({ owner: "main", since: 0 }, false)).toEqual(expected);
    expect(await scan({ owner: "nobody" }, false)).toEqual([]);
  });

  test("records the cost of vectors once, also when the answer to their COMMIT was lost", async () => {
    const { store, ids } = await open(2);
    const space = await store.claimVectorSpace({ model: "m", ...LEASE });
    const spent = {
      at: 1_000,
      conversationId: null,
      purpose: "embedding",
      provider: "p",
      model: "m",
      inputTokens: 7,
      outputTokens: 0,
      durationMs: 1,
      outcome: "ok",
    };
    const vectors = ids.map((messageId) => ({ messageId, vector: makeVector(messageId) }));
    const request = { spaceId: space?.spaceId ?? 0, ...LEASE, vectors, spent };
    expect(await store.storeVectors(request)).toEqual({ kind: "stored", stored: 2 });
    expect(await store.storeVectors(request)).toEqual({ kind: "stored", stored: 0 });
    expect(await store.sumSpend({ since: 0, by: "all" })).toMatchObject([{ calls: 1, inputTokens: 7 }]);
    // A call for a message that was forgotten meanwhile has been paid as well.
    const [forgotten = 0] = (await store.append(batchOf([makeEvent("e2", say("later"))]))).results.map(
      ({ messageId }) => messageId ?? 0,
    );
    const asked = { alsoSummaryIds: [], replacements: [], reason: "asked", now: 1_000 };
    await store.forget({ ...asked, messageIds: [forgotten] });
    const late = [{ messageId: forgotten, vector: makeVector(forgotten) }];
    expect(await store.storeVectors({ ...request, vectors: late })).toEqual({ kind: "stored", stored: 0 });
    expect(await store.sumSpend({ since: 0, by: "all" })).toMatchObject([{ calls: 2, inputTokens: 14 }]);
  });

  test("lets one process fill a space, and keeps what it said it has looked at", async () => {
    const { store, ids } = await open(3);
    const [first = 0, second = 0, third = 0] = ids;
    const space = await store.claimVectorSpace({ model: "m", ...LEASE });
    const spaceId = space?.spaceId ?? 0;
    expect(await store.claimVectorSpace({ model: "m", ...LEASE, holder: "b" })).toBeNull();
    expect(await store.listUnembedded({ spaceId, after: 0, limit: 10 })).toEqual(ids);
    const vectors = [
      { messageId: first, vector: makeVector(1) },
      { messageId: second, vector: null },
    ];
    expect(await store.storeVectors({ spaceId, ...LEASE, holder: "b", vectors })).toEqual({ kind: "lost" });
    expect(await store.storeVectors({ spaceId, ...LEASE, vectors })).toEqual({ kind: "stored", stored: 2 });
    const short = [{ messageId: third, vector: new Float32Array(2) }];
    expect(await store.storeVectors({ spaceId, ...LEASE, vectors: short })).toEqual({
      kind: "dimensions",
      expected: DIMENSIONS,
      given: 2,
    });
    expect(await store.listUnembedded({ spaceId, after: 0, limit: 10 })).toEqual([third]);
    expect((await store.verify(deriveMessage, () => undefined)).problems).toEqual([]);
    await store.append(batchOf([makeEvent("e9", say("later"))]));
    const [pending] = await store.listPendingVectors({ spaceId, limit: 10 });
    expect(pending).toMatchObject({ isWanted: true });
    expect(await store.countVectors()).toEqual({ messages: 4, spaces: [{ spaceId, vectors: 2 }] });
    await store.releaseVectorSpace({ spaceId, holder: "a", now: 1_050, isFilled: true });
    expect((await store.listVectorSpaces())[0]).toMatchObject({ filledAt: 1_050, dimensions: DIMENSIONS });
    expect(await store.dropVectorSpace(spaceId, 2)).toBe(false);
    expect(await store.dropVectorSpace(spaceId, 2)).toBe(true);
    expect(await store.listVectorSpaces()).toEqual([]);
  });
});

/** Codes of vectors are kept in memory for as long as a program runs; what they were made from may change meanwhile. */
import { SqliteStore } from "@lossless/sqlite";
import { makeTemporaryFolder } from "@lossless/testkit";
import { makeEvent } from "@lossless/testkit/store-contract.ts";
import { expect, test } from "vitest";

const MESSAGES = 600;
const DIMENSIONS = 64;
const SESSION = { key: "agent:main:test", id: "session-1", owner: "main" };

/** A direction that hardly any other message has, another one for each model. */
function makeVector(seed: number): Float32Array {
  let state = seed * 2_654_435_761;
  const next = (): number => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32 - 0.5;
  };
  const vector = Float32Array.from({ length: DIMENSIONS }, next);
  return vector.map((number) => number / Math.hypot(...vector));
}

test("a space that was dropped and filled by another model is not searched by the codes of the old one", async () => {
  using folder = makeTemporaryFolder();
  const options = { path: folder.file("lcm.db"), filesDir: folder.file("files") };
  const reader = new SqliteStore({ ...options, create: true });
  const writer = new SqliteStore(options);
  const events = Array.from({ length: MESSAGES }, (_, i) =>
    makeEvent(`e${i}`, { role: "user", content: `${i}` }),
  );
  const { results } = await writer.append({ session: SESSION, events, now: 1 });
  const ids = results.map(({ messageId }) => messageId);
  const fill = async (model: string, offset: number): Promise<number> => {
    const lease = { holder: "test", now: 1, leaseMs: 1_000 };
    const space = await writer.claimVectorSpace({ model, ...lease });
    const spaceId = space?.spaceId ?? 0;
    const vectors = ids.map((messageId) => ({ messageId, vector: makeVector(messageId + offset) }));
    await writer.storeVectors({ spaceId, ...lease, vectors });
    return spaceId;
  };
  const findNearest = async (spaceId: number, vector: Float32Array): Promise<number | undefined> =>
    (await reader.scanVectors({ spaceId, vector, scope: {}, limit: 1, after: null })).nearest[0]?.id;
  const first = await fill("one", 0);
  for (const id of ids.slice(0, 40)) expect(await findNearest(first, makeVector(id))).toBe(id);
  while (!(await writer.dropVectorSpace(first, 1_000)));
  const second = await fill("another", 7_777);
  expect(second).toBe(first);
  for (const id of ids.slice(0, 40))
    expect(await findNearest(second, makeVector(id + 7_777)), `${id}`).toBe(id);
  await reader.close();
  await writer.close();
});

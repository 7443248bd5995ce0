/** What somebody waits for goes first; what nobody waits for is done in between, and by whoever comes first. */
import { setImmediate } from "node:timers/promises";
import type { ConversationRow, Engine, Outline, OutlineRequest } from "@lossless/core";
import { describe, expect, test } from "vitest";
import { findFrom, joinOutlines, Outlines, rowAt } from "@lossless/core/doors";
import { Api } from "../src/api.ts";
import { SharedSteps } from "../src/shared-steps.ts";
import { RequestPriority } from "../src/request-priority.ts";

describe("work that nobody waits for", () => {
  test("is done when nobody asks for anything, and a long piece not while somebody is expected", async () => {
    const way = new RequestPriority();
    const order: string[] = [];
    const long = way.stepAside("long").then(() => order.push("long"));
    await way.stepAside("short").then(() => order.push("short"));
    way.note();
    await long;
    expect(order).toEqual(["short", "long"]);
  });

  test("steps aside until everybody has been served, a long piece for a while longer", async () => {
    const way = new RequestPriority();
    const order: string[] = [];
    const [first, second] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const served = [first, second].map(({ promise }, index) =>
      way.serve(() => promise).then(() => order.push(`served ${index + 1}`)),
    );
    const aside = (["short", "long"] as const).map((piece) =>
      way.stepAside(piece).then(() => order.push(piece)),
    );
    first.resolve();
    await served[0];
    second.resolve();
    await Promise.all([...served, ...aside]);
    expect(order).toEqual(["served 1", "served 2", "short", "long"]);
  });

  test("goes on after something that failed", async () => {
    const way = new RequestPriority();
    await expect(way.serve(() => Promise.reject(new Error("no")))).rejects.toThrow("no");
    await way.stepAside("short");
  });
});

test("first words of many summaries keep a click waiting for one of them, not for all", async () => {
  const pending: { readonly summaryId: string; readonly answer: () => void }[] = [];
  const engine = {
    readSummary: ({ summaryId }: { readonly summaryId: string }) =>
      new Promise((resolve) => {
        pending.push({ summaryId, answer: () => resolve({ summaryId, content: `about ${summaryId}` }) });
      }),
  } as unknown as Engine;
  const api = new Api({
    engine,
    scope: {},
    timezone: "UTC",
    version: "0",
    examine: () => Promise.reject(new Error("unused")),
  });
  const [first, second, clicked] = ["a", "b", "c"].map((digit) => `sum_${digit.repeat(16)}`);
  const ask = (path: string) => api.answer(new URL(path, "http://inspector.invalid"));
  const words = ask(`/api/first-words?ids=${first},${second}`);
  const click = ask(`/api/summaries/${clicked}`);
  const order: string[] = [];
  while (order.length < 3) {
    const next = pending.shift();
    if (next !== undefined) order.push(next.summaryId);
    next?.answer();
    await setImmediate();
  }
  expect(order).toEqual([first, clicked, second]);
  expect(await words).toEqual({
    json: { [first ?? ""]: `about ${first}`, [second ?? ""]: `about ${second}` },
  });
  expect(await click).toMatchObject({ json: { summaryId: clicked } });
});

test("a computation in steps is finished by the caller that somebody waits for, and done once", async () => {
  const done: number[] = [];
  function* count(): Generator<void, string> {
    for (const step of [1, 2, 3]) {
      done.push(step);
      yield;
    }
    return "counted";
  }
  const steps = new SharedSteps(count());
  const hasTime = Promise.withResolvers<void>();
  let pauses = 0;
  // Stops before the second step.
  const patient = steps.finish(() => (pauses++ === 1 ? hasTime.promise : Promise.resolve()));
  expect(await steps.finish(() => Promise.resolve())).toBe("counted");
  hasTime.resolve();
  expect(await patient).toBe("counted");
  expect(done).toEqual([1, 2, 3]);
});

const COUNT = 12_000;

/** Messages at every tenth position; every third is an answer of the assistant. */
function makeOutline(from: number, to: number): Outline {
  const column = (make: (index: number) => number): Float64Array =>
    Float64Array.from({ length: to - from }, (_, index) => make(from + index));
  return {
    messageIds: column((index) => index + 1),
    seqs: column((index) => index + 1),
    positions: column((index) => index * 10),
    tokens: column((index) => index % 7),
    createdAts: column((index) => index * 1_000),
    roles: Uint16Array.from({ length: to - from }, (_, index) => ((from + index) % 3 === 0 ? 0 : 1)),
    roleNames: ["assistant", "user"],
  };
}

function openOutlines(count: number) {
  const asked: (readonly [number, number] | null)[] = [];
  let stored = count;
  const engine = {
    readOutline: async ({ after, limit }: OutlineRequest) => {
      asked.push(after);
      const from = after === null ? 0 : after[1];
      return makeOutline(from, Math.min(stored, from + limit));
    },
  } as unknown as Engine;
  const outlines = new Outlines(engine, {});
  const conversation = (): ConversationRow =>
    ({ conversationId: 1, messages: stored }) as unknown as ConversationRow;
  return { outlines, asked, conversation, grow: (by: number) => (stored += by) };
}

describe("the outline of a conversation", () => {
  test("is whole, whatever slices it was read in, and read once", async () => {
    const { outlines, asked, conversation } = openOutlines(COUNT);
    const outline = await outlines.read(conversation());
    expect(outline).toEqual(makeOutline(0, COUNT));
    const slices = asked.length;
    expect(await outlines.read(conversation())).toBe(outline);
    expect(asked.length).toBe(slices);
  });

  test("is read on from where a reader is who has no time, and each slice by one of them", async () => {
    const { outlines, asked, conversation } = openOutlines(COUNT);
    const hasTime = Promise.withResolvers<void>();
    let pauses = 0;
    // Stops before the second slice.
    const patient = outlines.read(conversation(), () =>
      pauses++ === 1 ? hasTime.promise : Promise.resolve(),
    );
    const urgent = await outlines.read(conversation());
    expect(urgent).toEqual(makeOutline(0, COUNT));
    hasTime.resolve();
    expect(await patient).toBe(urgent);
    expect(new Set(asked.map(String)).size).toBe(asked.length);
  });

  test("grows with the conversation, and what was handed out stays as it was", async () => {
    const { outlines, asked, conversation, grow } = openOutlines(COUNT);
    const before = await outlines.read(conversation());
    grow(3);
    const after = await outlines.read(conversation());
    expect(after).toEqual(makeOutline(0, COUNT + 3));
    expect(before.seqs.length).toBe(COUNT);
    expect(asked.at(-1)).toEqual([(COUNT - 1) * 10, COUNT]);
  });

  test("names each role as its slice does", () => {
    const part = (role: string): Outline => ({
      ...makeOutline(0, 1),
      roles: Uint16Array.of(0),
      roleNames: [role],
    });
    const outline = joinOutlines([part("user"), part("tool"), part("user")]);
    expect([0, 1, 2].map((index) => rowAt(outline, index).role)).toEqual(["user", "tool", "user"]);
  });

  test("finds the first message at a position or behind it", () => {
    const { positions } = makeOutline(0, 5);
    expect([-1, 0, 1, 10, 40, 41].map((position) => findFrom(positions, position))).toEqual([
      0, 0, 1, 1, 4, 5,
    ]);
  });
});

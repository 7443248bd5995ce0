/** Search by meaning: filling a space whatever goes wrong, exact neighbours, and what a question gets from them. */
import { resolveSettings } from "@lossless/core";
import { openEngine } from "lossless-claw";
import type { Embed, EmbedRequest, EmbedResult, Engine, EngineEvent } from "@lossless/core";
import {
  dotProduct,
  NearestList,
  normalizeVector,
  vectorFromBytes,
  vectorToBytes,
} from "../../src/model/vector.ts";
import type { Neighbour } from "../../src/model/vector.ts";
import { findNearest } from "../../src/recall/vector-search.ts";
import { SqliteStore } from "@lossless/sqlite";
import { makeTemporaryFolder } from "@lossless/testkit";
import type { TemporaryFolder } from "@lossless/testkit";
import { makeTopicVectors, spellVector } from "@lossless/testkit/fake-embedder.ts";
import { fc } from "@lossless/testkit/properties.ts";
import { isSoak } from "@lossless/testkit/rounds.ts";
import { readdirSync, readFileSync, statSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { main, other, say } from "./archive.ts";

/** A search looks at some two thousand vectors at once. */
const TWO_STRETCHES = 2_500;

type Reply = EmbedResult | "throw" | "silence";

/** A port that answers with known vectors and can be told to fail. */
class KnownVectors {
  readonly requests: EmbedRequest[] = [];
  replies: (Reply | null)[] = [];
  vectorOf: (text: string, model: string) => readonly number[];

  constructor(vectorOf: (text: string, model: string) => readonly number[] = spellVector) {
    this.vectorOf = vectorOf;
  }

  get embed(): Embed {
    return async (request, signal) => {
      this.requests.push(request);
      const reply = this.replies.shift() ?? null;
      if (reply === "throw") throw new Error("broken port");
      if (reply === "silence")
        return new Promise<EmbedResult>((resolve) => {
          signal.addEventListener("abort", () =>
            resolve({ kind: "failure", failure: "aborted", message: "cancelled" }),
          );
        });
      if (reply !== null) return reply;
      return {
        kind: "vectors",
        vectors: request.texts.map((text) => Float32Array.from(this.vectorOf(text, request.model))),
        usage: { inputTokens: request.texts.length * 10 },
      };
    };
  }
}

const failure = (
  kind: "rate_limited" | "unavailable" | "overflow" | "auth",
  retryAfterMs?: number,
): EmbedResult => ({
  kind: "failure",
  failure: kind,
  message: `scripted ${kind}`,
  retryAfterMs,
});

let folder: TemporaryFolder;
let events: EngineEvent[];

beforeEach(() => {
  folder = makeTemporaryFolder();
  events = [];
});
afterEach(() => folder[Symbol.dispose]());

interface OpenOptions {
  readonly embed?: Embed | null;
  readonly model?: string | null;
  readonly settings?: Record<string, unknown>;
  readonly thread?: boolean;
  readonly file?: string;
}

async function open(options: OpenOptions = {}): Promise<Engine> {
  const database = folder.file(options.file ?? "lcm.db");
  const model = options.model === undefined ? "model-a" : options.model;
  const { settings } = resolveSettings({
    env: {},
    config: {
      databasePath: database,
      ...(model === null ? {} : { embedding: { baseUrl: "http://127.0.0.1:1", model } }),
      ...options.settings,
    },
  });
  return openEngine({
    database,
    settings,
    thread: options.thread ?? false,
    embed: options.embed ?? null,
    onEvent: (event) => events.push(event),
    ...(options.thread ? {} : { embedRetryMs: 0 }),
  });
}

/** Without a port, so that nothing is embedded before a test says so. */
async function store(texts: readonly string[], session = main): Promise<void> {
  const engine = await open();
  await engine.ingest({
    session,
    messages: texts.map((text, i) => say(`${session.owner}${i}`, "user", text)),
  });
  await engine.close();
}

const numbered = (count: number): string[] =>
  Array.from({ length: count }, (_, i) => `note ${i} abcdefghij`.slice(0, 12 + (i % 8)));

const GARDEN = makeTopicVectors([
  ["cat", "kitten", "feline"],
  ["invoice", "payment", "bill"],
  ["rain", "storm", "weather"],
]);

describe("arithmetic", () => {
  const number = fc.float({ noNaN: true, noDefaultInfinity: true, min: -100, max: 100 });

  test("brings every vector that has a direction to length one and keeps the direction", () => {
    fc.assert(
      fc.property(
        fc.float32Array({ minLength: 1, maxLength: 40, noNaN: true, min: -1000, max: 1000 }),
        (vector) => {
          const unit = normalizeVector(vector);
          if (unit === null) {
            expect(vector.every((value) => Math.abs(value) < 1e-18)).toBe(true);
            return;
          }
          expect(dotProduct(unit, unit)).toBeCloseTo(1, 4);
          expect(dotProduct(unit, vector)).toBeGreaterThan(0);
          expect(vectorFromBytes(Uint8Array.from(vectorToBytes(unit)))).toEqual(unit);
        },
      ),
    );
    expect(normalizeVector(Float32Array.of(0, 0))).toBeNull();
    expect(normalizeVector(Float32Array.of(Number.NaN, 1))).toBeNull();
  });

  test("keeps the best of any number of neighbours, and their equals", () => {
    const score = fc.oneof(number, fc.nat(3));
    fc.assert(
      fc.property(fc.array(score, { maxLength: 300 }), fc.integer({ min: 1, max: 20 }), (scores, limit) => {
        const list = new NearestList(limit);
        scores.forEach((one, id) => list.add(id, one));
        const sorted = scores
          .map((one, id) => ({ id, score: one }))
          .toSorted((a, b) => b.score - a.score || a.id - b.id);
        const least = sorted[limit - 1]?.score ?? -Infinity;
        expect(list.list()).toEqual(sorted.filter((one) => one.score >= least));
      }),
    );
  });
});

describe("filling", () => {
  test("sends messages in batches, oldest first, and says what it cost", async () => {
    await store(numbered(100));
    const known = new KnownVectors();
    const engine = await open({ embed: known.embed });
    const seen: number[] = [];
    const answer = await engine.embedMessages({ onProgress: (done) => seen.push(done) });
    expect(answer).toMatchObject({
      kind: "filled",
      embedded: 100,
      skipped: 0,
      calls: 4,
      inputTokens: 1000,
      failure: null,
    });
    expect(known.requests.map(({ texts }) => texts.length)).toEqual([32, 32, 32, 4]);
    expect(known.requests.flatMap(({ texts }) => texts)).toEqual(numbered(100));
    expect(seen).toEqual([0, 32, 64, 96, 100]);
    expect(await engine.spend({ by: "purpose" })).toMatchObject([
      { key: "embed", calls: 4, inputTokens: 1000 },
    ]);
    expect(await engine.embedStatus()).toMatchObject({
      model: "model-a",
      messages: 100,
      left: 0,
      spaces: [{ model: "model-a", dimensions: 26, vectors: 100, isFilled: true, serves: true }],
    });
    expect((await engine.verify()).problems).toEqual([]);
    expect(await engine.embedMessages()).toMatchObject({ kind: "filled", embedded: 0, calls: 0 });
    await engine.close();
  });

  test("goes on where it stopped, whatever stopped it, and asks for no message twice that has its vector", async () => {
    const stops = fc.array(
      fc.tuple(fc.nat({ max: 3 }), fc.constantFrom("auth", "throw", "abort", "close" as const)),
      {
        maxLength: 6,
      },
    );
    let round = 0;
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 1, max: 150 }), stops, async (count, plan) => {
        const file = `resume-${round++}.db`;
        const first = await open({ file });
        await first.ingest({
          session: main,
          messages: numbered(count).map((text, i) => say(`e${i}`, "user", text)),
        });
        await first.close();
        const embedded: string[] = [];
        const known = new KnownVectors((text) => {
          embedded.push(text);
          return spellVector(text);
        });
        for (const [after, how] of [...plan, [0, "run"] as const]) {
          const controller = new AbortController();
          let calls = 0;
          const embed: Embed = async (request, signal) => {
            if (calls++ === after && how !== "run") {
              if (how === "abort") controller.abort();
              // The fifth refusal in a row is the last that is tried.
              if (how === "throw") throw new Error("broken port");
              return { kind: "failure", failure: how === "close" ? "denied" : "auth", message: "no" };
            }
            if (how === "throw" && calls > after) throw new Error("broken port");
            return known.embed(request, signal);
          };
          const engine = await open({ file, embed });
          const answer = await engine.embedMessages({ signal: controller.signal });
          if (how === "run") expect(answer.kind).toBe("filled");
          await engine.close();
        }
        expect(embedded.toSorted()).toEqual(numbered(count).toSorted());
        const engine = await open({ file });
        expect((await engine.embedStatus()).left).toBe(0);
        expect((await engine.verify()).problems).toEqual([]);
        await engine.close();
      }),
      { numRuns: isSoak ? 15 : 5 },
    );
  });

  test("waits as a rate limit asks, and gives up on one that stays", async () => {
    await store(numbered(40));
    const known = new KnownVectors();
    known.replies = [failure("rate_limited", 1), failure("unavailable"), null];
    const engine = await open({ embed: known.embed });
    expect(await engine.embedMessages()).toMatchObject({ kind: "filled", embedded: 40, calls: 4 });
    await engine.ingest({ session: main, messages: [say("late", "user", "late one")] });
    known.replies = Array.from({ length: 10 }, () => failure("rate_limited", 0));
    await engine.close();
    const again = await open({ embed: known.embed });
    expect(await again.embedMessages()).toMatchObject({
      kind: "stopped",
      embedded: 0,
      calls: 5,
      failure: { failure: "rate_limited", message: "scripted rate_limited" },
    });
    await again.close();
  });

  test("halves what is too long for the model, and passes over what it takes in no length", async () => {
    await store(["short", "x".repeat(4_000), "y".repeat(150)]);
    const known = new KnownVectors();
    const embed: Embed = (request, signal) =>
      request.texts.some((text) => text.length > 1_000 || text.startsWith("y"))
        ? Promise.resolve(failure("overflow"))
        : known.embed(request, signal);
    const engine = await open({ embed });
    expect(await engine.embedMessages()).toMatchObject({ kind: "filled", embedded: 2, skipped: 1 });
    expect(known.requests.flatMap(({ texts }) => texts.map((text) => text.length))).toEqual([5, 1_000]);
    await engine.close();
  });

  test.each([
    [
      "another length than before",
      (texts: readonly string[]) => texts.map(() => Float32Array.of(1, 2)),
      /returned vectors of 2 dimensions, earlier ones have 26/,
    ],
    ["too few", () => [], /32 texts were sent and 0 vectors returned/],
    ["zeros", (texts: readonly string[]) => texts.map(() => new Float32Array(26)), /only zeros/],
    [
      "no numbers",
      (texts: readonly string[]) => texts.map(() => new Float32Array(26).fill(Number.NaN)),
      /not a number/,
    ],
  ])("refuses vectors that cannot be right: %s", async (_name, vectorsFor, message) => {
    await store(numbered(64));
    const known = new KnownVectors();
    const embed: Embed = (request, signal) =>
      known.requests.length === 0
        ? known.embed(request, signal)
        : Promise.resolve({
            kind: "vectors",
            vectors: vectorsFor(request.texts),
            usage: { inputTokens: null },
          });
    const engine = await open({ embed });
    const answer = await engine.embedMessages();
    expect(answer).toMatchObject({ kind: "stopped", embedded: 32, failure: { failure: "invalid_response" } });
    expect(answer.failure?.message).toMatch(message);
    expect((await engine.verify()).problems).toEqual([]);
    await engine.close();
  });

  test("one process fills at a time; a dead one loses its claim", async () => {
    await store(numbered(3));
    const known = new KnownVectors();
    const engine = await open({ embed: known.embed });
    const direct = new SqliteStore({ path: folder.file("lcm.db"), filesDir: folder.file("lcm-files") });
    await direct.claimVectorSpace({
      model: "model-a",
      holder: "elsewhere",
      now: Date.now(),
      leaseMs: 60_000,
    });
    expect(await engine.embedMessages()).toMatchObject({ kind: "busy", calls: 0 });
    await direct.claimVectorSpace({ model: "model-a", holder: "elsewhere", now: Date.now(), leaseMs: -1 });
    expect(await engine.embedMessages()).toMatchObject({ kind: "filled", embedded: 3 });
    await direct.close();
    await engine.close();
  });

  test("stops at the cap of the day, and does not use up the calls of the summariser", async () => {
    await store(numbered(100));
    const known = new KnownVectors();
    const engine = await open({ embed: known.embed, settings: { spendMaxTokensPerDay: 600 } });
    const answer = await engine.embedMessages();
    expect(answer).toMatchObject({ kind: "stopped", embedded: 64, failure: { failure: "denied" } });
    expect(answer.failure?.message).toContain("spendMaxTokensPerDay");
    await engine.close();
    const direct = new SqliteStore({ path: folder.file("lcm.db"), filesDir: folder.file("lcm-files") });
    expect(await direct.countSpendCalls(0)).toBe(0);
    await direct.close();
  });

  test("happens in the background when messages are stored, and only then", async () => {
    const known = new KnownVectors();
    const engine = await open({ embed: known.embed });
    expect(known.requests).toEqual([]);
    await engine.ingest({
      session: main,
      messages: numbered(40).map((text, i) => say(`e${i}`, "user", text)),
    });
    await expect.poll(async () => (await engine.embedStatus()).left).toBe(0);
    await engine.ingest({ session: main, messages: [say("more", "user", "one more")] });
    await expect.poll(async () => (await engine.embedStatus()).left).toBe(0);
    expect(known.requests.flatMap(({ texts }) => texts)).toEqual([...numbered(40), "one more"]);
    await engine.close();
  });

  test("reaches a message in the background whatever its id is, and one that is shown again", async () => {
    const known = new KnownVectors();
    const engine = await open({ embed: known.embed });
    await engine.ingest({
      session: main,
      messages: ["one", "two", "three"].map((text, i) => say(`e${i}`, "user", text)),
    });
    await expect.poll(async () => (await engine.embedStatus()).left, { timeout: 30_000 }).toBe(0);
    // As if the first had been committed last, under its lower id.
    const database = new DatabaseSync(folder.file("lcm.db"));
    database.exec(
      "DELETE FROM message_vectors WHERE message_id = 1; INSERT INTO vectors_pending VALUES (1, 1)",
    );
    database.close();
    await engine.setBranch({ session: main, offBranch: ["e1"] });
    await engine.setBranch({ session: main, offBranch: [] });
    expect((await engine.embedStatus()).left).toBe(2);
    await engine.ingest({ session: main, messages: [say("more", "user", "four")] });
    await expect.poll(async () => (await engine.embedStatus()).left, { timeout: 30_000 }).toBe(0);
    await engine.close();
  });

  test("reaches a message in the background that is shown while others are being embedded", async () => {
    const known = new KnownVectors();
    let isShown = false;
    const embed: Embed = async (request, signal) => {
      if (request.texts.includes("three")) await engine.setBranch({ session: main, offBranch: [] });
      isShown ||= request.texts.includes("three");
      return known.embed(request, signal);
    };
    const engine = await open({ embed });
    await engine.ingest({ session: main, messages: [say("e0", "user", "one")] });
    await expect.poll(async () => (await engine.embedStatus()).left, { timeout: 30_000 }).toBe(0);
    const hidden = { ...say("e1", "user", "two"), hidden: ["branch" as const] };
    await engine.ingest({ session: main, messages: [hidden, say("e2", "user", "three")] });
    await expect.poll(() => isShown, { timeout: 30_000 }).toBe(true);
    await expect.poll(async () => (await engine.embedStatus()).left, { timeout: 30_000 }).toBe(0);
    await engine.close();
  });

  test("tells of trouble in the background once, and stores all the same", async () => {
    const known = new KnownVectors();
    known.replies = [failure("auth"), failure("auth")];
    const engine = await open({ embed: known.embed });
    for (const id of ["a", "b", "c"]) await engine.ingest({ session: main, messages: [say(id, "user", id)] });
    await expect.poll(() => events.some((event) => event.kind === "degraded")).toBe(true);
    await engine.ingest({ session: main, messages: [say("d", "user", "d")] });
    await engine.close();
    expect(events.filter((event) => event.kind === "degraded")).toMatchObject([
      { part: "vectors", message: "messages are stored but get no vectors: scripted auth" },
    ]);
  });

  test("is off by default: no port is asked, no space is made", async () => {
    const known = new KnownVectors();
    const engine = await open({ embed: known.embed, model: null });
    await engine.ingest({ session: main, messages: [say("a", "user", "the cat sat")] });
    const answer = await engine.grep({ session: main, pattern: "feline habits?", mode: "full_text" });
    expect(JSON.stringify(answer.notes)).not.toContain("meaning");
    await expect(engine.embedMessages()).rejects.toMatchObject({ code: "config" });
    expect(await engine.embedStatus()).toMatchObject({ model: null, spaces: [] });
    await engine.close();
    expect(known.requests).toEqual([]);
  });
});

describe("what has a vector", () => {
  test("not what is hidden; its newest version where a message was revised; nothing of what was forgotten", async () => {
    const known = new KnownVectors();
    const engine = await open({ embed: known.embed });
    const messages = ["alpha", "beta", "gamma", "delta"].map((text, i) => say(`e${i}`, "user", text));
    await engine.ingest({
      session: main,
      messages: [...messages, { ...say("h", "user", "hidden"), hidden: ["meta"] }],
    });
    await engine.embedMessages();
    const texts = (): string[] => known.requests.flatMap((request) => request.texts);
    expect(texts()).toEqual(["alpha", "beta", "gamma", "delta"]);
    await engine.ingest({ session: main, messages: [say("e1", "user", "beta, corrected")] });
    await engine.setBranch({ session: main, offBranch: ["e2"] });
    expect((await engine.verify()).problems).toEqual([]);
    await engine.embedMessages();
    expect(texts().slice(4)).toEqual(["beta, corrected"]);
    await engine.ingest({ session: main, messages: [say("e1", "user", "beta, corrected again")] });
    expect((await engine.verify()).problems).toEqual([]);
    await engine.embedMessages();
    expect(texts().slice(5)).toEqual(["beta, corrected again"]);
    const { hits } = await engine.grep({ session: main, pattern: "delta", mode: "full_text" });
    await engine.forget({ messageIds: [Number(hits[0]?.id.slice(4))], reason: "test" });
    expect((await engine.verify()).problems).toEqual([]);
    expect(await engine.embedStatus()).toMatchObject({ messages: 2, left: 0 });
    const gone = vectorToBytes(normalizeVector(Float32Array.from(spellVector("delta"))) as Float32Array);
    const files = readdirSync(folder.path).map((name) => folder.file(name));
    expect(
      files.filter((file) => statSync(file).isFile() && readFileSync(file).includes(Buffer.from(gone))),
    ).toEqual([]);
    // Shown again, it gets its vector with the next whole run.
    await engine.setBranch({ session: main, offBranch: [] });
    await engine.embedMessages();
    expect(texts().slice(6)).toEqual(["gamma"]);
    await engine.close();
  });

  test("what was redacted is not sent", async () => {
    const known = new KnownVectors();
    const settings = { redactPatterns: ["sekret-[0-9]+"] };
    const engine = await open({ embed: known.embed, settings });
    await engine.ingest({ session: main, messages: [say("e", "user", "the word is sekret-4711, keep it")] });
    await engine.embedMessages();
    expect(known.requests).toHaveLength(1);
    expect(JSON.stringify(known.requests)).toContain("keep it");
    expect(JSON.stringify(known.requests)).not.toContain("4711");
    await engine.close();
  });

  test("a text that is forgotten while its vector is being made gets none", async () => {
    await store(["alpha", "omega"]);
    const known = new KnownVectors();
    let engine: Engine | null = null;
    const embed: Embed = async (request, signal) => {
      await engine?.forget({ messageIds: [2], reason: "test" });
      return known.embed(request, signal);
    };
    engine = await open({ embed });
    expect(await engine.embedMessages()).toMatchObject({ kind: "filled", embedded: 1 });
    expect((await engine.verify()).problems).toEqual([]);
    await engine.close();
  });

  test("the proof names vectors that should not be there, or are not what they should be", async () => {
    await store(["alpha", "beta", "gamma"]);
    const engine = await open({ embed: new KnownVectors().embed });
    await engine.embedMessages();
    await engine.close();
    const database = new DatabaseSync(folder.file("lcm.db"));
    database.exec("UPDATE messages SET hidden_now = 8 WHERE message_id = 1");
    database.exec("UPDATE message_vectors SET vector = x'0000803f' WHERE message_id = 2");
    database.exec("UPDATE message_vectors SET vector = zeroblob(104) WHERE message_id = 3");
    database.close();
    const damaged = await open();
    const problems = (await damaged.verify()).problems.filter(({ code }) => code === "vector");
    expect(problems.map(({ message }) => message)).toEqual([
      "msg_1 has a vector of model-a but should have none",
      "the vector of msg_2 has 1 dimensions, those of model-a have 26",
      "the vector of msg_3 is not of length one",
    ]);
    await damaged.close();
  });

  test("all of them can be removed", async () => {
    await store(numbered(20));
    const engine = await open({ embed: new KnownVectors().embed });
    await engine.embedMessages();
    expect(await engine.dropVectors()).toBe(1);
    expect(await engine.embedStatus()).toMatchObject({ left: 20, spaces: [] });
    expect(await engine.embedMessages()).toMatchObject({ embedded: 20 });
    await engine.close();
  });
});

describe("neighbours", () => {
  test("are exactly those a comparison with every vector finds, in any scope", async () => {
    const component = fc.integer({ min: -8, max: 8 });
    const vector = fc
      .array(component, { minLength: 3, maxLength: 3 })
      .filter((values) => values.some((value) => value !== 0));
    const message = fc.record({
      vector,
      owner: fc.boolean(),
      role: fc.constantFrom("user", "assistant"),
      key: fc.nat({ max: 2 }),
    });
    let round = 0;
    await fc.assert(
      fc.asyncProperty(
        fc.array(message, { minLength: 1, maxLength: 60 }),
        vector,
        fc.integer({ min: 1, max: 12 }),
        async (messages, asked, limit) => {
          const file = `nearest-${round++}.db`;
          const engine = await open({
            file,
            embed: new KnownVectors((text) => JSON.parse(text) as number[]).embed,
          });
          const placed: {
            id: number;
            conversationId: number;
            owner: string;
            role: string;
            at: number;
            vector: number[];
          }[] = [];
          for (const [i, { owner, role, key, vector: values }] of messages.entries()) {
            const session = { ...(owner ? main : other), key: `agent:x:${key}`, id: `s${key}` };
            const text = JSON.stringify(values);
            const { conversationId, results } = await engine.ingest({
              session,
              messages: [say(`e${i}`, role, text, i)],
            });
            placed.push({
              id: results[0]?.messageId ?? 0,
              conversationId,
              owner: session.owner,
              role,
              at: i,
              vector: values,
            });
          }
          await engine.embedMessages();
          const direct = new SqliteStore({ path: folder.file(file), filesDir: folder.file("lcm-files") });
          const [space] = await direct.listVectorSpaces();
          const unit = normalizeVector(Float32Array.from(asked)) as Float32Array;
          const meaning = { kind: "vector", spaceId: space?.spaceId ?? 0, model: "", vector: unit } as const;
          const base = Date.UTC(2026, 2, 1, 9);
          const scopes = [
            { scope: {}, sees: () => true },
            { scope: { owner: "main" }, sees: (row: (typeof placed)[number]) => row.owner === "main" },
            {
              scope: { conversationIds: [1, 3] },
              sees: (row: (typeof placed)[number]) => [1, 3].includes(row.conversationId),
            },
            {
              scope: { owner: "other", role: "user" },
              sees: (row: (typeof placed)[number]) => row.owner === "other" && row.role === "user",
            },
            { scope: { since: base + 5 * 3_600_000 }, sees: (row: (typeof placed)[number]) => row.at >= 5 },
          ];
          for (const { scope, sees } of scopes) {
            const found = await findNearest(direct, meaning, scope, { limit });
            const scoreOf = (values: readonly number[]): number =>
              dotProduct(normalizeVector(Float32Array.from(values)) as Float32Array, unit);
            const all = placed.filter(sees).map((row) => ({ id: row.id, score: scoreOf(row.vector) }));
            expect(found).toEqual(all.toSorted((a, b) => b.score - a.score || a.id - b.id).slice(0, limit));
          }
          await direct.close();
          await engine.close();
        },
      ),
      { numRuns: isSoak ? 12 : 6 },
    );
  });

  test("are the same by codes as by comparing all, while vectors come and go", async () => {
    const random = (seed: number): number[] =>
      Array.from({ length: 96 }, (_, at) => Math.sin((seed + 1) * 12.9898 + at * 78.233 * (seed + 3)));
    const seeds = (from: number, count: number): string[] =>
      Array.from({ length: count }, (_, i) => `${from + i}`);
    const known = isSoak ? 4_500 : TWO_STRETCHES;
    await store(seeds(0, known));
    const engine = await open({ embed: new KnownVectors((text) => random(Number(text))).embed });
    await engine.embedMessages();
    const direct = new SqliteStore({ path: folder.file("lcm.db"), filesDir: folder.file("lcm-files") });
    const nearest = async (seed: number, isExact: boolean): Promise<Neighbour[]> => {
      const vector = normalizeVector(Float32Array.from(random(seed))) as Float32Array;
      const best = new NearestList(20);
      for (let after: string | null = null; ;) {
        const request = { spaceId: 1, vector, scope: {}, limit: 20, after, isExact };
        const scan: Awaited<ReturnType<SqliteStore["scanVectors"]>> = await direct.scanVectors(request);
        for (const { id, score } of scan.nearest) best.add(id, score);
        if (scan.next === null) return best.list();
        after = scan.next;
      }
    };
    const compare = async (...asked: readonly number[]): Promise<void> => {
      for (const seed of asked) expect(await nearest(seed, false)).toEqual(await nearest(seed, true));
    };
    await compare(90_000, 3, known - 100);
    await store(seeds(known, 100));
    await engine.embedMessages();
    await compare(known + 10, 90_001);
    // The newest vectors go, and their numbers are given to others.
    const newest = new DatabaseSync(folder.file("lcm.db"));
    newest.exec(
      "DELETE FROM message_vectors WHERE vector_id > (SELECT max(vector_id) - 50 FROM message_vectors)",
    );
    newest.close();
    await store(seeds(known + 100, 60));
    await engine.embedMessages();
    await compare(known + 90, known + 110, known + 155, 90_002);
    await direct.close();
    await engine.close();
  });

  test("are found across stretches, and the search between them can be cancelled", async () => {
    const count = isSoak ? 5_000 : TWO_STRETCHES;
    await store(Array.from({ length: count }, (_, i) => JSON.stringify([Math.cos(i), Math.sin(i)])));
    const engine = await open({ embed: new KnownVectors((text) => JSON.parse(text) as number[]).embed });
    await engine.embedMessages();
    const direct = new SqliteStore({ path: folder.file("lcm.db"), filesDir: folder.file("lcm-files") });
    const meaning = { kind: "vector", spaceId: 1, model: "", vector: Float32Array.of(1, 0) } as const;
    const best = Array.from({ length: count }, (_, i) => ({ id: i + 1, score: Math.cos(i) })).toSorted(
      (a, b) => b.score - a.score,
    );
    for (const scope of [{}, { conversationIds: [1] }]) {
      const found = await findNearest(direct, meaning, scope, { limit: 20 });
      expect(found.map(({ id }) => id)).toEqual(best.slice(0, 20).map(({ id }) => id));
    }
    const controller = new AbortController();
    const scan = direct.scanVectors.bind(direct);
    let stretches = 0;
    direct.scanVectors = async (request) => {
      stretches += 1;
      controller.abort();
      return scan(request);
    };
    await findNearest(direct, meaning, {}, { signal: controller.signal });
    expect(stretches).toBe(1);
    await direct.close();
    await engine.close();
  });
});

const TALK = [
  "My kitten sleeps on the keyboard all day.",
  "The printer needs a new cartridge.",
  "We got the bill from the plumber, it is far too high.",
  "Tomorrow a storm comes in from the sea.",
  "I painted the fence green.",
];

describe("a question", () => {
  test("keeps the first seven that words found, whatever lies near by vector", async () => {
    const spoken = Array.from({ length: 8 }, (_, i) => `The boiler was serviced, visit ${i}.`);
    await store([...spoken, "nothing alike"]);
    const odd = new KnownVectors((text) => (text.includes("alike") || text.includes("?") ? [1, 0] : [0, 1]));
    const engine = await open({ embed: odd.embed });
    await engine.embedMessages();
    const request = { session: main, pattern: "When was the boiler serviced?", mode: "full_text" } as const;
    const { hits } = await engine.grep({ ...request, sort: "relevance" });
    expect(hits.slice(0, 7).every(({ foundBy }) => foundBy.includes("words"))).toBe(true);
    expect(hits.map(({ snippet }) => snippet)).toContain("nothing alike");
    await engine.close();
  });

  test.each([false, true])(
    "finds what shares no word with it, and says what found it (behind a thread: %s)",
    async (thread) => {
      await store(TALK);
      await store(["Another agent's feline friend."], other);
      const known = new KnownVectors(GARDEN);
      const engine = await open({ embed: known.embed, thread });
      await engine.embedMessages();
      const answer = await engine.grep({
        session: main,
        pattern: "What does the feline do?",
        mode: "full_text",
      });
      expect(answer.rule).toBe("fused");
      expect(answer.hits[0]).toMatchObject({ id: "msg_1", foundBy: ["vector"] });
      expect(answer.hits.map(({ id }) => id)).not.toContain("msg_6");
      const asked = await engine.ask({ session: main, prompt: "What does the feline do?" });
      expect(asked.passages[0]?.id).toBe("msg_1");
      expect(asked.notes).toEqual([]);
      expect((await engine.spend({ by: "purpose" }))[0]).toMatchObject({ key: "embed", calls: 3 });
      expect(known.requests.at(-1)).toMatchObject({
        model: "model-a",
        purpose: "question",
        texts: ["What does the feline do?"],
      });
      await engine.close();
    },
  );

  test("whose keywords are all found costs nothing and stays exact", async () => {
    await store([...TALK, ...Array.from({ length: 6 }, (_, i) => `feline ${i}`)]);
    const known = new KnownVectors(GARDEN);
    const engine = await open({ embed: known.embed });
    await engine.embedMessages();
    const before = known.requests.length;
    const answer = await engine.grep({ session: main, pattern: "feline", mode: "full_text" });
    expect(answer).toMatchObject({ rule: "strict", total: 6 });
    expect(known.requests).toHaveLength(before);
    await engine.close();
  });

  test("puts what holds every keyword before what is only near", async () => {
    await store([...TALK, "feline payment terms"]);
    const engine = await open({ embed: new KnownVectors(GARDEN).embed });
    await engine.embedMessages();
    const { hits } = await engine.grep({ session: main, pattern: "feline payment", mode: "full_text" });
    expect(hits.map(({ id, foundBy }) => [id, foundBy])).toEqual([
      ["msg_6", ["words", "vector"]],
      ["msg_1", ["vector"]],
      ["msg_3", ["vector"]],
      ["msg_2", ["vector"]],
      ["msg_5", ["vector"]],
      ["msg_4", ["vector"]],
    ]);
    await engine.close();
  });

  test.each([
    ["a failure", failure("unavailable"), "scripted unavailable"],
    ["a port that throws", "throw" as const, "broken port"],
    [
      "a vector of another length",
      { kind: "vectors", vectors: [Float32Array.of(1)], usage: { inputTokens: 1 } } as const,
      "returned a vector of 1 dimensions",
    ],
  ])("is answered by words after %s, and says so", async (_name, reply, why) => {
    await store(TALK);
    const known = new KnownVectors(GARDEN);
    const engine = await open({ embed: known.embed });
    await engine.embedMessages();
    known.replies = [reply];
    const pattern = "which printer cartridge was it?";
    const answer = await engine.grep({ session: main, pattern, mode: "full_text" });
    expect(answer.rule).toBe("relaxed");
    expect(answer.hits[0]).toMatchObject({ id: "msg_2", foundBy: ["words"] });
    expect(answer.notes.map(({ text }) => text).join(" ")).toContain(
      `Only words were searched, not meaning: `,
    );
    expect(answer.notes.map(({ text }) => text).join(" ")).toContain(why);
    const calls = known.requests.length;
    const asked = await engine.ask({ session: main, prompt: pattern });
    expect(asked.notes).toEqual([
      "Only words were searched, not meaning: the last call failed a moment ago.",
    ]);
    expect(known.requests).toHaveLength(calls);
    await engine.close();
  });

  test("that is cancelled while it waits for its vector is answered by words", async () => {
    await store(TALK);
    const known = new KnownVectors(GARDEN);
    const engine = await open({ embed: known.embed });
    await engine.embedMessages();
    known.replies = ["silence"];
    const controller = new AbortController();
    const waiting = engine.embedQuestion({ text: "feline?", signal: controller.signal });
    controller.abort();
    expect(await waiting).toEqual({
      kind: "none",
      note: "Only words were searched, not meaning: the call was cancelled.",
    });
    await engine.close();
  });

  test("gets no vector in summaries and files, and none is paid for", async () => {
    await store(TALK);
    const known = new KnownVectors(GARDEN);
    const engine = await open({ embed: known.embed });
    await engine.embedMessages();
    const before = known.requests.length;
    await engine.grep({ session: main, pattern: "feline?", mode: "full_text", scope: "summaries" });
    await engine.grep({ session: main, pattern: "feline", mode: "full_text", scope: "files" });
    expect(known.requests).toHaveLength(before);
    await engine.close();
  });
});

test("another model is filled beside the old one, which serves until the new one is complete", async () => {
  await store([...TALK, ...numbered(60)]);
  const dimensions = (text: string, model: string): number[] => [
    ...GARDEN(text, model),
    ...(model === "model-b" ? [0] : []),
  ];
  const known = new KnownVectors(dimensions);
  const first = await open({ embed: known.embed });
  await first.embedMessages();
  await first.close();

  const changed = await open({ embed: known.embed, model: "model-b" });
  known.replies = [null, failure("auth")];
  expect(await changed.embedMessages()).toMatchObject({ kind: "stopped", embedded: 32 });
  expect((await changed.embedStatus()).spaces).toMatchObject([
    { model: "model-a", vectors: 65, isFilled: true, serves: true },
    { model: "model-b", dimensions: 5, vectors: 32, isFilled: false, serves: false },
  ]);
  const pattern = "What does the feline do?";
  const old = await changed.grep({ session: main, pattern, mode: "full_text" });
  expect(old.hits[0]).toMatchObject({ id: "msg_1", foundBy: ["vector"] });
  expect(known.requests.at(-1)?.model).toBe("model-a");

  expect(await changed.embedMessages()).toMatchObject({ kind: "filled", embedded: 33 });
  expect((await changed.embedStatus()).spaces).toMatchObject([
    { model: "model-b", vectors: 65, isFilled: true, serves: true },
  ]);
  const fresh = await changed.grep({ session: main, pattern, mode: "full_text" });
  expect(fresh.hits[0]).toMatchObject({ id: "msg_1", foundBy: ["vector"] });
  expect(known.requests.at(-1)?.model).toBe("model-b");
  expect((await changed.verify()).problems).toEqual([]);
  await changed.close();
});

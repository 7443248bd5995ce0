/**
 * Documents that are as good as each other: which of them take part, and in which order, is decided by when they were said and where they stand. A server
 * gives ids out in any order, so that an archive in which they differ must give the same answers as one in SQLite and one in memory.
 */
import type { Arrival, Engine, GrepRequest } from "@lossless/core";
import { makeOpenEngine } from "@lossless/core/ports";
import type { OpenStore, Store } from "@lossless/core/ports";
import { resolveSettings } from "@lossless/core";
import { deriveMessage } from "@lossless/core/testing";
import { makeTemporaryDirectory } from "@lossless/testkit";
import { batchOf, makeEvent, say as sayText } from "@lossless/testkit/contract/parts.ts";
import { openMemoryStore } from "@lossless/testkit/memory-store.ts";
import { describePostgres } from "@lossless/testkit/postgres-server.ts";
import { openStore } from "lossless-claw";
import { expect, onTestFinished, test } from "vitest";
import { openPostgresStore } from "../src/postgres-store.ts";
import { START } from "./speak.ts";

const OWNER = "main";
/** When every event of the contract was said. */
const SAID_AT = 1_700_000_000_000;
/** More than a search looks at closely, and than vectors have neighbours. */
const EACH = 250;
const SEEDS = 400;
const PAGE = 200;
const LANES = ["falling", "rising", "even"] as const;
type Lane = (typeof LANES)[number];

/** The first was said after the second; ids of the first run against time. All of the third was said at once. */
const TIMES: Readonly<Record<Lane, (at: number) => number>> = {
  falling: (at) => START + 9_000_000 - at * 1_000,
  rising: (at) => START + at * 1_000,
  even: () => START + 5_000_000,
};

const say = (lane: Lane, at: number): Arrival => ({
  eventId: `${lane} ${at}`,
  createdAt: TIMES[lane](at),
  message: { role: "user", content: "the tides of the harbour" },
});

/** The first of what was said at once is revised last: its id is the highest, its place is the first. */
async function fill(engine: Engine, lanes: readonly Lane[]): Promise<void> {
  for (const lane of lanes) {
    const session = { key: lane, id: lane, owner: OWNER };
    const messages = Array.from({ length: EACH }, (_, at) => say(lane, at));
    await engine.ingest({ session, messages });
    const [first] = messages;
    const message = { role: "user", content: "again the tides of the harbour" };
    if (lane === "even" && first) await engine.ingest({ session, messages: [{ ...first, message }] });
  }
}

/** All pages of an answer; what was found has its name by whom and when it was said. */
async function list(engine: Engine, request: GrepRequest): Promise<string[]> {
  const found: string[] = [];
  for (let after: string | undefined; ;) {
    const page = await engine.grep({
      scope: "messages",
      allConversations: true,
      limit: PAGE,
      ...request,
      after,
    });
    found.push(...page.hits.map((hit) => (hit.type === "message" ? hit.eventId : hit.id)));
    if (page.next === null) return found;
    after = page.next;
  }
}

describePostgres("documents that are as good as each other", (server) => {
  async function open(openOne: OpenStore, lanes: readonly Lane[], withVectors: boolean): Promise<Engine> {
    const database = `${makeTemporaryDirectory()}/lcm.db`;
    const embedding = withVectors ? { baseUrl: "http://127.0.0.1:1", model: "same" } : {};
    const { settings } = resolveSettings({ env: {}, config: { databasePath: database, embedding } });
    const engine = await makeOpenEngine({ openStore: openOne, workerUrl: new URL("file:///none") })({
      database,
      settings,
      thread: false,
      embed: ({ texts }) =>
        Promise.resolve({
          kind: "vectors",
          vectors: texts.map(() => Float32Array.of(1, 0)),
          usage: { inputTokens: 1 },
        }),
    });
    onTestFinished(() => engine.close());
    await fill(engine, lanes);
    if (withVectors) await engine.embedMessages();
    return engine;
  }

  async function openAll(withVectors: boolean): Promise<Engine[]> {
    const address = await server.createDatabase();
    const onServer: OpenStore = (_path, options) =>
      openPostgresStore({ ...options, address }) as Promise<unknown> as Promise<Store>;
    return [
      await open(openStore, LANES, withVectors),
      await open(onServer, LANES.toReversed(), withVectors),
      await open(() => Promise.resolve(openMemoryStore(deriveMessage)), LANES, withVectors),
    ];
  }

  /** The same from all; what SQLite says. */
  async function askAll(engines: readonly Engine[], request: GrepRequest): Promise<string[]> {
    const [expected = [], ...others] = await Promise.all(engines.map((engine) => list(engine, request)));
    for (const found of others) expect(found).toEqual(expected);
    return expected;
  }

  /** The newest first; of the same time what stands last. */
  const newest = [...LANES].flatMap((lane) => Array.from({ length: EACH }, (_, at) => ({ lane, at })));
  newest.sort((a, b) => TIMES[b.lane](b.at) - TIMES[a.lane](a.at) || b.at - a.at);
  const names = newest.map(({ lane, at }) => `${lane} ${at}`);

  test("are taken and ranked by time and place, not by id", async () => {
    const engines = await openAll(false);
    // Nothing holds both words, so that only those are found that were taken, and what stands beside them.
    const taken = await askAll(engines, { pattern: "tides moon", mode: "full_text" });
    expect(taken).toEqual(expect.arrayContaining(names.slice(0, SEEDS)));
    expect(taken.filter((name) => name.startsWith("rising"))).toEqual([]);
    // What holds all that was asked for is listed to the end.
    const ranked = await askAll(engines, { pattern: "tides", mode: "full_text", sort: "relevance" });
    expect(ranked.slice(-EACH)).toEqual(names.slice(-EACH));
    expect(await askAll(engines, { pattern: "tides", mode: "full_text", sort: "recency" })).toEqual(names);
    expect(await askAll(engines, { pattern: "t.des", mode: "regex" })).toEqual(names);
    expect(await askAll(engines, { pattern: "tides", mode: "regex" })).toEqual(names);
  });

  test("take part by their vectors in the same way", async () => {
    const engines = await openAll(true);
    const found = await askAll(engines, {
      pattern: "what do ebbs do?",
      mode: "full_text",
      sort: "relevance",
    });
    expect(found).toEqual(names.toReversed().slice(0, 100));
    await askAll(engines, { pattern: "what do tides do?", mode: "full_text", sort: "relevance" });
  });

  test("are found by when they were written in the same order, also where ids run against it", async () => {
    const address = await server.createDatabase();
    const stores = [
      await openStore(`${makeTemporaryDirectory()}/lcm.db`, { create: true, derive: deriveMessage }),
      (await openPostgresStore({ address, create: true, derive: deriveMessage })) as unknown as Store,
      openMemoryStore(deriveMessage),
    ];
    const answers = await Promise.all(
      stores.map(async (store, at) => {
        onTestFinished(() => store.close());
        for (let i = 0; i < 4; i++) {
          if (at === 1)
            await server.query(address, `ALTER SEQUENCE messages_ids RESTART WITH ${900 - 100 * i}`);
          await store.append(batchOf([makeEvent(`e${i}`, sayText(`tide ${i}`))]));
        }
        const ranges = [{ since: SAID_AT, before: SAID_AT + 1 }];
        const found = await store.findWritten({ scope: {}, ranges, limit: 3 });
        return Promise.all(
          found.map(async ({ messageId }) => (await store.readMessage(messageId))?.row.eventId),
        );
      }),
    );
    for (const answer of answers) expect(answer).toEqual(["e3", "e2", "e1"]);
  });
});

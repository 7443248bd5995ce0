/**
 * A write that waits for another one counts on what that one has left. On a server it may have asked before it had to wait, which no other store
 * allows: here each pair of writes queues up behind a lock in a known order.
 */
import { deriveMessage } from "@lossless/core/testing";
import { makeOpenEngine } from "@lossless/core/ports";
import type { ForkRequest, Store } from "@lossless/core/ports";
import {
  allMessages,
  batchOf,
  fold,
  makeEvent,
  readContext,
  readItems,
  replace,
  say,
  session,
  tell,
  textOf,
} from "@lossless/testkit/contract/parts.ts";
import { HANG_LIMIT_MS } from "@lossless/testkit/hang-limit.ts";
import { describePostgres } from "@lossless/testkit/postgres-server.ts";
import { expect, onTestFinished, test } from "vitest";
import { openPostgresStore } from "../src/postgres-store.ts";
import { BareClient } from "../src/testing.ts";

const NOW = 5_000;
const ASKED = { alsoSummaryIds: [], replacements: [], reason: "asked", now: NOW };
const WAITING =
  "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";

type Write = (store: Store) => Promise<unknown>;

interface Stage {
  readonly store: Store;
  readonly conversationId: number;
  readonly ids: readonly number[];
  readonly address: string;
  /**
   * Runs both, each in a store of its own, in this order: the second one has begun before the first ends, which waits for what the statement
   * locks; for the head of the conversation if there is none.
   */
  queue<A, B>(
    first: (store: Store) => Promise<A>,
    second: (store: Store) => Promise<B>,
    lock?: string,
  ): Promise<readonly [A, B]>;
}

describePostgres("a write that had to wait", (server) => {
  async function setStage(): Promise<Stage> {
    const address = await server.createDatabase();
    const open = async (): Promise<Store> => {
      const opened = await openPostgresStore({ address, create: true, derive: deriveMessage });
      onTestFinished(() => opened.close());
      return opened;
    };
    const store = await open();
    const others = [await open(), await open()] as const;
    const holder = new BareClient(address);
    await holder.connect();
    onTestFinished(() => holder.end());
    const { conversationId, ids } = await tell(store, ["the stork", "the heron", "the crane", "the swan"]);
    const expectWaiting = (count: number): Promise<void> =>
      expect.poll(() => server.query(address, WAITING), { timeout: HANG_LIMIT_MS }).toHaveLength(count);
    return {
      store,
      conversationId,
      ids,
      address,
      queue: async (
        first,
        second,
        lock = `SELECT 1 FROM conversations WHERE conversation_id = ${conversationId} FOR NO KEY UPDATE`,
      ) => {
        await holder.send(`BEGIN; ${lock}`);
        const one = first(others[0]);
        await expectWaiting(1);
        const two = second(others[1]);
        await Promise.race([two, expectWaiting(2)]);
        await holder.send("ROLLBACK");
        return [await one, await two];
      },
    };
  }

  const expectProven = async (store: Store): Promise<void> =>
    expect((await store.verify(deriveMessage, () => undefined)).problems).toEqual([]);

  test("does not forget a message without the summary that was published meanwhile", async () => {
    const { store, conversationId, ids, queue } = await setStage();
    const run = await readItems(store, conversationId, 0, 2);
    const fresh = { conversationId, run, summary: textOf(1, "a stork was seen"), now: NOW };
    const [published, forgotten] = await queue(
      (other) => other.storeSummary({ ...fresh, state: "cover" }),
      (other) => other.forget({ ...ASKED, messageIds: ids.slice(0, 1) }),
    );
    expect(published).toMatchObject({ kind: "published" });
    expect(forgotten).toEqual({ kind: "stale" });
    await expectProven(store);
  });

  test("does not erase a prepared summary that was published meanwhile", async () => {
    const { store, conversationId, ids, queue } = await setStage();
    await fold(store, conversationId, { count: 2, text: textOf(1), state: "prepared" });
    const run = await readItems(store, conversationId, 0, 2);
    const folds = [{ summaryId: textOf(1).summaryId, run }];
    const [published, forgotten] = await queue(
      (other) => other.publishStored({ conversationId, folds, now: NOW }),
      (other) => other.forget({ ...ASKED, messageIds: ids.slice(0, 1) }),
    );
    expect(published).toMatchObject([{ kind: "published" }]);
    expect(forgotten).toEqual({ kind: "stale" });
    await expectProven(store);
  });

  test("does not dissolve a summary that was condensed meanwhile", async () => {
    const { store, conversationId, ids, queue } = await setStage();
    await fold(store, conversationId, { count: 2, text: textOf(1) });
    const run = await readItems(store, conversationId, 0, 2);
    const summary = textOf(2);
    const [published, dissolved] = await queue(
      (other) => other.storeSummary({ conversationId, run, summary, state: "cover", now: NOW }),
      (other) => other.dissolveSummary({ summaryId: textOf(1).summaryId, dryRun: false, now: NOW }),
    );
    expect(published).toMatchObject({ kind: "published" });
    expect(dissolved).toBeNull();
    expect(await readContext(store, conversationId)).toEqual([summary.summaryId, ids[3]]);
    await expectProven(store);
  });

  test("hides a message for two reasons", async () => {
    const { store, conversationId, ids, queue } = await setStage();
    await queue(
      (other) => other.setHidden(session, "branch", ["e1"], NOW, "exactly"),
      (other) => other.setHidden(session, "heartbeat", ["e1"], NOW, "add"),
    );
    await store.setHidden(session, "branch", [], NOW, "exactly");
    expect(await readContext(store, conversationId)).toEqual([ids[0], ids[2], ids[3]]);
    await expectProven(store);
  });

  /** What a fork of the first session asks for, without what it shows. */
  async function planChild(store: Store, eventIds: readonly string[]): Promise<Omit<ForkRequest, "items">> {
    const parent = { parentSessionId: session.id, eventIds };
    const point = await store.findForkPoint({ owner: session.owner, ...parent });
    if (point === null) throw new Error("no point to fork at");
    return { session: { ...session, key: "agent:main:fork", id: "session-2" }, ...parent, point, now: NOW };
  }

  test("stores a revision once that two sessions hand over, of which one has the message by a fork", async () => {
    const { store, conversationId, queue } = await setStage();
    const fork = await planChild(store, ["e0", "e1"]);
    await store.fork({ ...fork, items: [] });
    const events = [makeEvent("e1", say("the grey heron"))];
    const outcomes = await queue(
      (other) => other.append(batchOf(events)),
      (other) => other.append(batchOf(events, { session: fork.session })),
    );
    expect(outcomes.flatMap(({ results }) => results.map(({ outcome }) => outcome))).toEqual([
      "revision",
      "known",
    ]);
    const { items } = await store.readCoverHead({ conversationId, maxMessageTokens: 100_000 });
    expect(items).toHaveLength(4);
    await expectProven(store);
  });

  test("keeps a name and a tag that two programs give", async () => {
    const { store, conversationId, queue } = await setStage();
    await queue(
      (other) => other.label({ conversationId, update: { name: "birds" }, now: NOW }),
      (other) => other.label({ conversationId, update: { addTags: ["water"] }, now: NOW }),
    );
    expect(await store.readConversation(conversationId)).toMatchObject({ name: "birds", tags: ["water"] });
  });

  test("does not bring back a name that was forgotten meanwhile", async () => {
    const { store, conversationId, ids, queue } = await setStage();
    await store.label({ conversationId, update: { name: "about the stork" }, now: NOW });
    await queue(
      (other) => other.forget({ ...ASKED, messageIds: ids.slice(0, 1) }),
      (other) => other.label({ conversationId, update: { addTags: ["water"] }, now: NOW }),
    );
    expect(await store.readConversation(conversationId)).toMatchObject({ name: null, tags: ["water"] });
  });

  test("forgets a copy of a message that was being made", async () => {
    const { store, conversationId, ids, queue } = await setStage();
    const other = { ...session, key: "agent:main:other", id: "session-2" };
    const { conversationId: to } = await store.append(
      batchOf([makeEvent("o0", say("a lake"), { position: 5_000_000 })], { session: other }),
    );
    const request = { from: conversationId, to, dryRun: false, now: NOW };
    await queue(
      (one) => one.transplant(request, deriveMessage),
      (one) => one.forget({ ...ASKED, messageIds: ids.slice(0, 1) }),
      `INSERT INTO sessions (owner, session_id) VALUES ('main', 'transplant:${conversationId}:${to}')`,
    );
    const left = await allMessages(store, to);
    expect(left.map(({ forgottenAt }) => forgottenAt !== null)).toEqual([true, false, false, false, false]);
    await expectProven(store);
  });

  test("copies a conversation as it was before a message of it was hidden", async () => {
    const { store, conversationId, queue } = await setStage();
    const other = { ...session, key: "agent:main:other", id: "session-2" };
    const { conversationId: to } = await store.append(
      batchOf([makeEvent("o0", say("a lake"), { position: 5_000_000 })], { session: other }),
    );
    const request = { from: conversationId, to, dryRun: false, now: NOW };
    await queue(
      (one) => one.transplant(request, deriveMessage),
      (one) => one.setHidden(session, "branch", ["e0"], NOW, "exactly"),
      `INSERT INTO sessions (owner, session_id) VALUES ('main', 'transplant:${conversationId}:${to}')`,
    );
    await expectProven(store);
  });

  const LEASE = { holder: "a", now: NOW, leaseMs: 60_000 };
  const claim = async (store: Store): Promise<number> =>
    (await store.claimVectorSpace({ model: "m", ...LEASE }))?.spaceId ?? 0;
  const embed =
    (spaceId: number, ids: readonly number[]): Write =>
    (store) =>
      store.storeVectors({
        spaceId,
        ...LEASE,
        vectors: ids.map((messageId) => ({ messageId, vector: Float32Array.of(1) })),
      });
  const HOLD_PENDING = "SELECT 1 FROM vectors_pending FOR UPDATE";

  test.each<[string, (ids: readonly number[]) => Write]>([
    ["hidden", () => (other) => other.setHidden(session, "branch", ["e0"], NOW, "exactly")],
    ["revised", () => (other) => other.append(batchOf([makeEvent("e0", say("the black stork"))]))],
    ["forgotten", (ids) => (other) => other.forget({ ...ASKED, messageIds: ids.slice(0, 1) })],
  ])("keeps no vector of a message that was %s while it was stored", async (_, change) => {
    const { store, ids, queue } = await setStage();
    const spaceId = await claim(store);
    await store.append(batchOf([makeEvent("e4", say("the ibis"))]));
    const [last] = (await store.listPendingVectors({ spaceId, limit: 9 })).map(({ messageId }) => messageId);
    await queue(embed(spaceId, [...ids, last ?? 0]), change(ids), HOLD_PENDING);
    expect((await store.countVectors()).spaces).toEqual([{ spaceId, vectors: 4 }]);
    await expectProven(store);
  });

  test("leaves a message pending for vectors that was shown meanwhile", async () => {
    const { store, conversationId, queue } = await setStage();
    const spaceId = await claim(store);
    await store.append(batchOf([makeEvent("e4", say("the ibis"))]));
    await store.setHidden(session, "branch", ["e4"], NOW, "exactly");
    const pending = await store.listPendingVectors({ spaceId, limit: 9 });
    const unwanted = pending.map(({ messageId }) => messageId);
    expect(pending).toMatchObject([{ isWanted: false }]);
    await queue(
      (other) => other.setHidden(session, "branch", [], NOW, "exactly"),
      (other) => other.storeVectors({ spaceId, ...LEASE, vectors: [], unwanted }),
      `SELECT 1 FROM context_items WHERE conversation_id = ${conversationId} FOR UPDATE`,
    );
    expect(await store.listPendingVectors({ spaceId, limit: 9 })).toMatchObject([{ isWanted: true }]);
  });

  test("stores a message although a vector space is dropped that it was noted for", async () => {
    const { store, queue } = await setStage();
    const spaceId = await claim(store);
    await store.append(batchOf([makeEvent("e4", say("the ibis"))]));
    const [isDropped, { results }] = await queue(
      (other) => other.dropVectorSpace(spaceId, 100),
      (other) => other.append(batchOf([makeEvent("e5", say("the egret"))])),
      HOLD_PENDING,
    );
    expect(isDropped).toBe(true);
    expect(results).toMatchObject([{ outcome: "stored" }]);
    await expectProven(store);
  });

  test("drops a vector space with the vectors that were just stored", async () => {
    const { store, ids, queue } = await setStage();
    const spaceId = await claim(store);
    const { results } = await store.append(batchOf([makeEvent("e4", say("the ibis"))]));
    const all = [...ids, ...results.map(({ messageId }) => messageId)];
    const [, isDropped] = await queue(
      embed(spaceId, all),
      (other) => other.dropVectorSpace(spaceId, 100),
      HOLD_PENDING,
    );
    expect(isDropped).toBe(true);
    expect(await store.listVectorSpaces()).toEqual([]);
  });

  test("fills a new vector space after a message was stored that could not be noted for it", async () => {
    const { store, ids, queue, address } = await setStage();
    const there = { ...session, key: "agent:main:other", id: "session-2" };
    let filling: Promise<number[]> | undefined;
    const fill = async (other: Store): Promise<number[]> => {
      const spaceId = await claim(other);
      const found = await other.listUnembedded({ spaceId, after: 0, limit: 9 });
      await embed(spaceId, found)(other);
      await other.releaseVectorSpace({ spaceId, ...LEASE, isFilled: true });
      return found;
    };
    const [{ results }] = await queue(
      (other) => other.append(batchOf([makeEvent("o0", say("the ibis"))], { session: there })),
      async (other) => {
        filling = fill(other);
        await expect.poll(() => server.query(address, "SELECT 1 FROM vector_spaces")).toHaveLength(1);
      },
      "LOCK TABLE seals IN SHARE MODE",
    );
    expect(await filling).toEqual([...ids, ...results.map(({ messageId }) => messageId)]);
    expect(await store.listVectorSpaces()).toMatchObject([{ filledAt: NOW }]);
  });

  const rebuild: Write = (store) => store.reindex(deriveMessage, () => undefined);
  const listStork = (address: string): Promise<unknown[]> =>
    server.query(
      address,
      "SELECT term FROM index_postings WHERE term = 'stork' UNION ALL SELECT 'pending' FROM index_pending",
    );

  test("leaves no word of a message in an index that was being rebuilt", async () => {
    const { store, ids, queue, address } = await setStage();
    await queue(
      rebuild,
      (other) => other.forget({ ...ASKED, messageIds: ids.slice(0, 1) }),
      `INSERT INTO index_documents (kind, id, owner, words) VALUES ('message', ${ids[0]}, 'main', 1)`,
    );
    expect(await listStork(address)).toEqual([]);
    await expectProven(store);
  });

  test.each([
    ["was", true],
    ["was not", false],
  ])(
    "rebuilds an index without a message that is being forgotten, and that %s in it",
    async (_, isIndexed) => {
      const { store, ids, queue, address } = await setStage();
      if (isIndexed) await rebuild(store);
      await queue(
        (other) => other.forget({ ...ASKED, messageIds: ids.slice(0, 1) }),
        rebuild,
        "LOCK TABLE meta IN SHARE MODE",
      );
      expect(await listStork(address)).toEqual([]);
      await expectProven(store);
    },
  );

  test("leaves no summary in an index that was removed while it was rebuilt", async () => {
    const { store, queue, conversationId } = await setStage();
    await fold(store, conversationId, { count: 2, text: textOf(1) });
    await queue(
      rebuild,
      (other) => other.dropSummaries(conversationId, null),
      "INSERT INTO index_documents (kind, id, owner, words) SELECT 'summary', summary_ref, 'main', 1 FROM summary_refs",
    );
    await expectProven(store);
  });

  test("does not remove a summary that a fork is about to show", async () => {
    const { store, conversationId, queue } = await setStage();
    await fold(store, conversationId, { count: 2, text: textOf(1) });
    const fork = await planChild(store, ["e0", "e1", "e2"]);
    const items = [
      {
        kind: "summary" as const,
        messageId: null,
        summaryId: textOf(1).summaryId,
        firstId: null,
        lastId: null,
        startPosition: 1,
        endPosition: 2,
        tokens: 5,
        messages: 2,
        depth: 0,
        earliestAt: 1,
        latestAt: 1,
      },
    ];
    const [forked, dropped] = await queue(
      (other) => other.fork({ ...fork, items }),
      (other) => other.dropSummaries(conversationId, null),
      "INSERT INTO sessions (owner, session_id) VALUES ('main', 'session-2')",
    );
    expect([forked.kind, dropped]).toEqual(["forked", null]);
    await expectProven(store);
  });

  test("seals where a session continues that was relabelled while another one wrote", async () => {
    const { store, conversationId, queue } = await setStage();
    const idle = { ...session, id: "stand-in" };
    const reset = { eventId: "r0", position: null, retainDepth: 0, at: NOW };
    await store.recordBoundary({ session: idle, reason: "reset", ...reset });
    await queue(
      (other) =>
        other.relabelSession({ from: idle.id, session: { ...session, id: "named" }, cursor: "c", now: NOW }),
      (other) => other.append(batchOf([makeEvent("e4", say("the ibis"))], { origin: { title: "birds" } })),
      `SELECT 1 FROM seals WHERE kind = 'conversation' AND id = '${conversationId}' FOR UPDATE`,
    );
    await expectProven(store);
  });

  test("gives a relabelled session the place where it was read last", async () => {
    const { store, queue } = await setStage();
    const named = { ...session, id: "named" };
    await queue(
      (other) => other.append(batchOf([makeEvent("e4", say("the ibis"))], { cursor: { value: "4" } })),
      (other) => other.relabelSession({ from: session.id, session: named, cursor: "gone", now: NOW }),
    );
    expect(await store.readSession(session.owner, named.id)).toMatchObject({ cursor: "4" });
    await expectProven(store);
  });

  const stageFolded = async () => {
    const stage = await setStage();
    const { store, conversationId } = stage;
    await fold(store, conversationId, { count: 2, text: textOf(1, "a stork was seen") });
    const run = await readItems(store, conversationId, 1, 3);
    const summary = { ...textOf(2, "after the stork"), previousId: textOf(1).summaryId };
    const publish: Write = (other) =>
      other.storeSummary({ conversationId, run, summary, state: "cover", now: NOW });
    return { ...stage, publish };
  };

  test("does not publish what was written after a summary that was forgotten meanwhile", async () => {
    const { store, ids, queue, publish } = await stageFolded();
    const oldId = textOf(1).summaryId;
    const replacements = [replace(oldId, textOf(3), await store.readSources(oldId))];
    const [forgotten, published] = await queue(
      (other) => other.forget({ ...ASKED, messageIds: ids.slice(0, 1), replacements }),
      publish,
    );
    expect(forgotten).toMatchObject({ kind: "forgotten" });
    expect(published).toEqual({ kind: "stale" });
    await expectProven(store);
  });

  test("does not publish what was written after a summary that was removed meanwhile", async () => {
    const { store, conversationId, queue, publish } = await stageFolded();
    const [dropped, published] = await queue((other) => other.dropSummaries(conversationId, null), publish);
    expect([dropped, published]).toEqual([1, { kind: "stale" }]);
    await expectProven(store);
  });

  /** As the engine does it, with all that repeats the message. */
  const forgetAll =
    (messageId: number): Write =>
    async (store) => {
      const workerUrl = new URL("file:///none");
      const open = makeOpenEngine({ openStore: () => Promise.resolve(store), workerUrl });
      const engine = await open({ database: "lcm.db", thread: false });
      return engine.forget({ messageIds: [messageId], reason: "asked" });
    };

  test("forgets a message that was forgotten meanwhile", async () => {
    const { store, conversationId, ids, queue } = await setStage();
    await fold(store, conversationId, { count: 2, text: textOf(1) });
    await queue(forgetAll(ids[0] ?? 0), forgetAll(ids[0] ?? 0));
    expect((await allMessages(store, conversationId)).map(({ forgottenAt }) => forgottenAt !== null)).toEqual(
      [true, false, false, false],
    );
    await expectProven(store);
  });

  test("forgets a message with a summary that repeats it and was published meanwhile", async () => {
    const { store, conversationId, queue, address } = await setStage();
    const secret = "a grey stork with a long red beak nests on the old chimney";
    const events = [secret, "where", "there"].map((text, i) => makeEvent(`f${i}`, say(text)));
    const [{ messageId = 0 } = {}] = (await store.append(batchOf(events))).results;
    await fold(store, conversationId, { count: 5, text: textOf(1) });
    const run = await readItems(store, conversationId, 1, 3);
    const summary = { ...textOf(2, secret), previousId: textOf(1).summaryId };
    await queue(
      (other) => other.storeSummary({ conversationId, run, summary, state: "cover", now: NOW }),
      forgetAll(messageId),
    );
    const left = "SELECT summary_id FROM summaries WHERE content LIKE '%long red beak%'";
    expect(await server.query(address, left)).toEqual([]);
    await expectProven(store);
  });
});

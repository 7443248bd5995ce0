/**
 * What every store must do. An adapter's test calls `testStore` with a way to open itself; the suite uses only the port, so that the same tests
 * apply to every backend.
 */
import { POSITION_STEP } from "@lossless/core";
import type { SessionRef } from "@lossless/core";
import type { Store, Stretch } from "@lossless/core/ports";
import { mkdirSync } from "node:fs";
import { deriveMessage } from "@lossless/core/testing";
import { describe, expect, test } from "vitest";
import { testCare } from "./contract/care.ts";
import { testFolding } from "./contract/folding.ts";
import {
  allMessages,
  batchOf,
  clock,
  findWord,
  fold,
  makeEvent,
  say,
  session,
  SPENT,
  textOf,
} from "./contract/parts.ts";
import type { WithStore } from "./contract/parts.ts";
import { testLists } from "./contract/lists.ts";
import { testRecall } from "./contract/recall.ts";
import { testTransfer } from "./contract/transfer.ts";
import { makeTemporaryFolder } from "./temporary.ts";

export { makeEvent } from "./contract/parts.ts";

/** Records which verbs are called, and forwards every call. */
function watchVerbs(store: Store, used: Set<string>): Store {
  return new Proxy(store, {
    get: (target, name) => {
      const value: unknown = Reflect.get(target, name, target);
      if (typeof value !== "function") return value;
      used.add(String(name));
      return value.bind(target) as unknown;
    },
  });
}

export interface StoreUnderTest {
  readonly open: (folder: string) => Store | Promise<Store>;
  /** The verbs of the port that this store implements. */
  readonly verbs: readonly string[];
  /** `copies`: it cannot copy itself as a file, because it is not one. `remains`: it leaves no remains of forgotten data. */
  readonly without?: readonly ("copies" | "remains")[];
}

export function testStore(name: string, { open, verbs, without = [] }: StoreUnderTest): void {
  const used = new Set<string>();
  const withStore: WithStore = async (work) => {
    using folder = makeTemporaryFolder();
    const stores: Store[] = [];
    const openIn = async (path: string): Promise<Store> => {
      mkdirSync(path, { recursive: true });
      const store = watchVerbs(await open(path), used);
      stores.push(store);
      return store;
    };
    try {
      const openAnother = (): Promise<Store> => openIn(`${folder.path}/${stores.length}`);
      await work(await openIn(folder.path), { folder: folder.path, openAnother });
      for (const store of stores)
        expect((await store.verify(deriveMessage, () => undefined)).problems).toEqual([]);
    } finally {
      for (const store of stores) await store.close();
    }
  };

  describe(name, () => {
    test("gives back the bytes that were handed in", () =>
      withStore(async (store) => {
        const message = {
          role: "user",
          content: [{ type: "text", text: "Grüße 你好 \ud83c\udf31" }],
          extra: { b: 1, a: [null] },
        };
        const { results } = await store.append(batchOf([makeEvent("e1", message)]));
        const stored = await store.readMessage(results[0]?.messageId ?? 0);
        expect(Buffer.from(stored?.bytes ?? []).toString()).toBe(JSON.stringify(message));
        expect(stored?.row).toMatchObject({ eventId: "e1", seq: 1, role: "user", revises: null });
      }));

    test("stores an event once, however often it arrives", () =>
      withStore(async (store) => {
        const events = [makeEvent("a", say("one")), makeEvent("b", say("two"))];
        const first = await store.append(batchOf(events));
        const again = await store.append(batchOf([...events, makeEvent("a", say("one"))]));
        expect(again.results.map((result) => result.outcome)).toEqual(["known", "known", "known"]);
        expect(again.results[0]?.messageId).toBe(first.results[0]?.messageId);
        expect(await allMessages(store, first.conversationId)).toHaveLength(2);
      }));

    test("keeps five hundred equal texts with different ids, and no more when they come again", () =>
      withStore(async (store) => {
        const events = Array.from({ length: 500 }, (_, i) => makeEvent(`ok-${i}`, say("ok")));
        const { conversationId } = await store.append(batchOf(events));
        await store.append(batchOf(events));
        expect(await allMessages(store, conversationId)).toHaveLength(500);
        expect((await store.readConversation(conversationId))?.shownMessages).toBe(500);
      }));

    test("keeps changed bytes under a known id as a revision beside the first", () =>
      withStore(async (store) => {
        await store.append(batchOf([makeEvent("a", say("first")), makeEvent("b", say("next"))]));
        const { results, conversationId } = await store.append(
          batchOf([makeEvent("a", say("second, longer text"))]),
        );
        expect(results[0]?.outcome).toBe("revision");
        const replay = await store.append(
          batchOf([makeEvent("a", say("first")), makeEvent("a", say("second, longer text"))]),
        );
        expect(replay.results.map((result) => result.outcome)).toEqual(["known", "known"]);
        const rows = await allMessages(store, conversationId);
        expect(rows.map((row) => [row.eventId, row.revises === null])).toEqual([
          ["a", true],
          ["a", false],
          ["b", true],
        ]);
        expect(rows[0]?.newest).toBe(rows[1]?.messageId);
        expect((await store.readConversation(conversationId))?.shownMessages).toBe(2);
        expect(await store.readRevisions(rows[0]?.messageId ?? 0)).toHaveLength(2);
      }));

    test("stores a batch whole or not at all", () =>
      withStore(async (store) => {
        const broken = makeEvent("bad", say("x"), {
          prepare: () => {
            throw new Error("this one cannot be prepared");
          },
        });
        const batch = batchOf([makeEvent("good", say("y")), broken], { cursor: { value: "moved" } });
        await expect(store.append(batch)).rejects.toThrow("cannot be prepared");
        expect(await store.knownEvents("main", session.id, ["good", "bad"])).toEqual([]);
        expect((await store.readSession("main", session.id))?.cursor ?? null).toBeNull();
      }));

    test("commits a turn once by its key, and moves the cursor with it", () =>
      withStore(async (store) => {
        const turn = { advancementKey: "turn-1" };
        await store.append(batchOf([makeEvent("a", say("q"))], { turn, cursor: { value: "c1" } }));
        const again = await store.append(
          batchOf([makeEvent("zzz", say("q"))], { turn, cursor: { value: "c2" } }),
        );
        expect(again.duplicateTurn).toBe(true);
        expect(await store.readSession("main", session.id)).toMatchObject({ cursor: "c1", lastEventId: "a" });
        expect(await store.knownEvents("main", session.id, ["a", "zzz"])).toEqual(["a"]);
      }));

    test("puts late rows where they belong and counts arrivals apart", () =>
      withStore(async (store) => {
        const at = (n: number) => ({ position: n * POSITION_STEP });
        await store.append(batchOf([makeEvent("m1", say("1"), at(1)), makeEvent("m3", say("3"), at(3))]));
        const { conversationId } = await store.append(batchOf([makeEvent("m2", say("2"), at(2))]));
        const rows = await allMessages(store, conversationId);
        expect(rows.map((row) => row.eventId)).toEqual(["m1", "m2", "m3"]);
        expect(rows.map((row) => row.seq)).toEqual([1, 3, 2]);
      }));

    test("re-labels provisional ids and knows the message by both", () =>
      withStore(async (store) => {
        await store.append(
          batchOf([makeEvent("turn:k:0", say("q"), { kind: "provisional" }), makeEvent("e2", say("r"))]),
        );
        const labels = [
          { from: "turn:k:0", to: "entry-1" },
          { from: "e2", to: "entry-2" },
        ];
        expect(await store.relabel(session, labels, clock.now())).toBe(1);
        expect(await store.relabel(session, labels, clock.now())).toBe(0);
        const { results } = await store.append(batchOf([makeEvent("entry-1", say("q"))]));
        expect(results[0]?.outcome).toBe("known");
      }));

    test("keeps a message hidden that is named by the id it was given later", () =>
      withStore(async (store) => {
        await store.append(batchOf([makeEvent("turn:k:0", say("q"), { kind: "provisional" })]));
        await store.relabel(session, [{ from: "turn:k:0", to: "entry-1" }], clock.now());
        const hide = () => store.setHidden(session, "branch", ["entry-1"], clock.now(), "exactly");
        expect([await hide(), await hide()]).toEqual([1, 0]);
      }));

    test("hides and shows, and counts only what is shown", () =>
      withStore(async (store) => {
        const { conversationId } = await store.append(
          batchOf([
            makeEvent("a", say("1")),
            makeEvent("b", say("2")),
            makeEvent("c", say("3"), { hidden: 8 }),
          ]),
        );
        expect(await store.setHidden(session, "branch", ["a", "b"], clock.now(), "exactly")).toBe(2);
        expect((await store.readConversation(conversationId))?.shownMessages).toBe(0);
        expect(await store.setHidden(session, "branch", ["a"], clock.now(), "exactly")).toBe(1);
        expect(await store.setHidden(session, "branch", ["a"], clock.now(), "exactly")).toBe(0);
        const rows = await allMessages(store, conversationId);
        expect(rows.map((row) => row.hidden)).toEqual([["branch"], [], ["meta"]]);
        expect((await store.readConversation(conversationId))?.shownMessages).toBe(1);
      }));

    test("archives at a reset, starts anew in the family, and still takes late rows of the old segment", () =>
      withStore(async (store) => {
        const at = (n: number) => ({ position: n * POSITION_STEP });
        const first = await store.append(batchOf([makeEvent("m1", say("before"), at(1))]));
        const boundary = {
          session,
          eventId: "reset-1",
          reason: "reset" as const,
          ...at(3),
          retainDepth: 2,
          at: clock.now(),
        };
        const made = await store.recordBoundary(boundary);
        expect(made.kind).toBe("recorded");
        expect((await store.recordBoundary(boundary)).kind).toBe("known");
        const second = await store.append(
          batchOf([makeEvent("m4", say("after"), at(4)), makeEvent("m1", say("before"), at(1))]),
        );
        expect(second.conversationId).toBe(made.conversationId);
        expect(second.conversationId).not.toBe(first.conversationId);
        expect(second.results.map((result) => result.outcome)).toEqual(["stored", "known"]);
        await store.append(batchOf([makeEvent("m2", say("late"), at(2))]));
        const old = await allMessages(store, first.conversationId);
        expect(old.map((row) => row.eventId)).toEqual(["m1", "m2"]);
        expect((await store.readConversation(first.conversationId))?.archiveCause).toBe("reset");
        const family = await store.listConversations({ after: null, limit: 10, sessionKey: session.key });
        expect(family.items).toHaveLength(2);
      }));

    test("goes on in the next conversation after a reset without a position, whatever came before in the key", () =>
      withStore(async (store) => {
        const at = (n: number) => ({ position: n * POSITION_STEP });
        const earlier = { ...session, id: "an earlier session" };
        const old = [1, 2, 3].map((n) => makeEvent(`old-${n}`, say(`old ${n}`), at(n)));
        await store.append(batchOf(old, { session: earlier }));
        const first = await store.append(batchOf([makeEvent("m1", say("before"), at(1))]));
        const boundary = {
          session,
          eventId: "end",
          reason: "reset",
          position: null,
          retainDepth: 2,
        } as const;
        const made = await store.recordBoundary({ ...boundary, at: clock.now() });
        await store.append(batchOf([makeEvent("m2", say("after"), at(2)), makeEvent("m3", say("after"))]));
        const next = await allMessages(store, made.conversationId);
        expect(next.map((row) => row.eventId)).toEqual(["m2", "m3"]);
        expect(await allMessages(store, first.conversationId)).toHaveLength(4);
        expect((await store.verify(deriveMessage, () => undefined)).problems).toEqual([]);
      }));

    test("keeps the conversation at a soft boundary", () =>
      withStore(async (store) => {
        const first = await store.append(batchOf([makeEvent("m1", say("before"))]));
        const request = {
          session,
          eventId: "new-1",
          reason: "new" as const,
          position: null,
          retainDepth: 2,
          at: clock.now(),
        };
        expect((await store.recordBoundary(request)).conversationId).toBe(first.conversationId);
        const second = await store.append(batchOf([makeEvent("m2", say("after"))]));
        expect(second.conversationId).toBe(first.conversationId);
      }));

    test("makes each run of a scheduled job a conversation of its own", () =>
      withStore(async (store) => {
        const run = (id: string): SessionRef => ({ key: "agent:main:cron:nightly", id, owner: "main" });
        const first = await store.append({ ...batchOf([makeEvent("a", say("run 1"))]), session: run("r1") });
        const second = await store.append({ ...batchOf([makeEvent("a", say("run 2"))]), session: run("r2") });
        expect(second.conversationId).not.toBe(first.conversationId);
        const late = await store.append({ ...batchOf([makeEvent("b", say("late"))]), session: run("r1") });
        expect(late.conversationId).toBe(first.conversationId);
      }));

    test("puts a later session of the same key behind the earlier one", () =>
      withStore(async (store) => {
        const at = (n: number) => ({ position: n * POSITION_STEP });
        const first = await store.append(
          batchOf([makeEvent("a", say("1"), at(1)), makeEvent("b", say("2"), at(2))]),
        );
        const next = {
          ...batchOf([makeEvent("a", say("3"), at(1)), makeEvent("b", say("4"), at(2))]),
          session: { ...session, id: "s2" },
        };
        expect((await store.append(next)).conversationId).toBe(first.conversationId);
        await store.append(batchOf([makeEvent("late", say("1b"), { position: 1.5 * POSITION_STEP })]));
        const rows = await allMessages(store, first.conversationId);
        expect(rows.map((row) => `${row.sessionId}/${row.eventId}`)).toEqual([
          "session-1/a",
          "session-1/late",
          "session-1/b",
          "s2/a",
          "s2/b",
        ]);
      }));

    test("begins a fork: copied events are further names of what is stored, and its front are references", () =>
      withStore(async (store) => {
        const child = { ...session, key: "agent:main:fork", id: "session-2" };
        const copied = [makeEvent("a", say("one")), makeEvent("b", say("two"))];
        const { conversationId, results } = await store.append(batchOf(copied));
        const asked = { owner: "main", parentSessionId: session.id, eventIds: ["a", "b", "c"] };
        const point = await store.findForkPoint(asked);
        expect(point).toMatchObject({ conversationId, seq: 2, copied: 2 });
        expect(await store.findForkPoint({ ...asked, eventIds: ["c", "a"] })).toBeNull();
        expect(await store.findForkPoint({ ...asked, owner: "other" })).toBeNull();
        const item = {
          kind: "message" as const,
          messageId: results[1]?.messageId ?? 0,
          summaryId: null,
          firstId: null,
          lastId: null,
          startPosition: point!.position,
          endPosition: point!.position,
          tokens: 5,
          messages: 1,
          depth: -1,
          earliestAt: null,
          latestAt: null,
        };
        const request = { session: child, parentSessionId: session.id, eventIds: ["a", "b"], point: point! };
        const made = await store.fork({ ...request, items: [item], now: clock.now() });
        expect(made.kind).toBe("forked");
        expect(await store.fork({ ...request, items: [], now: clock.now() })).toEqual({
          ...made,
          kind: "known",
        });
        expect(await store.readForkItems(made.conversationId)).toEqual([item]);
        expect(await store.readForkItems(conversationId)).toEqual([]);
        const own = [...copied, makeEvent("c", say("three"))];
        const after = await store.append(batchOf(own, { session: child }));
        expect(after.results.map((result) => result.outcome)).toEqual(["known", "known", "stored"]);
        expect((await allMessages(store, made.conversationId)).map((row) => row.eventId)).toEqual(["c"]);
      }));

    test("shows an owner nothing of another owner's", () =>
      withStore(async (store) => {
        const { conversationId, results } = await store.append(
          batchOf([makeEvent("a", say("a secret of main"))]),
        );
        const messageId = results[0]?.messageId ?? 0;
        expect(await store.readConversation(conversationId, "other")).toBeNull();
        expect(await store.readMessage(messageId, "other")).toBeNull();
        expect(await store.readRevisions(messageId, "other")).toEqual([]);
        expect((await store.listConversations({ after: null, limit: 10, owner: "other" })).items).toEqual([]);
        await store.flushIndex();
        const named = { conversationIds: [conversationId] };
        for (const scope of [{}, named])
          expect(await findWord(store, "secret", { owner: "other", ...scope })).toEqual([]);
        expect(await findWord(store, "secret", { owner: "main" })).toEqual([messageId]);
        expect((await store.status("other")).messages).toBe(0);
        await fold(store, conversationId, { count: 1, text: textOf(1, "a secret of main") });
        const asked = { conversationId, after: null, limit: 10 };
        expect((await store.listSummaries({ ...asked, owner: "main" })).items).toHaveLength(1);
        expect((await store.listSummaries({ ...asked, owner: "other" })).items).toEqual([]);
        expect((await store.readGraph({ conversationId, owner: "other" })).nodes).toEqual([]);
      }));

    test("reads a snapshot as it was, while the store goes on", () =>
      withStore(async (store) => {
        const { conversationId } = await store.append(batchOf([makeEvent("a", say("one"))]));
        const list = {
          conversationId,
          after: null,
          limit: 10,
          order: "position",
          direction: "oldest",
        } as const;
        await store.withSnapshot(async (snapshot) => {
          expect((await snapshot.listMessages(list)).items).toHaveLength(1);
          await store.append(batchOf([makeEvent("b", say("two"))]));
          expect((await snapshot.listMessages(list)).items).toHaveLength(1);
          expect((await store.listMessages(list)).items).toHaveLength(2);
        });
        await store.withSnapshot(async (snapshot) =>
          expect((await snapshot.listMessages(list)).items).toHaveLength(2),
        );
      }));

    test("pages through messages without losing or repeating one", () =>
      withStore(async (store) => {
        const events = Array.from({ length: 57 }, (_, i) => makeEvent(`e${i}`, say(`text ${i}`)));
        const { conversationId } = await store.append(batchOf(events));
        for (const direction of ["oldest", "newest"] as const) {
          const seen: string[] = [];
          const positions = new Set<number>();
          for (let after: string | null = null; ;) {
            const page = await store.listMessages({
              conversationId,
              after,
              limit: 10,
              order: "position",
              direction,
            });
            seen.push(...page.items.map((row) => row.eventId));
            for (const { position } of page.items) positions.add(position);
            after = page.next;
            if (after === null) break;
          }
          expect(positions.size).toBe(events.length);
          const wanted = events.map((event) => event.eventId);
          expect(seen).toEqual(direction === "oldest" ? wanted : wanted.reverse());
        }
      }));

    test("knows messages by their numbers, late rows in their places, and nothing of another owner's", () =>
      withStore(async (store) => {
        const events = [1, 2, 4].map((place) =>
          makeEvent(`e${place}`, say(`place ${place}`), { position: place * POSITION_STEP }),
        );
        const { conversationId } = await store.append(batchOf(events));
        await store.append(batchOf([makeEvent("e3", say("place 3"), { position: 3 * POSITION_STEP })]));
        const ids = (await allMessages(store, conversationId)).map(({ messageId }) => messageId);
        expect(await store.listMessageIds({ conversationId, at: 0, limit: 10 })).toEqual(ids);
        const outline = await store.readOutline({ conversationId, after: null, limit: 2 });
        expect([...outline.messageIds]).toEqual(ids.slice(0, 2));
        const after = [outline.positions[1] ?? 0, outline.seqs[1] ?? 0] as const;
        const rest = await store.readOutline({ conversationId, after, limit: 10 });
        expect([...rest.messageIds]).toEqual(ids.slice(2));
        const { items } = await store.listMessages({
          conversationId,
          after: null,
          limit: 2,
          order: "position",
          direction: "oldest",
        });
        expect([...outline.roles].map((role) => outline.roleNames[role])).toEqual(
          items.map(({ role }) => role),
        );
        expect([...outline.tokens]).toEqual(items.map(({ tokens }) => tokens));
        expect([...outline.createdAts]).toEqual(items.map(({ createdAt }) => createdAt));
        expect(
          (await store.readOutline({ conversationId, owner: "other", after: null, limit: 9 })).seqs,
        ).toHaveLength(0);
        expect(await store.listMessageIds({ conversationId, at: 2, limit: 1 })).toEqual([ids[2]]);
        expect(await store.listMessageIds({ conversationId, at: 4, limit: 1 })).toEqual([]);
        for (const [number, messageId] of ids.entries()) {
          expect(await store.locateMessage(messageId)).toEqual({ conversationId, number });
          expect(await store.locateMessage(messageId, "somebody else")).toBeNull();
        }
        const foreign = { conversationId, at: 0, limit: 10, owner: "somebody else" };
        expect(await store.listMessageIds(foreign)).toEqual([]);
        expect(await store.readGraph({ conversationId })).toEqual({ nodes: [], edges: [] });
      }));

    test("finds messages by word, within a scope, and only the newest revision", () =>
      withStore(async (store) => {
        const { conversationId } = await store.append(
          batchOf([
            makeEvent("a", say("the carrier allows forty requests")),
            makeEvent("b", say("nothing here")),
          ]),
        );
        await store.append(batchOf([makeEvent("a", say("the carrier allows sixty requests"))]));
        await store.flushIndex();
        expect(await findWord(store, "carrier", {})).toHaveLength(1);
        expect(await findWord(store, "forti", {})).toEqual([]);
        expect(await findWord(store, "carrier", { conversationIds: [conversationId] })).toHaveLength(1);
        expect(await findWord(store, "carrier", { conversationIds: [conversationId + 1] })).toEqual([]);
      }));

    test("moves a large payload to a file, and splices it back byte for byte", () =>
      withStore(async (store) => {
        const csv = Array.from({ length: 9_000 }, (_, i) => `${i},plant-${i % 97},${(i * 7919) % 1000}`).join(
          "\n",
        );
        const message = say(
          `please look at this <file name="stock.csv" mime="text/csv">${csv}</file> and tell me what is odd`,
        );
        const { results } = await store.append(batchOf([makeEvent("big", message)]));
        const stored = await store.readMessage(results[0]?.messageId ?? 0);
        expect(Buffer.from(stored?.bytes ?? []).equals(Buffer.from(JSON.stringify(message)))).toBe(true);
        const payload = stored?.parts.find((part) => part.fileId !== null);
        const file = await store.readFile(payload?.fileId ?? "");
        expect(file).toMatchObject({ fileName: "stock.csv", mimeType: "text/csv" });
        expect(Buffer.from((await store.readFileContent(payload?.fileId ?? "")) ?? []).toString()).toContain(
          "plant-96",
        );
        expect(stored?.row.tokens).toBeLessThan(2_000);
        expect((await store.readFile(payload?.fileId ?? "", "other")) ?? null).toBeNull();
        expect((await store.measureStorage()).all.bytes).toBeGreaterThan(0);
      }));

    test("keeps vectors of what is shown in its newest version, one filler at a time, and finds the nearest", () =>
      withStore(async (store) => {
        const texts = ["a", "b", "c"].map((text, i) => makeEvent(`e${i}`, say(text)));
        const { conversationId, results } = await store.append(batchOf(texts));
        const ids = results.map(({ messageId }) => messageId);
        const claim = { model: "m", now: clock.now(), leaseMs: 1_000 };
        const space = await store.claimVectorSpace({ ...claim, holder: "one" });
        const spaceId = space?.spaceId ?? 0;
        expect(await store.claimVectorSpace({ ...claim, holder: "two" })).toBeNull();
        // The clock was set back by days: whoever has held it since may be gone.
        const earlier = { ...claim, now: claim.now - 48 * 3_600_000 };
        expect(await store.claimVectorSpace({ ...earlier, holder: "two" })).toMatchObject({ spaceId });
        expect(await store.claimVectorSpace({ ...claim, holder: "one" })).toMatchObject({ spaceId });
        expect(await store.listUnembedded({ spaceId, after: 0, limit: 10 })).toEqual(ids);
        const directions = [Float32Array.of(1, 0), Float32Array.of(0, 1), Float32Array.of(0.6, 0.8)];
        const vectors = ids.map((messageId, at) => ({ messageId, vector: directions[at] ?? null }));
        const put = { spaceId, now: claim.now, leaseMs: 1_000, vectors };
        // The call was paid for, whoever may store what it gave.
        const spent = { ...SPENT, purpose: "embed" };
        expect(await store.storeVectors({ ...put, holder: "two", spent })).toEqual({ kind: "lost" });
        expect(await store.storeVectors({ ...put, holder: "one", vectors: [], spent })).toMatchObject({
          kind: "stored",
        });
        expect(await store.sumSpend({ since: 0, by: "purpose" })).toMatchObject([{ key: "embed", calls: 2 }]);
        expect(await store.storeVectors({ ...put, holder: "one" })).toEqual({ kind: "stored", stored: 3 });
        const long = [{ messageId: ids[0] ?? 0, vector: Float32Array.of(1, 0, 0) }];
        const wrong = await store.storeVectors({ ...put, holder: "one", vectors: long });
        expect(wrong).toEqual({ kind: "dimensions", expected: 2, given: 3 });
        const nearest = async (scope: object): Promise<number[]> => {
          const question = { spaceId, vector: Float32Array.of(0, 1), scope, limit: 2, after: null };
          return (await store.scanVectors(question)).nearest.map(({ id }) => id);
        };
        expect(await nearest({})).toEqual([ids[1], ids[2]]);
        expect(await nearest({ owner: "nobody" })).toEqual([]);
        expect(await nearest({ owner: "nobody", conversationIds: [conversationId] })).toEqual([]);
        expect(await nearest({ owner: "main", conversationIds: [conversationId] })).toEqual([ids[1], ids[2]]);
        await store.setHidden(session, "branch", ["e1"], clock.now(), "exactly");
        await store.append(batchOf([makeEvent("e2", say("c, corrected"))]));
        expect(await nearest({})).toEqual([ids[0]]);
        expect((await store.countVectors()).messages).toBe(2);
        const pending = async (): Promise<number[]> =>
          (await store.listPendingVectors({ spaceId, limit: 10 }))
            .filter(({ isWanted }) => isWanted)
            .map(({ messageId }) => messageId);
        const [revision = 0, ...others] = await pending();
        expect(others).toEqual([]);
        await store.setHidden(session, "branch", [], clock.now(), "exactly");
        expect(await pending()).toEqual([ids[1], revision]);
        await store.storeVectors({ ...put, holder: "one", vectors: [], passed: [revision] });
        await store.storeVectors({
          ...put,
          holder: "one",
          vectors: [{ messageId: ids[1] ?? 0, vector: Float32Array.of(0, 1) }],
        });
        expect(await store.listPendingVectors({ spaceId, limit: 10 })).toEqual([]);
        expect(await store.listUnembedded({ spaceId, after: 0, limit: 10 })).toEqual([revision]);
        await store.releaseVectorSpace({ spaceId, holder: "one", now: claim.now, isFilled: true });
        expect(await store.listVectorSpaces()).toMatchObject([
          { model: "m", dimensions: 2, filledAt: claim.now },
        ]);
        expect(await store.dropVectorSpace(spaceId, 2)).toBe(false);
        expect(await store.dropVectorSpace(spaceId, 2)).toBe(true);
      }));

    test("shows the newest version of a message, lists all of them, and counts what is there", () =>
      withStore(async (store) => {
        const { conversationId, results } = await store.append(
          batchOf([makeEvent("a", say("first")), makeEvent("b", say("hidden"), { hidden: 1 })]),
        );
        await store.append(batchOf([makeEvent("a", say("second"))]));
        const [first] = results.map(({ messageId }) => messageId);
        const [shown] = await store.readShown([first ?? 0]);
        expect(Buffer.from(shown?.bytes ?? []).toString()).toBe(JSON.stringify(say("second")));
        expect((await store.readRevisions(first ?? 0)).map(({ revises }) => revises)).toEqual([null, first]);
        expect(await store.countMessages([conversationId])).toMatchObject([
          { conversationId, messages: 2, revisions: 1, shownMessages: 1, hiddenMessages: 1 },
        ]);
        expect(await store.status()).toMatchObject({ conversations: 1, revisions: 1, summaries: 0 });
      }));

    test("finds the ends of stretches, without what is hidden", () =>
      withStore(async (store) => {
        const place = (n: number): number => n * POSITION_STEP;
        const events = ["a", "b", "c", "d"].map((id, n) =>
          makeEvent(id, say(id), { position: place(n + 1), hidden: id === "d" ? 1 : 0 }),
        );
        const { conversationId, results } = await store.append(batchOf(events));
        const [a, b, c] = results.map(({ messageId }) => messageId);
        const find = (...stretches: readonly Stretch[]) => store.findEnds({ conversationId, stretches });
        const [before, second, after] = [
          { startPosition: 0, endPosition: place(2) - 1 },
          { startPosition: place(2), endPosition: place(2) },
          { startPosition: place(2) + 1, endPosition: place(10) },
        ];
        expect(await find({ startPosition: 0, endPosition: place(10) })).toEqual({ first: a, last: c });
        expect(await find(before, after)).toEqual({ first: a, last: c });
        expect(await find(second, after)).toEqual({ first: b, last: c });
        expect(await find(second)).toEqual({ first: b, last: b });
        expect(await find({ startPosition: 0, endPosition: 0 })).toEqual({ first: null, last: null });
      }));

    test("lets a session that got its real id go on where its stand-in was, and keeps the stand-in", () =>
      withStore(async (store) => {
        const { conversationId } = await store.append(batchOf([makeEvent("a", say("one"))]));
        const renamed = { ...session, id: "session-2" };
        const request = { from: session.id, session: renamed, cursor: "left", now: clock.now() };
        expect(await store.relabelSession(request)).toBe(true);
        expect(await store.relabelSession(request)).toBe(false);
        expect((await store.findSessions("main", "a")).toSorted()).toEqual(["session-1", "session-2"]);
        const again = await store.append(batchOf([makeEvent("a", say("one"))], { session: renamed }));
        expect(again).toMatchObject({ conversationId, results: [{ outcome: "known" }] });
        expect(await store.readSession("main", session.id)).toMatchObject({ cursor: "left" });
      }));

    test("puts a summary in the place of its run, keeps its sources, and refuses a run that changed", () =>
      withStore(async (store) => {
        const events = Array.from({ length: 4 }, (_, i) => makeEvent(`e${i}`, say(`message number ${i}`)));
        const { conversationId, results } = await store.append(batchOf(events));
        const { items } = await store.readCoverHead({ conversationId, maxMessageTokens: 1_000 });
        const keys = items.slice(0, 3).map(({ startPosition, seq }) => ({ startPosition, seq }));
        const run = await store.readRun(conversationId, keys, true);
        expect(run.map(({ messageId }) => messageId)).toEqual(
          results.slice(0, 3).map(({ messageId }) => messageId),
        );
        expect(Buffer.from(run[0]?.bytes ?? []).toString()).toContain("message number 0");
        const fold = {
          conversationId,
          run: run.map((item) => ({ ...item, summaryId: null })),
          summary: {
            summaryId: "sum_00000000000000a1",
            content: "three messages",
            tokens: 5,
            model: "test",
            level: "normal",
          },
          state: "cover",
          now: clock.now(),
        } as const;
        expect(await store.storeSummary(fold)).toMatchObject({ kind: "published" });
        const second = { ...fold, summary: { ...fold.summary, summaryId: "sum_00000000000000a2" } };
        expect(await store.storeSummary(second)).toMatchObject({ kind: "stale" });
        const { summaryId } = fold.summary;
        expect(await store.readSummary(summaryId)).toMatchObject({ content: "three messages", messages: 3 });
        expect(await store.readSummary(summaryId, "other")).toBeNull();
        expect((await store.readShownSummaries([summaryId, "sum_0000000000000000"])).length).toBe(1);
        expect((await store.readSourceItems([summaryId])).get(summaryId)).toHaveLength(3);
        expect((await store.listSummaries({ conversationId, after: null, limit: 10 })).items).toHaveLength(1);
        expect(await store.readGraph({ conversationId })).toMatchObject({
          nodes: [{ summaryId }],
          edges: [],
        });
        expect(await store.countSummaries(conversationId)).toMatchObject({ cover: 1, stale: 0 });
        expect(await store.hasStale(conversationId)).toBe(false);
        expect(await store.readStale(conversationId)).toBeNull();
        const cover = await store.readCoverTail({ conversationId, maxTokens: 1_000, maxMessages: 10 });
        expect(cover?.items.map((item) => item.summaryId)).toEqual([null, summaryId]);
      }));

    test("lends a debt to one process at a time, and is paid once", () =>
      withStore(async (store) => {
        const { conversationId } = await store.append(batchOf([makeEvent("a", say("one"))]));
        const now = clock.now();
        const lease = { conversationId, now, leaseMs: 1_000 };
        expect(await store.claimDebt({ ...lease, holder: "one" })).toBeNull();
        await store.addDebt({ conversationId, budgetTokens: 1_000, now });
        expect(await store.claimDebt({ ...lease, holder: "one" })).toMatchObject({ budgetTokens: 1_000 });
        expect(await store.claimDebt({ ...lease, holder: "two" })).toBeNull();
        expect(await store.claimUpkeep({ ...lease, holder: "two" })).toBe(false);
        expect(await store.renewDebt({ conversationId, holder: "two", until: now + 5_000 })).toBe(false);
        expect(await store.renewDebt({ conversationId, holder: "one", until: now + 5_000 })).toBe(true);
        expect(await store.readDebt(conversationId)).toMatchObject({
          leaseHolder: "one",
          leaseUntil: now + 5_000,
        });
        // More is owed meanwhile: whoever works on it goes on alone.
        await store.addDebt({ conversationId, budgetTokens: 2_000, now });
        expect(await store.claimDebt({ ...lease, holder: "two" })).toBeNull();
        const paid = { conversationId, holder: "one", now, failure: null, retryAt: null };
        await store.settleDebt({ ...paid, holder: "two" });
        expect(await store.readDebt(conversationId)).toMatchObject({ leaseHolder: "one" });
        await store.settleDebt(paid);
        expect(await store.readDebt(conversationId)).toBeNull();
        expect(await store.claimUpkeep({ ...lease, holder: "two" })).toBe(true);
        await store.releaseUpkeep({ conversationId, holder: "one" });
        expect(await store.claimUpkeep({ ...lease, holder: "one" })).toBe(false);
        await store.releaseUpkeep({ conversationId, holder: "two" });
        expect(await store.claimUpkeep({ ...lease, holder: "one" })).toBe(true);
        await store.releaseUpkeep({ conversationId, holder: "one" });
        // Taken by a clock that was far ahead, and set right since.
        const ahead = { ...lease, now: now + 7 * 86_400_000 };
        expect(await store.claimUpkeep({ ...ahead, holder: "two" })).toBe(true);
        expect(await store.claimUpkeep({ ...lease, holder: "one" })).toBe(true);
      }));

    test("adds up what models cost, and keeps guards", () =>
      withStore(async (store) => {
        for (const at of [1_000, 2_000, 3_000]) await store.recordSpend({ ...SPENT, at });
        expect(await store.countSpendCalls(2_000)).toBe(2);
        expect(await store.sumSpend({ since: 0, by: "all" })).toMatchObject([
          { calls: 3, inputTokens: 300, outputTokens: 30 },
        ]);
        const guard = { name: "spend", failures: 1, openUntil: 9_000, reason: "cap" };
        await store.saveGuard({ ...guard, failures: 0 });
        await store.saveGuard(guard);
        expect(await store.readGuards()).toEqual([guard]);
      }));

    test("finds the same after its index was rebuilt", () =>
      withStore(async (store) => {
        const texts = ["heron", "stork", "heron and stork"];
        await store.append(batchOf(texts.map((text, i) => makeEvent(`e${i}`, say(text)))));
        await store.flushIndex();
        const found = await findWord(store, "heron", {});
        expect(found).toHaveLength(2);
        expect(await store.reindex(deriveMessage, () => undefined)).toBe(3);
        expect(await findWord(store, "heron", {})).toEqual(found);
      }));

    test.skipIf(without.includes("copies"))("copies itself while it goes on", () =>
      withStore(async (store, { folder }) => {
        await store.append(batchOf([makeEvent("a", say("one"))]));
        const copy = `${folder}/copy`;
        mkdirSync(copy);
        await store.backup(`${copy}/lcm.db`, () => undefined);
        await store.append(batchOf([makeEvent("b", say("two"))]));
        const copied = watchVerbs(await open(copy), used);
        expect(await copied.knownEvents("main", session.id, ["a", "b"])).toEqual(["a"]);
        expect((await copied.verify(deriveMessage, () => undefined)).problems).toEqual([]);
        await copied.close();
      }),
    );

    test("what is brought in counts when all of it is there, and not at all if that fails", () =>
      withStore(async (store) => {
        const bring = (id: string, fails: boolean): Promise<string[]> =>
          store.bringIn(async (into) => {
            const own = { session: { ...session, key: `agent:main:${id}`, id } };
            await into.append(batchOf([makeEvent("a", say("one"))], own));
            await into.append(batchOf([makeEvent("b", say("two"))], own));
            if (fails) throw new Error("the second half is missing");
            const state = await into.readSession("main", id);
            const { items } = await into.listMessages({
              conversationId: state?.conversationId ?? 0,
              after: null,
              limit: 10,
              order: "position",
              direction: "oldest",
            });
            return items.map((row) => row.eventId);
          });
        expect(await bring("kept", false)).toEqual(["a", "b"]);
        await expect(bring("failed", true)).rejects.toThrow("the second half is missing");
        expect(await store.knownEvents("main", "kept", ["a", "b"])).toEqual(["a", "b"]);
        expect(await store.readSession("main", "failed")).toBe(null);
        expect((await store.status()).messages).toBe(2);
      }));

    test("keeps a large payload that was stored before an intake which brings it again, and fails", () =>
      withStore(async (store) => {
        const text = Array.from({ length: 12_000 }, (_, i) => `${i},plant-${i % 97}`).join("\n");
        const big = say(`see <file name="stock.csv" mime="text/csv">${text}</file>`);
        const { results } = await store.append(batchOf([makeEvent("big", big)]));
        for (const isRepeatable of [false, true]) {
          const failing = store.bringIn(
            async (into) => {
              await into.append(batchOf([makeEvent("big again", big)]));
              throw new Error("the rest is missing");
            },
            { isRepeatable },
          );
          await expect(failing).rejects.toThrow("the rest is missing");
        }
        const stored = await store.readMessage(results[0]?.messageId ?? 0);
        expect(Buffer.from(stored?.bytes ?? []).equals(Buffer.from(JSON.stringify(big)))).toBe(true);
      }));

    testFolding(withStore);
    testRecall(withStore);
    testLists(withStore);
    testCare(withStore, !without.includes("remains"));
    testTransfer(withStore);

    test("every verb is used by a test above", () => {
      expect(verbs.filter((verb) => !used.has(verb))).toEqual([]);
    });
  });
}

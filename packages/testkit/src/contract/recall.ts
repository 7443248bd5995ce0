/** What every store must find and read for recall, never outside the requested scope. */
import type { Grant, TextClue } from "@lossless/core/ports";
import { deriveMessage } from "@lossless/core/testing";
import { expect, test } from "vitest";
import { batchOf, clock, fold, makeEvent, say, session, tell, textOf } from "./parts.ts";
import type { WithStore } from "./parts.ts";

const START = 1_700_000_000_000;
const FOREIGN = { owner: "somebody else" };
const run = (...words: string[]): TextClue => ({ kind: "phrase", words });
const timed = (text: string, i: number) =>
  makeEvent(`e${i}`, { role: "user", content: text, timestamp: START + i * 1_000 });

export function testRecall(withStore: WithStore): void {
  test("knows when messages were written and which stand beside each other", () =>
    withStore(async (store) => {
      const { results, conversationId } = await store.append(
        batchOf(["heron", "stork", "crane", "egret"].map(timed)),
      );
      const ids = results.map(({ messageId }) => messageId);
      const [first = 0, second = 0, third = 0, last = 0] = ids;
      await store.flushIndex();
      const ranges = [{ since: START + 1_000, before: START + 3_000 }];
      const written = await store.findWritten({ scope: {}, ranges, limit: 10 });
      expect(written).toMatchObject([
        { messageId: third, createdAt: START + 2_000 },
        { messageId: second, createdAt: START + 1_000 },
      ]);
      expect(await store.findWritten({ scope: FOREIGN, ranges, limit: 10 })).toEqual([]);
      const kind = "message";
      const times = await store.readTimes({ kind, ids: [first, last], scope: {} });
      expect(times.toSorted((a, b) => a.id - b.id)).toEqual([
        { id: first, createdAt: START, conversationId, position: 1 },
        { id: last, createdAt: START + 3_000, conversationId, position: 4 },
      ]);
      expect(await store.readTimes({ kind, ids, scope: FOREIGN })).toEqual([]);
      const request = { kind, ids: [second], reach: 1, scope: {}, withRoles: true } as const;
      const places = await store.readCandidates(request);
      expect(places.map(({ id }) => id).toSorted()).toEqual([first, second, third]);
      expect(places.map(({ role }) => role)).toEqual(["user", "user", "user"]);
      expect(places.every((place) => place.conversationId === conversationId && place.words === 1)).toBe(
        true,
      );
      const [before, itself, behind] = places.toSorted((a, b) => a.position - b.position);
      expect([before?.position, behind?.position]).toEqual([
        (itself?.position ?? 0) - 1,
        (itself?.position ?? 0) + 1,
      ]);
      expect(await store.readCandidates({ kind, ids: [second], reach: 1, scope: FOREIGN })).toEqual([]);
      expect(await store.listNewest({ kind, scope: {}, within: null })).toEqual(
        ids.toReversed().map((id) => ({ id, createdAt: START + ids.indexOf(id) * 1_000 })),
      );
      const within = [[second, third]] as const;
      expect((await store.listNewest({ kind, scope: {}, within })).map(({ id }) => id)).toEqual([
        third,
        second,
      ]);
      expect(await store.listNewest({ kind, scope: FOREIGN, within: null })).toEqual([]);
      const all = await store.listNewest({ kind, scope: {}, within: null });
      for (const limit of [1, all.length, 100])
        expect(await store.listNewest({ kind, scope: {}, within: null, limit })).toEqual(all.slice(0, limit));
      expect(await store.listRange(first, third)).toEqual([first, second, third]);
    }));

  test("takes those of tied messages that were written last, then those that stand last", () =>
    withStore(async (store) => {
      const said = [4, 1, 3, 3, 2].map((time, i) =>
        makeEvent(`e${i}`, { role: "user", content: `heron ${i}`, timestamp: START + time * 1_000 }),
      );
      const { results } = await store.append(batchOf(said));
      const ids = results.map(({ messageId }) => messageId);
      await store.flushIndex();
      const take = async (count: number, given: readonly number[] = [], scope = {}): Promise<number[]> => {
        const request = { kind: "message", ids: given, tied: { ids, count }, reach: 0, scope } as const;
        return (await store.readCandidates(request)).map(({ id }) => ids.indexOf(id)).toSorted();
      };
      expect(await take(1)).toEqual([0]);
      expect(await take(2)).toEqual([0, 3]);
      expect(await take(3, [ids[1] ?? 0])).toEqual([0, 1, 2, 3]);
      expect(await take(9)).toEqual([0, 1, 2, 3, 4]);
      expect(await take(2, [], FOREIGN)).toEqual([]);
    }));

  test("reads texts as they were handed in, and tells which hold a clue", () =>
    withStore(async (store) => {
      const { ids } = await tell(store, ["a heron stands", "storks fly", "another heron"]);
      await store.append(batchOf([makeEvent("e1", say("storks walk"))]));
      await store.flushIndex();
      const clues = [run("heron"), run("stand"), run("walk")];
      expect(await store.testClues({ kind: "message", clues, ids })).toEqual([
        [ids[0], ids[2]],
        [ids[0]],
        [],
      ]);
      const texts = await store.readTexts([ids[2] ?? 0], {});
      expect(texts).toMatchObject([{ messageId: ids[2], eventId: "e2", role: "user" }]);
      expect(Buffer.from(texts[0]?.bytes ?? []).toString()).toBe(JSON.stringify(say("another heron")));
      expect(await store.readTexts(ids, FOREIGN)).toEqual([]);
      const all = [[0, 1_000]] as const;
      const scanned = await store.readTextsWithin(all, {});
      expect(scanned.map(({ arrival }) => arrival).toSorted()).toEqual(
        ["a heron stands", "another heron", "storks walk"].map((text) => JSON.stringify(say(text))),
      );
      expect(await store.readTextsWithin(all, FOREIGN)).toEqual([]);
      // "stor" continues after it: the messages with storks may contain it inside a word.
      const doubt = { letters: "stor", side: "behind", beside: "" } as const;
      const revision = scanned.find(({ arrival }) => arrival.includes("walk"))?.messageId ?? 0;
      for (const within of [null, [revision, revision]] as const) {
        const { words, unresolved } = await store.findDoubts([doubt], {}, within);
        const isUnresolved = unresolved.some(([first, last]) => first <= revision && revision <= last);
        expect(isUnresolved || words[0]?.includes("storks")).toBe(true);
      }
    }));

  test("knows which parts of a message are calls of our own tools", () =>
    withStore(async (store) => {
      const call = { type: "toolCall", id: "c1", name: "lcm_grep", arguments: { pattern: "heron" } };
      const other = { ...call, id: "c2", name: "read_file" };
      const text = { type: "text", text: "I look it up" };
      const { results } = await store.append(
        batchOf([
          makeEvent("a", { role: "assistant", content: [text, call] }),
          makeEvent("b", { role: "assistant", content: [call] }),
          makeEvent("c", { role: "assistant", content: [text, other] }),
        ]),
      );
      const ids = results.map(({ messageId }) => messageId);
      expect(await store.listRecallParts(ids)).toMatchObject([
        { messageId: ids[0], ordinals: new Set([1]), isAll: false },
        { messageId: ids[1], ordinals: new Set([0]), isAll: true },
      ]);
      expect(await store.listRecallParts(ids.slice(2))).toEqual([]);
    }));

  test("knows whose result a result without a name is: that of the nearest call before it", () =>
    withStore(async (store) => {
      const call = (name: string) => ({ type: "toolCall", id: "c1", name, arguments: {} });
      const ask = (name: string) => ({ role: "assistant", content: [call(name)] });
      const block = { type: "tool_result", tool_use_id: "c1", content: [{ type: "text", text: "found" }] };
      const answer = { role: "user", content: [block] };
      const { results } = await store.append(
        batchOf(
          [answer, ask("lcm_grep"), answer, ask("read_file"), answer].map((message, i) =>
            makeEvent(`e${i}`, message),
          ),
        ),
      );
      const found = await store.listRecallParts(results.map(({ messageId }) => messageId));
      expect(found.map(({ messageId, isAll }) => [messageId, isAll])).toEqual([
        [results[1]?.messageId, true],
        [results[2]?.messageId, true],
      ]);
    }));

  test("finds summaries by their words, within a scope", () =>
    withStore(async (store) => {
      const { conversationId } = await tell(store, ["a", "b", "c"]);
      await fold(store, conversationId, { count: 2, text: textOf(1, "they saw a heron") });
      await store.flushIndex();
      const request = { kind: "summary", clues: [run("heron")], limit: 10 } as const;
      const refs = (await store.findClues({ ...request, scope: {} })).listings[0]?.ids ?? [];
      expect(await store.readFoundSummaries(refs, {})).toMatchObject([
        { ref: refs[0], summaryId: textOf(1).summaryId, conversationId, content: "they saw a heron" },
      ]);
      expect(await store.readFoundSummaries(refs, FOREIGN)).toEqual([]);
      expect((await store.findClues({ ...request, scope: FOREIGN })).listings[0]?.ids).toEqual([]);
    }));

  test("lists large files, and the messages they were cut out of", () =>
    withStore(async (store) => {
      const table = Array.from({ length: 9_000 }, (_, i) => `${i},plant-${i % 97},${(i * 7919) % 1000}`);
      const paste = say(`look: <file name="stock.csv" mime="text/csv">${table.join("\n")}</file>`);
      const { results } = await store.append(batchOf([makeEvent("a", paste), makeEvent("b", say("and?"))]));
      const [file, ...others] = await store.listFiles({}, null);
      expect(file).toMatchObject({ fileName: "stock.csv", mimeType: "text/csv" });
      expect(others).toEqual([]);
      const fileId = file?.fileId ?? "";
      expect(await store.listFiles({}, [fileId])).toEqual([file]);
      expect(await store.listFiles({}, ["file_0000000000000000"])).toEqual([]);
      expect(await store.listFiles(FOREIGN, null)).toEqual([]);
      expect(await store.readFileMessages(fileId)).toEqual([results[0]?.messageId]);
      expect(await store.listBlobs()).toEqual([file?.blob]);
    }));

  test("removes a large file only if no message names it", () =>
    withStore(async (store) => {
      const table = Array.from({ length: 9_000 }, (_, i) => `${i},plant-${i % 97},${(i * 7919) % 1000}`);
      const paste = say(`look: <file name="stock.csv" mime="text/csv">${table.join("\n")}</file>`);
      const { conversationId } = await store.append(batchOf([makeEvent("a", paste)]));
      const [named = ""] = await store.listBlobs();
      const unnamed = `${conversationId}/file_0123456789abcdef.csv`;
      expect(await store.removeUnnamed([named, unnamed, "9/not-ours.txt"])).toEqual([]);
      expect((await store.verify(deriveMessage, () => undefined)).problems).toEqual([]);
    }));

  test("knows the conversations of a family, and what a fork has in common with its parent", () =>
    withStore(async (store) => {
      const { conversationId } = await tell(store, ["a", "b"]);
      const child = { ...session, key: "agent:main:fork", id: "session-2" };
      const asked = { owner: "main", parentSessionId: session.id, eventIds: ["e0"] };
      const point = await store.findForkPoint(asked);
      if (point === null) throw new Error("the parent was not found");
      const forked = await store.fork({ ...asked, session: child, point, items: [], now: clock.now() });
      const family = { owner: "main", newestOnly: false };
      expect(await store.readFamily({ ...family, sessionKey: child.key })).toMatchObject({
        conversationIds: [forked.conversationId],
        inherited: [{ conversationId, position: point.position }],
      });
      const own = { conversationIds: [conversationId], inherited: [] };
      expect(await store.readFamily({ ...family, sessionKey: session.key })).toMatchObject(own);
      const nobody = { conversationIds: [], inherited: [], firstAt: null, lastAt: null };
      expect(await store.readFamily({ ...family, sessionKey: session.key, ...FOREIGN })).toEqual(nobody);
      expect(await store.listScope({ sessionKey: child.key })).toEqual([forked.conversationId]);
      expect(await store.listScope({ owner: "main" })).toEqual([forked.conversationId, conversationId]);
      expect(await store.listScope(FOREIGN)).toEqual([]);
    }));

  test("knows where conversations come from, and lists those of a project or an agent", () =>
    withStore(async (store) => {
      const other = { ...session, key: "claude-code:2", id: "session-2" };
      const { conversationId } = await tell(store, ["a"]);
      const told = { events: [], now: clock.now() };
      const first = { agent: "claude-code", project: "/srv/app", branch: "main", model: "large" };
      const second = await store.append({ ...told, session: other, origin: first });
      const later = { agent: "codex", project: "/srv", branch: "fix", title: "A \0title", model: "" };
      await store.append({ ...told, session: other, origin: later });
      expect(await store.readConversation(second.conversationId)).toMatchObject({
        ...first,
        branch: "fix",
        title: "A title",
      });
      const nothing = { agent: null, project: null, branch: null, title: null, model: null };
      expect(await store.readConversation(conversationId)).toMatchObject(nothing);
      expect(await store.listScope({ project: "/srv/app" })).toEqual([second.conversationId]);
      expect(await store.listScope({ project: "/srv" })).toEqual([]);
      expect(await store.listScope({ agent: "claude-code", owner: "nobody" })).toEqual([]);
      expect(await store.listScope({ exceptSession: other.id })).toEqual([conversationId]);
      const page = await store.listConversations({ agent: "claude-code", after: null, limit: 9 });
      expect(page.items.map((row) => row.conversationId)).toEqual([second.conversationId]);
      const [moved] = await store.listMoved({ conversationIds: [second.conversationId] });
      expect(moved).toMatchObject({ project: "/srv/app", title: "A title" });
    }));

  test("lends a grant to one at a time, for a while, up to a number of tokens", () =>
    withStore(async (store) => {
      const now = clock.now();
      const grant: Grant = {
        grantId: "grant-1",
        owner: "main",
        issuerKey: "issuer",
        holderKey: "holder",
        conversationIds: [1],
        summaryIds: [textOf(1).summaryId],
        maxDepth: 2,
        tokenCap: 100,
        tokensUsed: 0,
        expiresAt: now + 1_000,
        revokedAt: null,
      };
      expect(await store.insertGrant(grant, now)).toBe(true);
      expect(await store.insertGrant({ ...grant, grantId: "grant-2" }, now)).toBe(false);
      expect(await store.findGrantOf("holder", now)).toEqual(grant);
      expect(await store.findGrantOf("nobody", now)).toBeNull();
      expect(await store.chargeGrant("grant-1", 70, now)).toBe(100);
      expect(await store.chargeGrant("grant-1", 70, now)).toBe(30);
      expect(await store.findGrantOf("holder", now)).toMatchObject({ tokensUsed: 100 });
      expect(await store.chargeGrant("grant-1", 1, grant.expiresAt)).toBeNull();
      expect(await store.revokeGrants({ issuerKey: "another" }, now)).toBe(0);
      expect(await store.revokeGrants({ issuerKey: "issuer" }, now)).toBe(1);
      expect(await store.chargeGrant("grant-1", 1, now)).toBeNull();
      expect(await store.insertGrant({ ...grant, grantId: "grant-2" }, now)).toBe(true);
      expect(await store.sweepGrants(now + 1)).toBe(1);
      expect(await store.findGrantOf("holder", now)).toMatchObject({ grantId: "grant-2" });
    }));
}

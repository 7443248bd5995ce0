/** What every store must do for an operator: proving, forgetting, joining and removing; and what it keeps of redacted messages. */
import { POSITION_STEP } from "@lossless/core";
import type { Store } from "@lossless/core/ports";
import { compileRedaction, createVault, deriveMessage, prepareMessage } from "@lossless/core/testing";
import { expect, test } from "vitest";
import { allMessages, batchOf, clock, findWord, fold, makeEvent, readContext, replace } from "./parts.ts";
import { say, session, tell, textOf } from "./parts.ts";
import type { WithStore } from "./parts.ts";

const bytesOf = (text: string): Buffer => Buffer.from(JSON.stringify(say(text)));

export function testCare(withStore: WithStore, leavesRemains: boolean): void {
  test("names events whose bytes it could not give back", () =>
    withStore(async (store) => {
      await tell(store, ["one", "two"]);
      const events = [
        { eventId: "e0", bytes: bytesOf("one") },
        { eventId: "e1", bytes: bytesOf("another") },
        { eventId: "e9", bytes: bytesOf("one") },
      ];
      expect(await store.findUnproven("main", session.id, events)).toEqual(["e1", "e9"]);
      expect(await store.findUnproven("main", "another", events.slice(0, 1))).toEqual(["e0"]);
    }));

  test("is of the version that this program writes", () =>
    withStore(async (store) => {
      const { schemaVersion, storedSchemaVersion } = await store.readVersions();
      expect(storedSchemaVersion).toBe(schemaVersion);
    }));

  test("forgets a message for good, and knows its event for ever", () =>
    withStore(async (store) => {
      const { conversationId, ids } = await tell(store, ["keep the heron", "forget the stork"]);
      await store.flushIndex();
      const [, forgotten = 0] = ids;
      const planned = await store.planForget([forgotten], []);
      expect(planned).toMatchObject({
        messageIds: [forgotten],
        conversationIds: [conversationId],
        summaries: [],
      });
      const request = { alsoSummaryIds: [], replacements: [], reason: "asked", now: clock.now() };
      expect(await store.isForgettingOpen()).toBe(false);
      const outcome = await store.forget({ ...request, messageIds: [forgotten] });
      expect(outcome).toEqual({ kind: "forgotten", plan: planned });
      const rows = await allMessages(store, conversationId);
      expect(rows.map(({ forgottenAt }) => forgottenAt !== null)).toEqual([false, true]);
      expect((await store.readMessage(forgotten))?.bytes).toHaveLength(0);
      expect(await findWord(store, "stork", {})).toEqual([]);
      expect(await findWord(store, "heron", {})).toEqual([ids[0]]);
      const again = await store.append(batchOf([makeEvent("e1", say("forget the stork"))]));
      expect(again.results[0]?.outcome).toBe("forgotten");
      expect((await store.planForget([forgotten], [])).messageIds).toEqual([]);
      if (leavesRemains) expect(await store.isForgettingOpen()).toBe(true);
      expect(await store.wipeFreed()).toBe(true);
      expect(await store.isForgettingOpen()).toBe(false);
    }));

  test("keeps no title, branch or tags of a conversation of which something was forgotten, but where it was", () =>
    withStore(async (store) => {
      const events = [makeEvent("e0", say("forget the stork")), makeEvent("e1", say("keep the heron"))];
      const origin = { agent: "codex", title: "Birds", branch: "stork", project: "/srv/birds" };
      const { conversationId, results } = await store.append({ ...batchOf(events), origin });
      const request = { alsoSummaryIds: [], replacements: [], reason: "asked", now: clock.now() };
      await store.forget({ ...request, messageIds: [results[0]?.messageId ?? 0] });
      const left = { agent: "codex", project: "/srv/birds", branch: null, title: null };
      expect(await store.readConversation(conversationId)).toMatchObject(left);
      // Its transcript comes again, with the words about it.
      await store.append({ ...batchOf(events), origin });
      expect(await store.readConversation(conversationId)).toMatchObject(left);
    }));

  test("keeps no word about a conversation of which all was forgotten, also when the message comes again", () =>
    withStore(async (store) => {
      const batch = {
        ...batchOf([makeEvent("e0", say("forget the stork"))]),
        origin: { agent: "codex", title: "The stork", branch: "stork", project: "/srv/stork" },
      };
      const { conversationId, results } = await store.append(batch);
      const readOrigin = async () => store.readConversation(conversationId);
      expect(await readOrigin()).toMatchObject({ agent: "codex", title: "The stork" });
      const update = { name: "A stork", addTags: ["stork"] };
      await store.label({ conversationId, update, now: clock.now() });
      const nothing = { agent: null, project: null, branch: null, title: null, name: null, tags: [] };
      const messageIds = results.map(({ messageId }) => messageId);
      const request = { alsoSummaryIds: [], replacements: [], reason: "asked", now: clock.now() };
      await store.forget({ ...request, messageIds });
      expect(await readOrigin()).toMatchObject(nothing);
      await store.append(batch);
      expect(await readOrigin()).toMatchObject(nothing);
      const later = batchOf([makeEvent("e1", say("what of the heron?"))]);
      await store.append({ ...later, origin: { title: "The heron" } });
      expect(await readOrigin()).toMatchObject({ title: "The heron" });
      expect((await store.verify(deriveMessage, () => undefined)).problems).toEqual([]);
    }));

  test("joins what is left of a conversation under whose finest summary everything was forgotten", () =>
    withStore(async (store) => {
      const { conversationId: from, ids } = await tell(store, ["a", "b", "c"]);
      const [fine, coarse] = [textOf(1), textOf(2)];
      await fold(store, from, { count: 2, text: fine });
      await fold(store, from, { count: 2, text: coarse });
      const { messageIds } = await store.planForget(ids.slice(0, 2), []);
      const replacements = [
        replace(fine.summaryId, textOf(3), await store.readSources(fine.summaryId)),
        replace(coarse.summaryId, textOf(4), await store.readSources(coarse.summaryId)),
      ];
      const request = { messageIds, alsoSummaryIds: [], replacements, reason: "asked", now: clock.now() };
      expect((await store.forget(request)).kind).toBe("forgotten");
      const other = { ...session, id: "session-2", key: "agent:main:other" };
      const { conversationId: to } = await store.append(
        batchOf([makeEvent("z", say("z"))], { session: other }),
      );
      await store.transplant({ from, to, dryRun: false, now: clock.now() }, deriveMessage);
      expect((await store.verify(deriveMessage, () => undefined)).problems).toEqual([]);
    }));

  test("forgets what lies under a summary only together with a new text for it", () =>
    withStore(async (store) => {
      const { conversationId, ids } = await tell(store, ["a", "b", "c"]);
      const { summaryId } = textOf(1);
      await fold(store, conversationId, { count: 2, text: textOf(1, "tells of a and b") });
      const { summaries, messageIds } = await store.planForget([ids[0] ?? 0], []);
      expect(summaries).toMatchObject([{ summaryId, isPublished: true }]);
      const request = { messageIds, alsoSummaryIds: [], reason: "asked", now: clock.now() };
      expect(await store.forget({ ...request, replacements: [] })).toEqual({ kind: "stale" });
      expect((await store.readMessage(ids[0] ?? 0))?.row.forgottenAt).toBeNull();
      const replacements = [replace(summaryId, textOf(2, "tells of b"), await store.readSources(summaryId))];
      expect((await store.forget({ ...request, replacements })).kind).toBe("forgotten");
      expect(await readContext(store, conversationId)).toEqual([textOf(2).summaryId, ids[2]]);
      expect((await store.readSummary(summaryId))?.content).not.toContain("tells of a");
    }));

  test("leaves nothing of a forgotten message in summaries that are not shown: prepared, stand-ins, replaced ones", () =>
    withStore(async (store) => {
      const { conversationId, ids } = await tell(store, ["a", "b", "c", "d"]);
      const tales = [1, 2, 3, 4].map((n) => textOf(n, `tale ${n} of the stork`));
      const [first = textOf(1), second = textOf(2), third = textOf(3), fourth = textOf(4)] = tales;
      await fold(store, conversationId, { count: 2, text: first });
      const sources = await store.readSources(first.summaryId);
      await store.replaceSummary(replace(first.summaryId, second, sources), clock.now());
      await fold(store, conversationId, { count: 2, text: third, state: "prepared" });
      await fold(store, conversationId, { count: 3, text: fourth, state: "reserve" });
      const { messageIds, summaries } = await store.planForget([ids[0] ?? 0], []);
      expect(summaries.map(({ summaryId }) => summaryId).toSorted()).toEqual(
        tales.map(({ summaryId }) => summaryId),
      );
      const replacements = [
        replace(second.summaryId, textOf(5, "of b"), await store.readSources(second.summaryId)),
      ];
      const request = { messageIds, alsoSummaryIds: [], replacements, reason: "asked", now: clock.now() };
      expect((await store.forget(request)).kind).toBe("forgotten");
      for (const { summaryId } of tales)
        expect((await store.readSummary(summaryId))?.content).not.toContain("stork");
    }));

  test("copies a conversation in front of another one, once", () =>
    withStore(async (store) => {
      const old = { ...session, key: "agent:main:old", id: "old" };
      const before = await store.append(
        batchOf([makeEvent("a", say("one")), makeEvent("b", say("two"))], { session: old }),
      );
      const { conversationId } = await tell(store, ["three"]);
      const request = { from: before.conversationId, to: conversationId, now: clock.now() };
      const told = await store.transplant({ ...request, dryRun: true }, deriveMessage);
      expect(told).toMatchObject({ messages: 2, summaries: 0, summaryIds: [] });
      expect(await allMessages(store, conversationId)).toHaveLength(1);
      await store.transplant({ ...request, dryRun: false }, deriveMessage);
      expect(await readTexts(store, conversationId)).toEqual(["one", "two", "three"]);
      expect(await readTexts(store, before.conversationId)).toEqual(["one", "two"]);
      await expect(store.transplant({ ...request, dryRun: false }, deriveMessage)).rejects.toThrow("cannot");
    }));

  test("forgets the copies of a message with it, and not the message with a copy", () =>
    withStore(async (store) => {
      const start = (id: string, key: string) => ({ ...session, id, key });
      const told = async (name: string) =>
        await store.append(
          batchOf([makeEvent(name, say(name))], { session: start(name, `agent:main:${name}`) }),
        );
      const first = await store.append(
        batchOf([makeEvent("a", say("heron")), makeEvent("b", say("stork")), makeEvent("a", say("a heron"))]),
      );
      const [second, third, fourth] = [await told("two"), await told("three"), await told("four")];
      const copy = (from: number, to: number) =>
        store.transplant({ from, to, dryRun: false, now: clock.now() }, deriveMessage);
      await copy(first.conversationId, second.conversationId);
      await copy(second.conversationId, third.conversationId);
      await copy(first.conversationId, fourth.conversationId);
      const request = { alsoSummaryIds: [], replacements: [], reason: "asked", now: clock.now() };
      const [copied] = await allMessages(store, second.conversationId);
      await store.forget({ ...request, messageIds: [copied?.messageId ?? 0] });
      const read = async () =>
        await Promise.all(
          [first, second, third, fourth].map(async (one) => await readTexts(store, one.conversationId)),
        );
      expect(await read()).toEqual([
        ["heron", "a heron", "stork"],
        ["stork", "two"],
        ["stork", "two", "three"],
        ["heron", "a heron", "stork", "four"],
      ]);
      await store.forget({ ...request, messageIds: first.results.map(({ messageId }) => messageId) });
      expect(await read()).toEqual([[], ["two"], ["two", "three"], ["four"]]);
      expect((await store.verify(deriveMessage, () => undefined)).problems).toEqual([]);
    }));

  test("copies a conversation in front of one that is still empty, and of everything it gets later", () =>
    withStore(async (store) => {
      const at = (line: number) =>
        makeEvent(`e${line}`, say(`line ${line}`), { position: line * POSITION_STEP });
      const { conversationId: from } = await store.append(batchOf([at(1), at(2)]));
      const boundary = {
        session,
        eventId: "reset",
        reason: "reset",
        retainDepth: 2,
        at: clock.now(),
      } as const;
      const { conversationId: to } = await store.recordBoundary({ ...boundary, position: 3 * POSITION_STEP });
      await store.transplant({ from, to, dryRun: false, now: clock.now() }, deriveMessage);
      await store.append(batchOf([at(4), at(5)]));
      expect(await readTexts(store, to)).toEqual(["line 1", "line 2", "line 4", "line 5"]);
      expect((await store.verify(deriveMessage, () => undefined)).problems).toEqual([]);
    }));

  test("lists what imports stored, and removes a conversation with everything in it, if it is as it was seen", () =>
    withStore(async (store) => {
      const mark = { importId: "imp_0123456789abcdef", source: "/chat.jsonl", at: clock.now() };
      const events = [makeEvent("a", say("one")), makeEvent("b", say("two"))];
      const { conversationId } = await store.append(batchOf(events, { import: mark }));
      await fold(store, conversationId, { count: 2, text: textOf(1) });
      expect(await store.listImports()).toEqual([{ ...mark, conversationId, messages: 2 }]);
      const [ties, ...others] = await store.readTies([conversationId, conversationId + 1]);
      expect(others).toEqual([]);
      expect(ties).toMatchObject({ conversationId, owner: "main", messages: 2, summaries: 1, forks: [] });
      if (ties === undefined) return;
      await store.append(batchOf([makeEvent("c", say("three"))]));
      expect(await store.removeConversations([ties])).toBeNull();
      expect(await allMessages(store, conversationId)).toHaveLength(3);
      const removed = await store.removeConversations(await store.readTies([conversationId]));
      expect(removed).toEqual({ conversations: 1, messages: 3, summaries: 1, files: 0 });
      expect(await store.readConversation(conversationId)).toBeNull();
      expect(await store.listImports()).toEqual([]);
      const again = await store.append(batchOf(events));
      expect(again.results.map(({ outcome }) => outcome)).toEqual(["stored", "stored"]);
      expect(again.conversationId).toBeGreaterThan(conversationId);
    }));

  test("keeps what was redacted sealed, tells when it was opened, and takes it sealed anew", () =>
    withStore(async (store) => {
      const vault = createVault(Buffer.alloc(32, 7));
      const original = bytesOf("the code is 4711 today");
      const redacted = compileRedaction(["4711"])?.(original);
      if (redacted === undefined) throw new Error("nothing was redacted");
      const event = {
        eventId: "a",
        kind: "entry",
        arrival: redacted.bytes,
        original,
        position: null,
        prepare: () =>
          prepareMessage(redacted.bytes, {
            hidden: 0,
            createdAt: 1_700_000_000_000,
            largeFileThresholdTokens: 25_000,
            random: clock.random,
            redacted: { original, values: redacted.values, vault, keepsValues: true },
          }),
      } as const;
      const { results } = await store.append(batchOf([event, makeEvent("b", say("nothing secret"))]));
      const [messageId = 0, plain = 0] = results.map((result) => result.messageId);
      const kept = await store.readRedacted(messageId);
      expect(kept).toMatchObject({ messageId, keyId: vault.keyId });
      expect(Buffer.from(kept?.bytes ?? []).toString()).not.toContain("4711");
      expect(await store.readRedacted(plain)).toBeNull();
      expect(await store.readRedacted(messageId, "somebody else")).toBeNull();
      expect(await store.listSealed({ after: 0, limit: 10 })).toEqual([messageId]);
      expect(await store.listSealed({ after: messageId, limit: 10 })).toEqual([]);
      const open = (secret: typeof vault, message: typeof kept): string[] =>
        (message?.values ?? []).map((value) =>
          String(secret.open(value, { ...value, commitment: message?.commitment ?? Buffer.alloc(0) })),
        );
      expect(open(vault, kept)).toEqual(["4711"]);
      await store.recordUnsealing(messageId, [0], clock.now());
      const newer = createVault(Buffer.alloc(32, 8));
      const values = (kept?.values ?? []).map((value) =>
        newer.seal(
          Buffer.from("4711"),
          { ...value, commitment: kept?.commitment ?? Buffer.alloc(0) },
          clock.random,
        ),
      );
      await store.replaceSealed(messageId, values);
      const resealed = await store.readRedacted(messageId);
      expect([open(vault, resealed), open(newer, resealed)]).toEqual([["null"], ["4711"]]);
    }));
}

/** Without those that are forgotten. */
async function readTexts(store: Store, conversationId: number): Promise<string[]> {
  const rows = (await allMessages(store, conversationId)).filter(({ forgottenAt }) => forgottenAt === null);
  const bodies = await Promise.all(rows.map(({ messageId }) => store.readMessage(messageId)));
  return bodies.map((body) => JSON.parse(Buffer.from(body?.bytes ?? []).toString()).content as string);
}

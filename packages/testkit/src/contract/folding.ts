/** What every store must do with existing summaries, debts and counts. */
import { POSITION_STEP } from "@lossless/core";
import type { FoldRun, SummaryText } from "@lossless/core/ports";
import { expect, test } from "vitest";
import { batchOf, clock, fold, makeEvent, readContext, readItems, replace, say, session } from "./parts.ts";
import { SPENT, tell, textOf } from "./parts.ts";
import type { WithStore } from "./parts.ts";

export function testFolding(withStore: WithStore): void {
  test("publishes stored summaries together, and leaves out the one whose run changed", () =>
    withStore(async (store) => {
      const { conversationId, ids } = await tell(store, ["a", "b", "c", "d", "e"]);
      const runs = [
        await readItems(store, conversationId, 0, 2),
        await readItems(store, conversationId, 2, 4),
      ] as const;
      for (const [n, run] of runs.entries())
        await store.storeSummary({
          conversationId,
          run,
          summary: textOf(n),
          state: "prepared",
          now: clock.now(),
        });
      expect(await readContext(store, conversationId)).toEqual(ids);
      await store.append(batchOf([makeEvent("e2", say("c, corrected"))]));
      const folds = runs.map((run, n) => ({ summaryId: textOf(n).summaryId, run }));
      const outcomes = await store.publishStored({ conversationId, folds, now: clock.now() });
      expect(outcomes.map(({ kind }) => kind)).toEqual(["published", "stale"]);
      expect(await readContext(store, conversationId)).toEqual([textOf(0).summaryId, ...ids.slice(2)]);
    }));

  test("refuses a run of which a message was revised or hidden since it was read", () =>
    withStore(async (store) => {
      const { conversationId, ids } = await tell(store, ["a", "b", "c"]);
      const publish = (run: FoldRun, n: number) =>
        store.storeSummary({ conversationId, run, summary: textOf(n), state: "cover", now: clock.now() });
      const first = await readItems(store, conversationId, 0, 2);
      await store.append(batchOf([makeEvent("e0", say("a, corrected"))]));
      expect(await publish(first, 1)).toEqual({ kind: "stale" });
      const second = await readItems(store, conversationId, 0, 2);
      await store.setHidden(session, "branch", ["e1"], clock.now(), "exactly");
      expect(await publish(second, 2)).toEqual({ kind: "stale" });
      expect(await readContext(store, conversationId)).toEqual([ids[0], ids[2]]);
    }));

  test("puts a stored summary only in the place of what it was made from", () =>
    withStore(async (store) => {
      const { conversationId, ids } = await tell(store, ["a", "b", "c", "d", "e"]);
      await fold(store, conversationId, { count: 2, text: textOf(1), state: "prepared" });
      const run = await readItems(store, conversationId, 2, 4);
      const folds = [{ summaryId: textOf(1).summaryId, run }];
      expect(await store.publishStored({ conversationId, folds, now: clock.now() })).toEqual([
        { kind: "stale" },
      ]);
      // Nor is a stand-in the source of a summary that has only a part of what it stands for.
      await fold(store, conversationId, { count: 4, text: textOf(2), state: "reserve" });
      const part = {
        conversationId,
        run: await readItems(store, conversationId, 0, 3),
        sourceIds: [textOf(2).summaryId],
        summary: textOf(3),
        state: "cover" as const,
        now: clock.now(),
      };
      expect(await store.storeSummary(part)).toEqual({ kind: "stale" });
      expect(await readContext(store, conversationId)).toEqual(ids);
    }));

  test("retires what was made ahead of a summary that took its place, and a root that a longer one replaces", () =>
    withStore(async (store) => {
      const { conversationId } = await tell(store, ["a", "b", "c", "d", "e", "f"]);
      const make = async (n: number, count: number, state: "prepared" | "reserve", isRoot = false) => {
        const run = await readItems(store, conversationId, 0, count);
        const now = clock.now();
        await store.storeSummary({ conversationId, run, summary: textOf(n), state, isRoot, now });
      };
      await make(1, 2, "prepared");
      await make(2, 3, "reserve", true);
      await make(3, 4, "reserve", true);
      await fold(store, conversationId, { count: 2, text: textOf(4) });
      const states = await Promise.all(
        [1, 2, 3, 4].map(async (n) => (await store.readSummary(textOf(n).summaryId))?.state),
      );
      expect(states).toEqual(["retired", "retired", "reserve", "cover"]);
    }));

  test("shows a row that comes to the place where a summary ends, after it", () =>
    withStore(async (store) => {
      const at = (id: string, n: number) => makeEvent(id, say(id), { position: n * POSITION_STEP });
      const { conversationId } = await store.append(batchOf([at("a", 1), at("b", 2), at("c", 3)]));
      await fold(store, conversationId, { count: 2, text: textOf(1) });
      const { results } = await store.append(batchOf([at("d", 2)]));
      const context = await readContext(store, conversationId);
      expect(context.slice(0, 2)).toEqual([textOf(1).summaryId, results[0]?.messageId]);
      expect(await store.hasStale(conversationId)).toBe(false);
    }));

  test("hides a summary while everything under it is hidden, and shows it again", () =>
    withStore(async (store) => {
      const { conversationId, ids } = await tell(store, ["a", "b", "c"]);
      await fold(store, conversationId, { count: 2, text: textOf(1) });
      await store.setHidden(session, "branch", ["e0"], clock.now(), "exactly");
      expect(await readContext(store, conversationId)).toEqual([textOf(1).summaryId, ids[2]]);
      await store.setHidden(session, "branch", ["e0", "e1"], clock.now(), "exactly");
      expect(await readContext(store, conversationId)).toEqual([ids[2]]);
      await store.setHidden(session, "branch", ["e0"], clock.now(), "exactly");
      expect(await readContext(store, conversationId)).toEqual([textOf(1).summaryId, ids[2]]);
    }));

  test("remakes a summary under which a late row came, and shows the new one when it is swapped in", () =>
    withStore(async (store) => {
      const at = (n: number) => makeEvent(`m${n}`, say(`place ${n}`), { position: n * POSITION_STEP });
      const { conversationId } = await store.append(batchOf([at(1), at(2), at(4), at(5)]));
      await fold(store, conversationId, { count: 3, text: textOf(1) });
      expect(await store.hasStale(conversationId)).toBe(false);
      await store.append(batchOf([at(3)]));
      expect(await store.hasStale(conversationId)).toBe(true);
      const stale = await store.readStale(conversationId);
      expect(stale?.summary.summaryId).toBe(textOf(1).summaryId);
      expect(stale?.run).toHaveLength(4);
      const remade = replace(textOf(1).summaryId, textOf(2), stale?.run ?? []);
      const tooFew = { ...remade, sourceKeys: remade.sourceKeys.slice(1) };
      expect(await store.storeRemade(tooFew, clock.now())).toEqual({ kind: "stale" });
      expect(await store.storeRemade(remade, clock.now())).toMatchObject({ kind: "published" });
      expect((await readContext(store, conversationId))[0]).toBe(textOf(1).summaryId);
      expect(await store.swapRemade({ conversationId, now: clock.now() })).toBe(1);
      expect(await store.swapRemade({ conversationId, now: clock.now() })).toBe(0);
      expect((await readContext(store, conversationId))[0]).toBe(textOf(2).summaryId);
      expect(await store.readSummary(textOf(2).summaryId)).toMatchObject({ messages: 4, isStale: false });
      expect(await store.hasStale(conversationId)).toBe(false);
    }));

  test("replaces a summary by a better one, made from the same sources, and keeps the old one", () =>
    withStore(async (store) => {
      const { conversationId, ids } = await tell(store, ["a", "b", "c"]);
      await fold(store, conversationId, { count: 2, text: textOf(1) });
      const sources = await store.readSources(textOf(1).summaryId);
      expect(sources.map(({ messageId }) => messageId)).toEqual(ids.slice(0, 2));
      expect(Buffer.from(sources[1]?.bytes ?? []).toString()).toBe(JSON.stringify(say("b")));
      const better = replace(textOf(1).summaryId, textOf(2, "better"), sources);
      expect(await store.replaceSummary(better, clock.now())).toMatchObject({ kind: "published" });
      const late = replace(textOf(1).summaryId, textOf(3, "too late"), sources);
      expect(await store.replaceSummary(late, clock.now())).toEqual({ kind: "stale" });
      expect(await readContext(store, conversationId)).toEqual([textOf(2).summaryId, ids[2]]);
      expect(await store.readSummary(textOf(1).summaryId)).toMatchObject({ state: "retired" });
      const published = await store.listPublished({ after: "", limit: 10 });
      expect(published).toMatchObject([
        { summaryId: textOf(2).summaryId, content: "better", isStale: false },
      ]);
      expect(await store.listPublished({ after: textOf(2).summaryId, limit: 10 })).toEqual([]);
      expect(await store.listSummariesOf(ids[0] ?? 0)).toContain(textOf(2).summaryId);
      expect(await store.listSummariesOf(ids[2] ?? 0)).toEqual([]);
    }));

  test("records what a summary cost with it, once, also when its text comes too late", () =>
    withStore(async (store) => {
      const at = (n: number) => makeEvent(`m${n}`, say(`place ${n}`), { position: n * POSITION_STEP });
      const { conversationId } = await store.append(batchOf([at(1), at(2), at(4), at(5)]));
      const paid = (n: number): SummaryText => ({ ...textOf(n), spent: { ...SPENT, conversationId } });
      const countCalls = (): Promise<number> => store.countSpendCalls(0);
      const run = await readItems(store, conversationId, 0, 3);
      const fold = { conversationId, run, state: "cover", now: clock.now() } as const;
      // The second answer to a request is for a caller who did not hear the first.
      for (const calls of [1, 1]) {
        expect(await store.storeSummary({ ...fold, summary: paid(1) })).toMatchObject({ kind: "published" });
        expect(await countCalls()).toBe(calls);
      }
      expect(await store.storeSummary({ ...fold, summary: paid(2) })).toEqual({ kind: "stale" });
      expect(await countCalls()).toBe(2);

      await store.append(batchOf([at(3)]));
      const { run: stale = [] } = (await store.readStale(conversationId)) ?? {};
      const remade = replace(textOf(1).summaryId, paid(3), stale);
      for (const calls of [3, 3]) {
        expect(await store.storeRemade(remade, clock.now())).toMatchObject({ kind: "published" });
        expect(await countCalls()).toBe(calls);
      }
      expect(await store.storeRemade(replace("sum_0000000000000000", paid(4), stale), 1)).toEqual({
        kind: "stale",
      });
      expect(await countCalls()).toBe(4);

      const sources = await store.readSources(textOf(1).summaryId);
      const better = replace(textOf(1).summaryId, paid(5), sources);
      for (const calls of [5, 5]) {
        expect(await store.replaceSummary(better, clock.now())).toMatchObject({ kind: "published" });
        expect(await countCalls()).toBe(calls);
      }
      const late = replace(textOf(1).summaryId, paid(6), sources);
      expect(await store.replaceSummary(late, clock.now())).toEqual({ kind: "stale" });
      const [sum] = await store.sumSpend({ since: 0, by: "conversation" });
      expect(sum).toEqual({ key: String(conversationId), calls: 6, inputTokens: 600, outputTokens: 60 });
    }));

  test("puts the sources of a summary back, after it was told what that would change", () =>
    withStore(async (store) => {
      const { conversationId, ids } = await tell(store, ["a", "b", "c"]);
      await fold(store, conversationId, { count: 2, text: textOf(1) });
      const request = { summaryId: textOf(1).summaryId, now: clock.now() };
      const told = await store.dissolveSummary({ ...request, dryRun: true });
      expect(told).toMatchObject({ conversationId, ordinal: 0, itemsBehind: 1 });
      expect(await readContext(store, conversationId)).toEqual([textOf(1).summaryId, ids[2]]);
      expect(await store.dissolveSummary({ ...request, dryRun: false })).toEqual(told);
      expect(await readContext(store, conversationId)).toEqual(ids);
      expect(await store.dissolveSummary({ ...request, dryRun: false })).toBeNull();
    }));

  test("drops summaries with those above them, and shows what they stood for", () =>
    withStore(async (store) => {
      const { conversationId, ids } = await tell(store, ["a", "b", "c", "d", "e"]);
      await fold(store, conversationId, { count: 2, text: textOf(1) });
      const run = await readItems(store, conversationId, 1, 3);
      await store.storeSummary({
        conversationId,
        run,
        summary: textOf(2),
        state: "cover",
        now: clock.now(),
      });
      await fold(store, conversationId, { count: 2, text: textOf(3) });
      expect(await readContext(store, conversationId)).toEqual([textOf(3).summaryId, ids[4]]);
      expect(await store.dropSummaries(conversationId, [textOf(1).summaryId])).toBe(2);
      expect(await readContext(store, conversationId)).toEqual([ids[0], ids[1], textOf(2).summaryId, ids[4]]);
      expect(await store.dropSummaries(conversationId, null)).toBe(1);
      expect(await readContext(store, conversationId)).toEqual(ids);
    }));

  test("keeps a summary hidden of which nothing is shown, when it drops another", () =>
    withStore(async (store) => {
      const { conversationId, ids } = await tell(store, ["a", "b", "c", "d"]);
      await fold(store, conversationId, { count: 2, text: textOf(1) });
      const run = await readItems(store, conversationId, 1, 3);
      const told = { conversationId, run, summary: textOf(2), now: clock.now() };
      await store.storeSummary({ ...told, state: "cover" });
      await store.setHidden(session, "branch", ["e0", "e1"], clock.now(), "exactly");
      expect(await store.dropSummaries(conversationId, [textOf(2).summaryId])).toBe(1);
      expect(await readContext(store, conversationId)).toEqual(ids.slice(2));
    }));

  test("closes what a conversation owes once it has ended", () =>
    withStore(async (store) => {
      const { conversationId } = await tell(store, ["a"]);
      expect(await store.closeDebt(conversationId)).toBe(false);
      await store.addDebt({ conversationId, budgetTokens: 1_000, now: clock.now() });
      expect(await store.listDebts()).toMatchObject([{ conversationId, budgetTokens: 1_000, attempts: 0 }]);
      expect(await store.closeDebt(conversationId)).toBe(false);
      await store.recordBoundary({
        session,
        eventId: "end",
        reason: "reset",
        position: null,
        retainDepth: 0,
        at: clock.now(),
      });
      expect(await store.closeDebt(conversationId)).toBe(true);
      expect(await store.listDebts()).toEqual([]);
    }));

  test("gives each debt to one of those who ask at once, the oldest first, and a dead one's to the next", () =>
    withStore(async (store) => {
      const owing: number[] = [];
      for (const n of [1, 2]) {
        const own = { ...session, id: `s${n}`, key: `key ${n}` };
        const { conversationId } = await store.append(batchOf([makeEvent("e", say("a"))], { session: own }));
        await store.addDebt({ conversationId, budgetTokens: 1_000, now: 10 * n });
        owing.push(conversationId);
      }
      const claim = (holder: string, now: number) =>
        store.claimDebt({ conversationId: null, holder, now, leaseMs: 100 });
      const first = await Promise.all(["a", "b", "c"].map((holder) => claim(holder, 50)));
      const claimed = first.map((debt) => debt?.conversationId ?? null);
      expect(claimed.filter((id) => id !== null).toSorted((a, b) => a - b)).toEqual(owing);
      const holder = "abc"[claimed.indexOf(owing[0] as number)] as string;
      expect(await store.renewDebt({ conversationId: owing[0] as number, holder, until: 300 })).toBe(true);
      expect((await claim("d", 200))?.conversationId).toBe(owing[1]);
      expect(await claim("d", 200)).toMatchObject({ conversationId: owing[1], attempts: 3 });
      expect((await claim("e", 400))?.conversationId).toBe(owing[0]);
    }));

  test("learns how a model counts, and adds up what its prompt cache saved, an answer once", () =>
    withStore(async (store) => {
      const answer = (eventId: string, name: string) => {
        const event = makeEvent(eventId, say(`answer ${eventId}`, "assistant"));
        const cacheUsage = { answer: name, promptTokens: 1_000, cachedTokens: 800 };
        const calibration = { model: "m", estimated: 1_000, reported: 1_200 };
        return { ...event, prepare: () => ({ ...event.prepare(), cacheUsage, calibration }) };
      };
      expect(await store.readCalibration("m")).toBeNull();
      const { conversationId } = await store.append(batchOf([answer("a", "one"), answer("b", "one")]));
      expect(await store.readCacheUsage(conversationId)).toEqual({
        requests: 1,
        promptTokens: 1_000,
        cachedTokens: 800,
      });
      await store.append(batchOf([answer("c", "two")]));
      expect(await store.readCacheUsage(conversationId)).toMatchObject({ requests: 2, cachedTokens: 1_600 });
      expect(await store.readCacheUsage(conversationId + 1)).toBeNull();
      const learned = await store.readCalibration("m");
      expect(learned?.samples).toBe(3);
      expect(learned?.factor).toBeGreaterThan(1);
      expect(await store.readCalibration("another")).toBeNull();
    }));
}

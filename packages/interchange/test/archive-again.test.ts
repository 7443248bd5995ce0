/** An archive that is imported again after its source went on: the summaries in force there are in force here, and the rest proves. */
import { deriveMessage } from "@lossless/core/formats";
import { SqliteStore } from "@lossless/sqlite";
import { makeTemporaryFolder } from "@lossless/testkit";
import { fold, readContext, replace, say, session, tell, textOf } from "@lossless/testkit/contract/parts.ts";
import { batchOf, clock, makeEvent } from "@lossless/testkit/contract/parts.ts";
import { expect, onTestFinished, test } from "vitest";
import { exportArchive } from "../src/archive/export-archive.ts";
import { importArchive } from "../src/archive/import-archive.ts";

interface Pair {
  readonly source: SqliteStore;
  readonly target: SqliteStore;
  readonly conversationId: number;
  /** Exports the source, imports that, and proves the target. */
  readonly move: () => Promise<void>;
}

async function openPair(): Promise<Pair> {
  const folder = makeTemporaryFolder();
  const open = (name: string): SqliteStore =>
    new SqliteStore({ path: folder.file(name), filesDir: folder.file("files"), create: true });
  const [source, target] = [open("source.db"), open("target.db")];
  onTestFinished(async () => {
    await source.close();
    await target.close();
    folder[Symbol.dispose]();
  });
  const { conversationId } = await tell(source, ["a", "b", "c", "d", "e", "f"]);
  const move = async (): Promise<void> => {
    const path = folder.file("moved.lcmx");
    await exportArchive(source, { out: path });
    await importArchive(target, { path, derive: deriveMessage, now: clock.now() });
    await prove(target);
  };
  return { source, target, conversationId, move };
}

async function prove(store: SqliteStore): Promise<void> {
  expect((await store.verify(deriveMessage, () => undefined)).problems).toEqual([]);
}

const hide = (store: SqliteStore, ...eventIds: string[]): Promise<number> =>
  store.setHidden(session, "branch", eventIds, clock.now(), "add");

test("a summary that was remade is replaced, and what is hidden later counts in the new one", async () => {
  const { source, target, conversationId, move } = await openPair();
  await fold(source, conversationId, { count: 3, text: textOf(1) });
  await move();
  await hide(source, "e0");
  const stale = await source.readStale(conversationId);
  await source.storeRemade(replace(textOf(1).summaryId, textOf(2), stale?.run ?? []), clock.now());
  expect(await source.swapRemade({ conversationId, now: clock.now() })).toBe(1);
  await move();
  expect((await target.readSummary(textOf(1).summaryId))?.state).toBe("retired");
  await hide(source, "e1");
  await move();
  expect(await readContext(target, 1)).toEqual(await readContext(source, conversationId));
  expect(await target.hasStale(1)).toBe(true);
});

test("a summary that was dissolved gives way to its sources, and to others over them", async () => {
  const { source, target, conversationId, move } = await openPair();
  await fold(source, conversationId, { count: 2, text: textOf(1) });
  await fold(source, conversationId, { count: 3, text: textOf(2) });
  await move();
  await source.dissolveSummary({ summaryId: textOf(2).summaryId, dryRun: false, now: clock.now() });
  await source.append(batchOf([makeEvent("more", say("more"))]));
  await move();
  expect(await readContext(target, 1)).toEqual(await readContext(source, conversationId));
  await source.dissolveSummary({ summaryId: textOf(1).summaryId, dryRun: false, now: clock.now() });
  await fold(source, conversationId, { count: 5, text: textOf(3) });
  await source.append(batchOf([makeEvent("most", say("most"))]));
  await move();
  expect(await readContext(target, 1)).toEqual(await readContext(source, conversationId));
});

test("summaries that are stored beside others do not count as in force", async () => {
  const { source, target, conversationId, move } = await openPair();
  await move();
  await fold(target, 1, { count: 3, text: textOf(9) });
  await fold(source, conversationId, { count: 4, text: textOf(1) });
  await move();
  await hide(target, "e1");
  await prove(target);
});

/** Rebuilding the search index while others use the archive. */
import { deriveMessage } from "@lossless/core/testing";
import { makeEvent, makeTemporaryFolder } from "@lossless/testkit";
import { expect, test } from "vitest";
import { SqliteStore } from "../src/sqlite-store.ts";

const session = { key: "agent:main:test", id: "session-1", owner: "main" };
/** More than two pages of a rebuild. */
const MESSAGES = 450;

/** Two programs that have the same archive open. */
async function openTwice(folder: {
  file(name: string): string;
}): Promise<[SqliteStore, SqliteStore, number[]]> {
  const open = (): SqliteStore =>
    new SqliteStore({ path: folder.file("lcm.db"), filesDir: folder.file("lcm-files"), create: true });
  const [one, other] = [open(), open()];
  const events = Array.from({ length: MESSAGES }, (_, n) =>
    makeEvent(`e${n}`, { role: "user", content: n === 7 ? "a stork" : `a heron, number ${n}` }),
  );
  const { results } = await one.append({ session, events, now: 1 });
  await one.flushIndex();
  return [one, other, results.map(({ messageId }) => messageId)];
}

const find = async (store: SqliteStore, word: string): Promise<number> => {
  const clues = [{ kind: "phrase", words: [word] } as const];
  const { listings } = await store.findClues({ kind: "message", clues, scope: {}, limit: MESSAGES });
  return listings[0]?.ids.length ?? 0;
};

test("a message that another program forgets meanwhile is not in the new index, and the rebuild ends", async () => {
  using folder = makeTemporaryFolder();
  const [one, other, ids] = await openTwice(folder);
  let forgetting: Promise<unknown> | null = null;
  const onProgress = (done: number): void => {
    if (done === 0 || forgetting !== null) return;
    const forgotten = { messageIds: [ids[7] ?? 0], alsoSummaryIds: [], replacements: [] };
    forgetting = other.forget({ ...forgotten, reason: "asked", now: 2 }).then(() => other.wipeFreed());
  };
  expect(await one.reindex(deriveMessage, onProgress)).toBe(MESSAGES - 1);
  await forgetting;
  expect([await find(one, "stork"), await find(one, "heron")]).toEqual([0, MESSAGES - 1]);
  expect((await one.verify(deriveMessage, () => undefined)).problems).toEqual([]);
  await Promise.all([one.close(), other.close()]);
});

test("of two programs that rebuild it, the one that began later does", async () => {
  using folder = makeTemporaryFolder();
  const [one, other] = await openTwice(folder);
  let second: Promise<number> | null = null;
  const first = one.reindex(deriveMessage, (done) => {
    if (done > 0) second ??= other.reindex(deriveMessage, () => undefined);
  });
  await expect(first).rejects.toMatchObject({ code: "database_busy" });
  expect(await second).toBe(MESSAGES);
  expect((await one.verify(deriveMessage, () => undefined)).problems).toEqual([]);
  await Promise.all([one.close(), other.close()]);
});

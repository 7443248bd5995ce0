/** What every store must do when a conversation moves from one archive to another: unchanged rows, all or nothing. */
import type { AppendBatch, MovedFile, MovedRow, Store, TransferIn } from "@lossless/core/ports";
import { deriveMessage } from "@lossless/core/testing";
import { expect, test } from "vitest";
import { allMessages, batchOf, clock, fold, makeEvent, readContext, say, session, textOf } from "./parts.ts";
import type { WithStore } from "./parts.ts";

const MARK: NonNullable<AppendBatch["import"]> = {
  importId: "imp_0123456789abcdef",
  source: "/archive.lcmx",
  at: 1_700_000_000_000,
};

/** Everything about a conversation that moves. */
interface Luggage {
  readonly conversation: Awaited<ReturnType<Store["listMoved"]>>[number];
  readonly sessions: Awaited<ReturnType<Store["readMovedSessions"]>>;
  readonly rows: readonly MovedRow[];
  readonly files: ReadonlyMap<string, { file: MovedFile; content: Uint8Array }>;
  readonly summaries: Awaited<ReturnType<Store["readMovedSummaries"]>>;
  readonly cover: readonly string[];
}

async function pack(store: Store, conversationId: number): Promise<Luggage> {
  const [conversation] = await store.listMoved({ conversationIds: [conversationId] });
  if (conversation === undefined) throw new Error("there is no such conversation");
  const rows = await store.readMovedRows(conversationId, 0, 100);
  const files = new Map<string, { file: MovedFile; content: Uint8Array }>();
  for (const { sha256 } of rows.flatMap((row) => (row.kind === "message" ? row.cuts : []))) {
    const found = await store.readMovedFile(conversationId, sha256);
    if (found?.content) files.set(sha256, { file: found.file, content: found.content });
  }
  return {
    conversation,
    sessions: await store.readMovedSessions([conversationId]),
    rows,
    files,
    summaries: await store.readMovedSummaries(conversationId, 0, 100),
    cover: await store.readMovedCover(conversationId),
  };
}

async function unpack(store: TransferIn, luggage: Luggage): Promise<number> {
  const { conversation, sessions, rows, files, summaries, cover } = luggage;
  const { conversationId: _id, summaries: _summaries, lastAt: _lastAt, ...moved } = conversation;
  await store.moveSessions(sessions.sessions, sessions.turns);
  const opened = await store.openMoved(moved, 0, clock.now());
  if (opened.kind !== "opened") throw new Error(opened.reason);
  const { conversationId } = opened;
  await store.moveRows(conversationId, rows, files, deriveMessage, clock.now());
  await store.noteImported(MARK, conversationId, rows.filter(({ kind }) => kind === "message").length);
  await store.moveSummaries(conversationId, summaries);
  await store.moveCover(conversationId, cover, conversation);
  return conversationId;
}

/** A conversation with a turn, a revision, a hidden message, a summary and optionally a large file. */
async function makeConversation(store: Store, hasFile: boolean): Promise<number> {
  const table = Array.from({ length: 9_000 }, (_, i) => `${i},plant-${i % 97}`).join("\n");
  const paste = say(`look: <file name="stock.csv" mime="text/csv">${hasFile ? table : ""}</file>`);
  const events = [makeEvent("a", say("one")), makeEvent("b", say("two")), makeEvent("c", paste)];
  const turn = { advancementKey: "turn-1" };
  const { conversationId } = await store.append(batchOf(events, { turn, cursor: { value: "here" } }));
  await store.append(batchOf([makeEvent("b", say("two, corrected")), makeEvent("d", say("four"))]));
  await store.setHidden(session, "branch", ["d"], clock.now(), "exactly");
  await fold(store, conversationId, { count: 2, text: textOf(1) });
  return conversationId;
}

export function testTransfer(withStore: WithStore): void {
  test("moves a conversation to another archive, row for row", () =>
    withStore(async (store, { openAnother }) => {
      const luggage = await pack(store, await makeConversation(store, true));
      expect(luggage.rows.map(({ seq }) => seq)).toEqual(luggage.rows.map((_, i) => i + 1));
      expect(luggage.files.size).toBe(1);
      const other = await openAnother();
      const conversationId = await other.bringIn(async (into) => {
        const moved = await unpack(into, luggage);
        expect(await into.proveMoved([moved], deriveMessage)).toEqual([]);
        return moved;
      });
      const arrived = await pack(other, conversationId);
      expect(arrived).toEqual({ ...luggage, conversation: { ...luggage.conversation, conversationId } });
      expect(await readContext(other, conversationId)).toEqual([textOf(1).summaryId, 3]);
      expect(await other.listImports()).toEqual([{ ...MARK, conversationId, messages: 5 }]);
      const known = await other.append(batchOf([makeEvent("a", say("one"))]));
      expect(known).toMatchObject({ conversationId, results: [{ outcome: "known" }] });
      const turn = { advancementKey: "turn-1" };
      expect((await other.append(batchOf([makeEvent("z", say("new"))], { turn }))).duplicateTurn).toBe(true);
    }));

  test("finds a conversation again that was moved before, and stores its summaries once", () =>
    withStore(async (store) => {
      const conversationId = await makeConversation(store, false);
      const { conversation, rows, summaries } = await pack(store, conversationId);
      const { opened, moved } = await store.bringIn(async (into) => ({
        opened: await into.openMoved(conversation, 0, clock.now()),
        moved: await into.moveSummaries(conversationId, summaries),
      }));
      expect(opened).toMatchObject({ kind: "opened", conversationId, rows: rows.length });
      expect(moved).toEqual({ stored: 0, known: summaries.length });
    }));

  test("stores nothing of a move that is not kept, and sees what does not prove", () =>
    withStore(async (store, { openAnother }) => {
      const luggage = await pack(store, await makeConversation(store, false));
      const summaries = luggage.summaries.map((summary) => ({ ...summary, messages: 99 }));
      const other = await openAnother();
      const bringing = other.bringIn(async (into) => {
        const conversationId = await unpack(into, { ...luggage, summaries });
        const [problem] = await into.proveMoved([conversationId], deriveMessage);
        throw new Error(`it is forged: ${problem?.code}`);
      });
      await expect(bringing).rejects.toThrow(/^it is forged: (?!undefined)/);
      expect(await other.listMoved({})).toEqual([]);
      expect(await allMessages(other, 1)).toEqual([]);
      expect(await other.listImports()).toEqual([]);
    }));
}

/** The plans on SQLite and in memory: the same stories leave the same rows, and no plan asks oftener than it may. */
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { expect, test } from "vitest";
import { makeRandom, makeTemporaryFolder } from "@lossless/testkit";
import type { Random } from "@lossless/testkit";
import { MemoryArchive } from "@lossless/testkit/memory-archive.ts";
import { someOf } from "@lossless/testkit/rounds.ts";
import { planAppend } from "../../src/archive/append.ts";
import {
  planAddDebt,
  planClaimDebt,
  planClaimUpkeep,
  planCloseDebt,
  planReleaseUpkeep,
  planRenewDebt,
  planSettleDebt,
} from "../../src/archive/debts.ts";
import { planDissolve } from "../../src/archive/dissolve.ts";
import { planDropSummaries } from "../../src/archive/drop-summaries.ts";
import { planForget } from "../../src/archive/forget.ts";
import { planFork } from "../../src/archive/fork.ts";
import {
  planMoveCover,
  planMoveSessions,
  planMoveSummaries,
  planOpenMoved,
} from "../../src/archive/move-conversation.ts";
import { planMoveRows, prepareMoved } from "../../src/archive/move-in.ts";
import type { Plan } from "../../src/archive/plan.ts";
import { planPublishStored, planStoreSummary } from "../../src/archive/publish.ts";
import { planBoundary, planRelabel, planRelabelSession, planSetHidden } from "../../src/archive/records.ts";
import { planStoreRemade, planSwapRemade } from "../../src/archive/remake.ts";
import { planReadTies, planRemoveConversations } from "../../src/archive/remove.ts";
import { planReplaceSummary } from "../../src/archive/replace.ts";
import { planTransplant } from "../../src/archive/transplant.ts";
import type { Values } from "../../src/archive/changes.ts";
import { tables } from "../../src/archive/tables.ts";
import type { TableName, Value } from "../../src/archive/tables.ts";
import { proveArchive } from "../../src/archive/verify.ts";
import { deriveMessage, prepareMessage } from "../../src/ingest/prepare.ts";
import { POSITION_STEP } from "../../src/model/message.ts";
import { nameSource } from "../../src/store/folding.ts";
import type { FoldRun, RunItem, StoreSummary } from "../../src/store/folding.ts";
import { SqliteStore } from "@lossless/sqlite";
import type { AppendBatch, AppendEvent, Problem, VerifyResult } from "../../src/store/store.ts";
import type { RemovedCounts } from "../../src/store/repair.ts";
import type { MovedFile, MovedMessage, MovedRow } from "../../src/store/transfer.ts";

const SESSIONS = [
  { owner: "main", key: "agent:main:chat", id: "first" },
  { owner: "main", key: "agent:main:chat", id: "second" },
  { owner: "main", key: "agent:main:cron:daily", id: "run 1" },
  { owner: "main", key: "agent:main:cron:daily", id: "run 2" },
];
const PLANNED: readonly TableName[] = [
  "sessions",
  "conversations",
  "placements",
  "turns",
  "messages",
  "imports",
  "compaction_debt",
  "event_ids",
  "ledger",
  "large_files",
  "message_parts",
  "context_items",
  "summaries",
  "summary_messages",
  "summary_parents",
  "cache_usage",
  "token_calibration",
  "boundaries",
  "fork_items",
  "seals",
];

/** What SQLite checks of its own form, which the memory archive does not have. */
const STORAGE = new Set(["index", "dangling_link", "database", "vector"]);
/** The proof of a memory archive, whose storage is never wrong. */
const NO_STORAGE = {
  checkDatabase: () => undefined,
  openIndex: () => ({ expect: () => undefined, finish: () => undefined }),
  checkVectors: () => undefined,
  isTransient: () => false,
};

/** Each verb on both archives, compared. */
class Both {
  readonly store: SqliteStore;
  readonly memory = new MemoryArchive();
  readonly #database: DatabaseSync;
  readonly #editor: DatabaseSync;
  readonly #texts = new WeakMap<Values, string>();
  /** How often the last plan of the store asked. */
  #asks = 0;

  constructor(folder: string) {
    const path = join(folder, "lcm.db");
    this.store = new SqliteStore({
      path,
      filesDir: join(folder, "files"),
      create: true,
      derive: deriveMessage,
      onPlan: (asks) => (this.#asks = asks),
    });
    this.#database = new DatabaseSync(path, { readOnly: true });
    this.#editor = new DatabaseSync(path, { enableForeignKeyConstraints: false });
    this.#editor.exec("PRAGMA ignore_check_constraints = ON");
    this.#editor.function("needs_newer_lossless_claw", { directOnly: false }, () => null);
  }

  async append(batch: AppendBatch, limit: number): Promise<number> {
    const events = batch.events.map((event) => ({ event, prepared: event.prepare() }));
    const { indexProblem: _, ...stored } = await this.store.append(batch);
    expect(this.memory.write(() => planAppend({ ...batch, events, derive: deriveMessage }))).toEqual(stored);
    this.#compare(limit);
    return stored.conversationId;
  }

  /** The same verb on the store and, as a plan, in memory. */
  async run<T>(stored: Promise<T>, plan: () => Plan<T>, limit: number): Promise<T> {
    const outcome = await stored;
    expect(this.memory.write(plan)).toEqual(outcome);
    this.#compare(limit);
    return outcome;
  }

  proveMemory(): VerifyResult {
    const request = { derive: deriveMessage, onProgress: () => undefined, storage: NO_STORAGE };
    return this.memory.read(() => proveArchive(request));
  }

  /** What both proofs find after the same edit by another program, which is undone afterwards. */
  async findAfter(table: TableName, row: Values, column: string, value: Value): Promise<Problem[]> {
    const { key } = tables[table];
    const where = key.map((name) => `${name} = ?`).join(" AND ");
    const names = key.map((name) => row[name] ?? null);
    const set = (to: Value): unknown =>
      this.#editor.prepare(`UPDATE ${table} SET ${column} = ? WHERE ${where}`).run(to, ...names);
    const named = Object.fromEntries(key.map((name) => [name, row[name]]));
    set(value);
    this.memory.edit(table, named as never, { [column]: value } as never);
    const { problems } = await this.store.verify(deriveMessage, () => undefined);
    const found = this.proveMemory().problems;
    expect(found, `${table}.${column}`).toEqual(problems.filter(({ code }) => !STORAGE.has(code)));
    set(row[column] ?? null);
    this.memory.edit(table, named as never, { [column]: row[column] } as never);
    return found;
  }

  async close(): Promise<void> {
    const report = await this.store.verify(deriveMessage, () => undefined);
    expect(report.problems).toEqual([]);
    expect(this.proveMemory()).toEqual(report);
    this.#editor.close();
    this.#database.close();
    await this.store.close();
  }

  #compare(limit: number): void {
    expect(this.#asks).toBe(this.memory.asks);
    expect(this.#asks).toBeLessThanOrEqual(limit);
    for (const table of PLANNED) {
      const columns = Object.keys(tables[table].columns);
      const select = this.#database.prepare(`SELECT ${columns.join(", ")} FROM ${table}`);
      select.setReturnArrays(true);
      const stored = (select.all() as unknown as Value[][]).map(toText).sort();
      const kept = this.memory.list(table).map((row) => this.#toText(row, columns));
      expect(kept.sort(), table).toEqual(stored);
    }
  }

  /** A row of the memory archive does not change: another takes its place. */
  #toText(row: Values, columns: readonly string[]): string {
    let text = this.#texts.get(row);
    if (text === undefined)
      this.#texts.set(row, (text = toText(columns.map((column) => row[column] ?? null))));
    return text;
  }
}

const toText = (row: readonly Value[]): string => row.map(quote).join(" | ");

/** Values of different types are different texts. */
function quote(value: Value): string {
  if (typeof value === "string") return `"${value}"`;
  return value instanceof Uint8Array ? `x${Buffer.from(value).toString("latin1")}` : String(value);
}

/** Events of a session: some come again, some changed, some late; what they are made of is the same however often it is asked for. */
class Teller {
  readonly #random: Random;
  readonly #name: string;
  readonly #ids: string[] = [];
  #position = 0;

  constructor(random: Random, name: string) {
    this.#random = random;
    this.#name = name;
  }

  /** An ordinary event is new and goes behind everything. */
  tell(isOrdinary: boolean): AppendEvent {
    const random = this.#random;
    const isLate = !isOrdinary && random.below(2) === 0;
    const known = !isOrdinary && random.below(3) === 0 && this.#ids.length > 0;
    const eventId = known ? random.pick(this.#ids) : `e${this.#ids.push(`e${this.#ids.length}`) - 1}`;
    if (!isLate || this.#position === 0) this.#position += POSITION_STEP;
    const placed = isLate ? this.#position - random.below(this.#position - 1) : this.#position;
    const position = isOrdinary ? null : placed;
    const text =
      random.below(9) === 0
        ? `line ${random.below(2)} of ${this.#name}\n`.repeat(400)
        : `text ${random.below(3)} of ${eventId} in ${this.#name}`;
    const arrival = Buffer.from(JSON.stringify({ role: random.pick(["user", "assistant"]), content: text }));
    const options = { hidden: random.below(6) === 0 ? 1 : 0, createdAt: 1_000 + random.below(500) };
    const salt = random.bytes(16);
    const prepared = {
      ...prepareMessage(arrival, { ...options, largeFileThresholdTokens: 200, random: () => salt }),
      calibration:
        random.below(3) === 0 ? { model: "m", estimated: 10, reported: 5 + random.below(9) } : null,
      cacheUsage:
        random.below(3) === 0
          ? { answer: `a${random.below(3)}`, promptTokens: 9, cachedTokens: random.below(9) }
          : null,
    };
    return {
      eventId,
      kind: random.pick(["entry", "provisional"]),
      arrival,
      position,
      prepare: () => prepared,
    };
  }
}

const toRun = (items: readonly RunItem[]): FoldRun =>
  items.map(({ startPosition, seq, hidden, versionId, summary }) => ({
    startPosition,
    seq,
    hidden,
    versionId,
    summaryId: summary?.summaryId ?? null,
  }));

async function tellStory(both: Both, seed: number): Promise<void> {
  const random = makeRandom(seed);
  const tellers = SESSIONS.map(({ id }) => new Teller(random, id));
  const seen = new Set<string>();
  let conversationId = 0;
  const appendSome = async (now: number): Promise<void> => {
    const at = random.below(SESSIONS.length);
    const [session, teller] = [SESSIONS[at] ?? random.pick(SESSIONS), tellers[at] ?? random.pick(tellers)];
    const isOrdinary = random.below(2) === 0;
    const events = Array.from({ length: 1 + random.below(4) }, () => teller.tell(isOrdinary));
    const turn = random.below(3) === 0 ? { advancementKey: `t${random.below(20)}` } : undefined;
    const cursor = random.below(3) === 0 ? { value: `c${now}` } : undefined;
    const mark = { importId: `imp_${random.below(2)}`, source: "/chat.jsonl", at: 7 };
    const isImport = random.below(4) === 0;
    const isKnown = seen.has(session.id);
    seen.add(session.id);
    conversationId = await both.append(
      {
        session,
        events,
        now,
        turn,
        cursor,
        baseTokens: 1_000 + random.below(2),
        import: isImport ? mark : undefined,
        origin: random.below(2) === 0 ? { agent: "a", branch: `b${random.below(3)}` } : undefined,
      },
      isOrdinary && isKnown ? 2 : 8,
    );
  };
  const makeText = (name: string, k: number) => ({
    summaryId: `sum_${name}${String(k).padStart(15, "0")}`,
    content: `${name} ${k}`,
    tokens: 4,
    model: "m",
    level: "extractive" as const,
  });
  const forgetSome = async (now: number): Promise<void> => {
    const messages = both.memory.list("messages").filter((row) => row.forgotten_at === null);
    const messageIds = [random.pick(messages).message_id, random.pick(messages).message_id];
    const { summaries } = await both.store.planForget(messageIds, []);
    const replacements = await Promise.all(
      summaries
        .filter(({ isPublished }) => isPublished)
        .map(async ({ summaryId: oldId }, k) => ({
          oldId,
          sourceKeys: (await both.store.readSources(oldId)).map(nameSource),
          summary: makeText("f", now * 100 + k),
        })),
    );
    const request = { messageIds, alsoSummaryIds: [], replacements, reason: "asked", now };
    const asked = random.below(4) === 0 ? { ...request, replacements: replacements.slice(1) } : request;
    await both.run(both.store.forget(asked), () => planForget(asked), Infinity);
  };
  const changeSome = async (now: number): Promise<void> => {
    const session = random.pick(SESSIONS);
    const pickIds = (): string[] => Array.from({ length: 6 }, () => `e${random.below(30)}`);
    const [reason, mode, eventIds] = [
      random.pick(["branch", "heartbeat"] as const),
      random.pick(["exactly", "add"] as const),
      pickIds(),
    ];
    await both.run(
      both.store.setHidden(session, reason, eventIds, now, mode),
      () => planSetHidden({ session, reason, eventIds, now, mode }),
      5,
    );
    const labels = pickIds().map((from) => ({ from, to: `${from} named ${random.below(3)}` }));
    await both.run(both.store.relabel(session, labels, now), () => planRelabel(session, labels, now), 2);
  };
  const listCover = () => both.memory.list("context_items").filter((item) => item.summary_id !== null);
  const remake = async (now: number): Promise<void> => {
    const stale = await both.store.readStale(conversationId);
    if (stale !== null) {
      const replacement = {
        oldId: stale.summary.summaryId,
        sourceKeys: stale.run.map(nameSource),
        summary: makeText("a", now),
      };
      await both.run(both.store.storeRemade(replacement, now), () => planStoreRemade(replacement, now), 2);
    }
    const request = { conversationId, now };
    if (random.below(2) === 0)
      await both.run(both.store.swapRemade(request), () => planSwapRemade(request), Infinity);
  };
  const replaceOne = async (now: number): Promise<void> => {
    const published = both.memory.list("summaries").filter((row) => row.state === "cover");
    if (published.length === 0) return;
    const oldId = random.pick(published).summary_id;
    const sourceKeys = (await both.store.readSources(oldId)).map(nameSource);
    const replacement = { oldId, sourceKeys, summary: makeText("b", now) };
    await both.run(
      both.store.replaceSummary(replacement, now),
      () => planReplaceSummary(replacement, now),
      4,
    );
  };
  const dissolveOne = async (now: number): Promise<void> => {
    const summaryId = listCover()[0]?.summary_id;
    if (!summaryId) return;
    const dry = await both.store.dissolveSummary({ summaryId, dryRun: true, now });
    const request = { summaryId, dryRun: false, now };
    const done = await both.run(both.store.dissolveSummary(request), () => planDissolve(summaryId, now), 6);
    expect(done).toEqual(dry);
  };
  const dropSome = async (): Promise<void> => {
    const { summary_id, conversation_id: id } = random.pick(both.memory.list("summaries"));
    const summaryIds = random.below(2) === 0 ? [summary_id] : null;
    const dropped = both.store.dropSummaries(id, summaryIds);
    await both.run(dropped, () => planDropSummaries(id, summaryIds), 20);
  };
  const owe = async (now: number): Promise<void> => {
    const [holder, leaseMs] = [random.pick(["p", "q"]), random.below(9)];
    const debt = { conversationId, budgetTokens: 1_000 + now, now };
    if (random.below(2) === 0)
      await both.run(
        both.store.addDebt(debt).then(() => null),
        () => planAddDebt(debt),
        2,
      );
    const upkeep = { conversationId, holder, now, leaseMs };
    const claim = { ...upkeep, conversationId: random.pick([null, conversationId]) };
    const claimed = await both.run(both.store.claimDebt(claim), () => planClaimDebt(claim), Infinity);
    await both.run(both.store.claimUpkeep(upkeep), () => planClaimUpkeep(upkeep), 2);
    const renewal = { conversationId, holder, until: now + leaseMs };
    await both.run(both.store.renewDebt(renewal), () => planRenewDebt(renewal), 2);
    const failure = random.pick([null, "no answer"]);
    const end = { conversationId: claimed?.conversationId ?? 0, holder, now, failure, retryAt: now + 3 };
    const settled = both.store.settleDebt(end).then(() => null);
    await both.run(settled, () => planSettleDebt(end), 2);
    const released = both.store.releaseUpkeep(upkeep).then(() => null);
    await both.run(released, () => planReleaseUpkeep(upkeep), 2);
    await both.run(both.store.closeDebt(conversationId), () => planCloseDebt(conversationId), 2);
  };
  const divide = async (at: number): Promise<void> => {
    const request = {
      session: random.pick(SESSIONS),
      eventId: `b${random.below(12)}`,
      reason: random.pick(["new", "reset", "idle", "deleted"] as const),
      position: random.below(2) === 0 ? null : random.below(9 * POSITION_STEP),
      retainDepth: random.below(3) - 1,
      at,
    };
    await both.run(both.store.recordBoundary(request), () => planBoundary(request), 3);
  };
  const forkOne = async (now: number): Promise<void> => {
    const [parent, at] = [random.pick(SESSIONS), random.below(4)];
    const session = { ...parent, key: random.pick([parent.key, `fork ${at}`]), id: `fork ${at}` };
    const all = both.memory.list("event_ids").filter(({ kind }) => kind === 0);
    const eventIds = [...new Set(all.map((row) => row.event_id))].slice(0, 1 + random.below(6));
    const point = await both.store.findForkPoint({
      owner: parent.owner,
      parentSessionId: parent.id,
      eventIds,
    });
    if (point === null) return;
    const item = {
      kind: "range" as const,
      messageId: null,
      summaryId: null,
      firstId: 1,
      lastId: 1,
      startPosition: 0,
      endPosition: point.position,
      tokens: 3,
      messages: 1,
      depth: -1,
      earliestAt: null,
      latestAt: now,
    };
    const copied = eventIds.slice(0, point.copied);
    const request = { session, parentSessionId: parent.id, eventIds: copied, point, items: [item], now };
    await both.run(both.store.fork(request), () => planFork(request), 2);
  };
  const transplantOne = async (now: number): Promise<void> => {
    const ids = both.memory.list("conversations").map((row) => row.conversation_id);
    const request = { from: random.pick(ids), to: random.pick(ids), dryRun: false, now };
    const stored = both.store.transplant(request, deriveMessage);
    const plan = () => planTransplant(request, deriveMessage);
    const failure = await stored.then(
      () => null,
      (error: Error) => error.message,
    );
    if (failure === null) await both.run(stored, plan, Infinity);
    else expect(() => both.memory.write(plan)).toThrow(failure);
  };
  const rename = async (now: number): Promise<void> => {
    const session = { ...random.pick(SESSIONS), id: `renamed ${random.below(3)}` };
    const request = { from: random.pick(SESSIONS).id, session, cursor: `c${now}`, now };
    await both.run(both.store.relabelSession(request), () => planRelabelSession(request), 3);
  };
  for (let i = 0; i < 45; i++) {
    if (i > 10 && random.below(8) === 0) await forgetSome(i);
    if (i > 5 && random.below(4) === 0) await changeSome(i);
    if (i > 8 && random.below(9) === 0) await divide(i);
    if (i > 8 && random.below(3) === 0) await remake(i);
    if (i > 8 && random.below(9) === 0) await replaceOne(i);
    if (i > 8 && random.below(12) === 0) await dissolveOne(i);
    if (i > 20 && random.below(15) === 0 && both.memory.list("summaries").length > 0) await dropSome();
    if (i > 5 && random.below(4) === 0) await owe(i);
    if (i > 8 && random.below(15) === 0) await rename(i);
    if (i > 8 && random.below(9) === 0) await forkOne(i);
    if (i > 20 && random.below(9) === 0) await transplantOne(i);
    if (i < 4 || random.below(3) > 0) {
      await appendSome(i);
      continue;
    }
    const { items } = await both.store.readCoverHead({ conversationId, maxMessageTokens: 1e9 });
    const start = random.below(Math.max(1, items.length - 2));
    const run = toRun(
      await both.store.readRun(conversationId, items.slice(start, start + 2 + random.below(4))),
    );
    if (run[0]?.hidden !== 0) continue;
    const summaryId = `sum_${String(i).padStart(16, "0")}`;
    const state = random.pick(["cover", "cover", "prepared", "reserve"] as const);
    const request: StoreSummary = {
      conversationId,
      run: random.below(6) === 0 ? run.map((key) => ({ ...key, hidden: 8 })) : run,
      state,
      isRoot: random.below(6) === 0,
      summary: { summaryId, content: `summary ${i}`, tokens: 3 + i, model: "m", level: "normal" },
      now: i,
    };
    await both.run(both.store.storeSummary(request), () => planStoreSummary(request), 2);
    const folds = [
      { summaryId, run },
      { summaryId, run: run.slice(0, 1) },
      { summaryId, run },
    ];
    if (state === "cover") continue;
    const stored = { conversationId, folds, now: i };
    await both.run(both.store.publishStored(stored), () => planPublishStored(stored), 2);
  }
}

/** Rows in pieces that begin with a message: one and the records of its files belong together. */
function cutRows(rows: readonly MovedRow[], length: number): MovedRow[][] {
  const pieces: MovedRow[][] = [[]];
  for (const row of rows) {
    if (row.kind === "message" && (pieces.at(-1)?.length ?? 0) >= length) pieces.push([]);
    pieces.at(-1)?.push(row);
  }
  return pieces;
}

const listContents = (row: MovedRow): string[] =>
  row.kind === "message"
    ? row.cuts.map(({ sha256 }) => sha256)
    : [(JSON.parse(row.body) as { sha256?: string }).sha256 ?? ""];

/** Brings everything over to another pair, then rows that come to what is folded there. */
async function moveAll(from: SqliteStore, to: Both): Promise<void> {
  const now = 99;
  const listed = await from.listMoved({});
  const { sessions, turns } = await from.readMovedSessions(listed.map((row) => row.conversationId));
  const done = (work: Promise<void>): Promise<null> => work.then(() => null);
  await to.run(
    done(to.store.bringIn((into) => into.moveSessions(sessions, turns))),
    () => planMoveSessions(sessions, turns),
    4,
  );
  for (const { conversationId: source, ...moved } of listed) {
    const outcome = await to.run(
      to.store.bringIn((into) => into.openMoved(moved, null, now)),
      () => planOpenMoved(moved, null, now),
      2,
    );
    if (outcome.kind === "conflict") continue;
    const { conversationId } = outcome;
    const rows = await from.readMovedRows(source, 0, 1e6);
    const files = new Map<string, { file: MovedFile; content: Uint8Array }>();
    for (const sha256 of rows.flatMap(listContents)) {
      const found = await from.readMovedFile(source, sha256);
      if (found?.content) files.set(sha256, { file: found.file, content: found.content });
    }
    const move = async (some: readonly MovedRow[], limit: number): Promise<null> => {
      const ready = some.map((row) => prepareMoved(row, files, deriveMessage));
      const stored = done(
        to.store.bringIn((into) => into.moveRows(conversationId, some, files, deriveMessage, now)),
      );
      return to.run(stored, () => planMoveRows(conversationId, ready, now), limit);
    };
    for (const some of cutRows(rows, 9)) await move(some, 3);
    const summaries = await from.readMovedSummaries(source, 0, 1e6);
    await to.run(
      to.store.bringIn((into) => into.moveSummaries(conversationId, summaries)),
      () => planMoveSummaries(conversationId, summaries),
      1,
    );
    const cover = await from.readMovedCover(source);
    const put = done(to.store.bringIn((into) => into.moveCover(conversationId, cover, moved)));
    const depth = Math.max(0, ...summaries.map((summary) => summary.depth + 1));
    await to.run(put, () => planMoveCover(conversationId, cover, moved), 6 + cover.length + depth);
    await move(makeLateRows(rows, `late ${source}`), Infinity);
  }
}

/** A message inside what is there already, another version of the first, and what hides both. */
function makeLateRows(rows: readonly MovedRow[], eventId: string): MovedRow[] {
  const messages = rows.filter(
    (row) =>
      row.kind === "message" && row.revises === null && row.forgottenAt === null && row.cuts.length === 0,
  ) as MovedMessage[];
  const [first, second] = messages;
  if (!first || !second) return [];
  const seq = rows.length;
  const late = { ...second, seq: seq + 1, eventId, position: first.position + 1 };
  const revision = { ...first, seq: seq + 2, revises: first.seq, body: second.body, hidden: [] };
  const { salt, commitment, redaction, sessionId } = second;
  const hide = { reason: "branch", seqs: [first.seq, late.seq] };
  const record = (n: number, change: string, body: object): MovedRow => ({
    kind: "ledger",
    seq: seq + n,
    change,
    body: JSON.stringify(body),
    at: 7,
  });
  return [
    late,
    { ...revision, salt, commitment, redaction, sessionId: first.sessionId },
    record(3, "hide", hide),
    record(4, "show", { ...hide, seqs: [first.seq] }),
    record(5, "relabel", { sessionId, seq: late.seq, from: eventId, to: `${eventId} named` }),
  ];
}

/** Removes a conversation with all that need it and that it needs. */
async function removeSome(both: Both, conversationId: number): Promise<void> {
  let ties = await both.store.readTies([conversationId]);
  for (let before = 0; before !== ties.length;) {
    before = ties.length;
    const ids = ties.flatMap((one) => [one.conversationId, ...one.forks, ...one.sharesSessionWith]);
    ties = await both.store.readTies([...new Set(ids)]);
  }
  expect(both.memory.read(() => planReadTies(ties.map((one) => one.conversationId)))).toEqual(ties);
  const plan = function* (): Plan<RemovedCounts | null> {
    const { changes, result } = yield* planRemoveConversations(ties);
    return changes.done(result?.counts ?? null);
  };
  const removed = await both.run(both.store.removeConversations(ties), plan, Infinity);
  expect(removed?.conversations).toBe(ties.length);
  const left = both.memory.list("messages").map((row) => row.conversation_id);
  expect(ties.filter((one) => left.includes(one.conversationId))).toEqual([]);
}

test.each(someOf([1, 2, 3, 4], 2))(
  "a story of turns and folds leaves the same rows in memory as in SQLite (seed %i)",
  async (seed) => {
    using folder = makeTemporaryFolder();
    const both = new Both(folder.path);
    await tellStory(both, seed);
    expect(
      both.memory.list("summary_parents").length + both.memory.list("summary_messages").length,
    ).toBeGreaterThan(9);
    using otherFolder = makeTemporaryFolder();
    const other = new Both(otherFolder.path);
    await moveAll(both.store, other);
    for (const { conversation_id } of other.memory.list("conversations").slice(0, 2))
      if (other.memory.list("conversations").some((row) => row.conversation_id === conversation_id))
        await removeSome(other, conversation_id);
    await other.close();
    await both.close();
  },
);

/** Not what names a row, and not what SQLite checks first. */
const EDITED: readonly (readonly [TableName, readonly string[]])[] = [
  ["conversations", ["head_seq", "archived_at"]],
  ["messages", ["position", "hidden_now", "body", "chain"]],
  ["message_parts", ["at"]],
  ["ledger", ["body"]],
  ["large_files", ["byte_size"]],
  ["context_items", ["tokens"]],
  ["summaries", ["content", "messages", "latest_at"]],
];

const edited = (value: Value): Value => {
  if (typeof value === "number") return value + 1;
  if (typeof value === "string") return `${value}x`;
  return value === null ? 1 : Uint8Array.from([...value.slice(0, -1), (value.at(-1) ?? 0) ^ 1]);
};

test("the proof finds the same in memory as in SQLite, whatever is edited", async () => {
  using folder = makeTemporaryFolder();
  const both = new Both(folder.path);
  await tellStory(both, 3);
  for (const [table, columns] of EDITED) {
    const row: Values | undefined = both.memory.list(table).at(-1);
    for (const column of row ? columns : []) {
      const found = await both.findAfter(table, row ?? {}, column, edited(row?.[column] ?? null));
      expect(found.length, `${table}.${column}`).toBeGreaterThan(0);
    }
  }
  await both.close();
});

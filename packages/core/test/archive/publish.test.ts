/** The plans of publishing on SQLite and in memory: the same stories leave the same rows, and no plan asks more than twice. */
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { expect, test } from "vitest";
import { makeEvent, makeRandom, makeTemporaryFolder } from "@lossless/testkit";
import { MemoryArchive } from "@lossless/testkit/memory-archive.ts";
import { planPublishStored, planStoreSummary } from "../../src/archive/publish.ts";
import type { Values } from "../../src/archive/changes.ts";
import type { TableName } from "../../src/archive/tables.ts";
import { deriveMessage } from "../../src/ingest/prepare.ts";
import type { FoldRun, RunItem, StoreSummary } from "../../src/store/folding.ts";
import { SqliteStore } from "../../src/store/sqlite/sqlite-store.ts";

const SESSION = { owner: "main", key: "agent:main:publish", id: "s" };
const PUBLISHED: readonly TableName[] = [
  "conversations",
  "messages",
  "context_items",
  "summaries",
  "summary_messages",
  "summary_parents",
];

interface Both {
  readonly store: SqliteStore;
  readonly memory: MemoryArchive;
  /** How often each plan of the store asked. */
  readonly asks: number[];
  readonly readRows: (table: TableName) => Values[];
}

async function withBoth(work: (both: Both) => Promise<void>): Promise<void> {
  using folder = makeTemporaryFolder();
  const path = join(folder.path, "lcm.db");
  const asks: number[] = [];
  const store = new SqliteStore({
    path,
    filesDir: join(folder.path, "files"),
    create: true,
    onPlan: (count) => asks.push(count),
  });
  const database = new DatabaseSync(path, { readOnly: true });
  try {
    const readRows = (table: TableName): Values[] =>
      database.prepare(`SELECT * FROM ${table}`).all() as unknown as Values[];
    await work({ store, memory: new MemoryArchive(), asks, readRows });
    expect((await store.verify(deriveMessage, () => undefined)).problems).toEqual([]);
  } finally {
    database.close();
    await store.close();
  }
}

const sorted = (rows: readonly unknown[]): string[] =>
  rows
    .map((row) =>
      JSON.stringify(row, (_, value: unknown) => (value instanceof Uint8Array ? [...value] : value), 0),
    )
    .map((text) => JSON.stringify(Object.entries(JSON.parse(text) as object).sort()))
    .sort();

const toRun = (items: readonly RunItem[]): FoldRun =>
  items.map(({ startPosition, seq, hidden, versionId, summary }) => ({
    startPosition,
    seq,
    hidden,
    versionId,
    summaryId: summary?.summaryId ?? null,
  }));

test.each([1, 2, 3])("a story of folds leaves the same rows in memory as in SQLite (seed %i)", (seed) =>
  withBoth(async ({ store, memory, asks, readRows }) => {
    const random = makeRandom(seed);
    const events = Array.from({ length: 40 }, (_, i) =>
      makeEvent(`e${i}`, { role: "user", content: `text ${i}` }, { hidden: random.below(6) === 0 ? 1 : 0 }),
    );
    const { conversationId } = await store.append({ session: SESSION, events, now: 1 });
    for (const table of PUBLISHED) memory.load(table, readRows(table));
    for (let i = 0; i < 25; i++) {
      const { items } = await store.readCoverHead({ conversationId, maxMessageTokens: 1e9 });
      const start = random.below(Math.max(1, items.length - 2));
      const run = toRun(await store.readRun(conversationId, items.slice(start, start + 2 + random.below(4))));
      if (run[0]?.hidden !== 0) continue;
      const summaryId = `sum_${String(i).padStart(16, "0")}`;
      const request: StoreSummary = {
        conversationId,
        run: random.below(5) === 0 ? run.map((key) => ({ ...key, hidden: 8 })) : run,
        state: random.pick(["cover", "cover", "prepared", "reserve"] as const),
        isRoot: random.below(6) === 0,
        summary: { summaryId, content: `summary ${i}`, tokens: 3 + i, model: "m", level: "normal" },
        now: 100 + i,
      };
      expect(await store.storeSummary(request)).toEqual(memory.write(() => planStoreSummary(request)));
      expect(memory.asks).toBeLessThanOrEqual(2);
      if (random.below(3) === 0 && request.state !== "cover") {
        const folds = [
          { summaryId, run },
          { summaryId, run: run.slice(0, 1) },
          { summaryId, run },
        ];
        const publish = { conversationId, folds, now: 200 + i };
        expect(await store.publishStored(publish)).toEqual(memory.write(() => planPublishStored(publish)));
        expect(memory.asks).toBeLessThanOrEqual(2);
      }
      for (const table of PUBLISHED)
        expect(sorted(memory.list(table)), table).toEqual(sorted(readRows(table)));
    }
    expect(memory.list("summaries").length).toBeGreaterThan(5);
    expect(Math.max(...asks)).toBeLessThanOrEqual(2);
  }),
);

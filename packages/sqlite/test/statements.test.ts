/**
 * How many SQL statements a call takes: the number does not grow with hits, history or messages shown. BEGIN and COMMIT are not counted.
 * A listing asks the full-text index for a clue; everything else a search needs comes in a fixed number of statements.
 */
import { DatabaseSync, StatementSync } from "node:sqlite";
import { openEngine } from "lossless-claw";
import type { Engine } from "@lossless/core";
import { makeTemporaryFolder } from "@lossless/testkit";
import { expect, onTestFinished, test, vi } from "vitest";

const session = { key: "agent:main:main", id: "s1", owner: "main" };

const TRANSACTION = /^\s*(BEGIN|COMMIT|ROLLBACK)/;
/** What a search takes besides its listings. */
const SEARCH = 12;
const LISTING = /_fts_\d+\b[^]*\bMATCH\b/;

/** The statements that `work` runs, by their text. */
async function listStatements(work: () => Promise<unknown>): Promise<string[]> {
  const seen: string[] = [];
  const spies = [
    ...(["get", "all", "run", "iterate"] as const).map((name) => {
      const original = StatementSync.prototype[name] as (...values: unknown[]) => never;
      return vi.spyOn(StatementSync.prototype, name).mockImplementation(function (
        this: StatementSync,
        ...values: unknown[]
      ): never {
        seen.push(this.sourceSQL);
        return original.apply(this, values);
      });
    }),
    vi.spyOn(DatabaseSync.prototype, "exec"),
  ];
  try {
    await work();
    const executed = vi.mocked(DatabaseSync.prototype.exec).mock.calls.map(([sql]) => sql);
    return [...seen, ...executed].filter((sql) => !TRANSACTION.test(sql));
  } finally {
    for (const spy of spies) spy.mockRestore();
  }
}

const turn = (n: number) => ({
  session,
  messages: [
    { eventId: `q${n}`, message: { role: "user", content: `Which pump of greenhouse ${n} failed?` } },
    { eventId: `a${n}`, message: { role: "assistant", content: `Pump ${n % 7} failed; the valve is open.` } },
  ],
  turn: { advancementKey: `turn-${n}` },
});

/** A conversation of so many turns, folded where it is long, with its index settled. */
async function makeArchive(turns: number): Promise<Engine> {
  const folder = makeTemporaryFolder();
  const engine = await openEngine({ database: folder.file("lcm.db"), thread: false });
  onTestFinished(async () => {
    await engine.close();
    folder[Symbol.dispose]();
  });
  for (let n = 0; n < turns; n++) await engine.ingest(turn(n));
  await engine.flushIndex();
  return engine;
}

const count = async (work: () => Promise<unknown>): Promise<number> => (await listStatements(work)).length;

test("a search takes its listings and a fixed number more, however many hits there are", async () => {
  const others: number[] = [];
  for (const turns of [4, 60]) {
    const engine = await makeArchive(turns);
    const search = () =>
      engine.grep({ pattern: "pump greenhouse failed valve", mode: "full_text", session, limit: 50 });
    await search();
    const statements = await listStatements(search);
    others.push(statements.filter((sql) => !LISTING.test(sql)).length);
  }
  expect(others[1]).toBe(others[0]);
  expect(others[0]).toBeLessThanOrEqual(SEARCH);
});

test("a context takes at most fifteen statements, with a prompt a search more", async () => {
  for (const turns of [20, 120]) {
    const engine = await makeArchive(turns);
    await engine.compact({ conversationId: 1, budgetTokens: 1_200, force: true });
    await engine.flushIndex();
    const budget = { conversationId: 1, budgetTokens: 2_000 };
    await engine.assemble(budget);
    expect(await count(() => engine.assemble(budget))).toBeLessThanOrEqual(15);
    const prompt = "Which pump of greenhouse 3 failed?";
    const prompted = await listStatements(() => engine.assemble({ ...budget, prompt }));
    expect(prompted.filter((sql) => !LISTING.test(sql)).length).toBeLessThanOrEqual(15 + SEARCH);
  }
});

test("a context takes at most fifteen statements, however many messages are shown", async () => {
  const engine = await makeArchive(200);
  const whole = { conversationId: 1, budgetTokens: 400_000 };
  expect((await engine.assemble(whole))?.messages.length).toBe(400);
  expect(await count(() => engine.assemble(whole))).toBeLessThanOrEqual(15);
});

test("storing a turn takes as many statements in a long conversation as in a short one", async () => {
  for (const turns of [5, 60]) {
    const engine = await makeArchive(turns);
    // Two sets of questions (`core/test/archive/plans.test.ts` counts them), and a statement for each table that is written.
    expect(await count(() => engine.ingest(turn(1_000)))).toBeLessThanOrEqual(17);
  }
});

test("making a leaf takes a fixed number of statements, and four for each message under it", async () => {
  const statements: number[] = [];
  const [few, many] = [60, 160];
  for (const turns of [few, many]) {
    const engine = await makeArchive(turns);
    const fold = () => engine.compact({ conversationId: 1, budgetTokens: 1_000, force: true });
    statements.push(await count(async () => expect(await fold()).toMatchObject({ passes: 1 })));
  }
  const [short = 0, long = 0] = statements;
  // A body and its parts are read, an item is deleted and a source is written, each by itself: inside one process a statement costs little.
  const added = (many - few) * 2;
  expect((long - short) / added).toBeLessThanOrEqual(4);
  expect(short).toBeLessThanOrEqual(438);
});

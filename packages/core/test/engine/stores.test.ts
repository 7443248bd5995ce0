/** An engine on the memory store and one on SQLite: the same seeded session gives the same answers, to the byte. */
import { SqliteStore } from "@lossless/sqlite";
import { makeClock, makeTemporaryFolder } from "@lossless/testkit";
import { openMemoryStore } from "@lossless/testkit/memory-store.ts";
import { expect, onTestFinished, test } from "vitest";
import { createLocalEngine } from "../../src/engine/local-engine.ts";
import { deriveMessage } from "../../src/ingest/prepare.ts";
import type { Engine } from "../../src/index.ts";
import type { Store } from "../../src/store/store.ts";
import { makeTurns, SESSION, settingsFor } from "./conversation.ts";

const CONVERSATION = 1;
const BUDGET = 8_000;
const CONFIG = { leafChunkTokens: 2_000, leafTargetTokens: 300, condensedTargetTokens: 400 };

function openBoth(): { ask: <T>(work: (engine: Engine) => Promise<T>) => Promise<T> } {
  const folder = makeTemporaryFolder();
  const database = folder.file("lcm.db");
  const open = (store: Store): Engine =>
    createLocalEngine({ store, settings: settingsFor(database, CONFIG), clock: makeClock(11) });
  const sqlite = open(
    new SqliteStore({
      path: database,
      filesDir: folder.file("files"),
      create: true,
      derive: deriveMessage,
    }),
  );
  const memory = open(openMemoryStore(deriveMessage));
  onTestFinished(async () => {
    for (const engine of [sqlite, memory]) await engine.close();
    folder[Symbol.dispose]();
  });
  return {
    ask: async (work) => {
      const answer = await work(sqlite);
      expect(await work(memory)).toEqual(answer);
      return answer;
    },
  };
}

test("storing, folding, showing, finding, opening, forgetting and proving are the same without a database", async () => {
  const { ask } = openBoth();
  const assemble = (budgetTokens: number, prompt?: string) =>
    ask((engine) => engine.assemble({ conversationId: CONVERSATION, budgetTokens, prompt }));
  const grep = (pattern: string, more: object = {}) =>
    ask((engine) => engine.grep({ conversationId: CONVERSATION, pattern, mode: "full_text", ...more }));
  for (let turn = 0; turn < 60; turn += 20) {
    await ask((engine) => engine.ingest({ session: SESSION, messages: makeTurns(turn, turn + 20) }));
    await ask((engine) => engine.compact({ conversationId: CONVERSATION, budgetTokens: BUDGET }));
    await ask((engine) => engine.maintain({ conversationId: CONVERSATION, budgetTokens: BUDGET }));
    for (const budget of [2_000, BUDGET, 100_000]) await assemble(budget);
  }
  const context = await assemble(BUDGET, "which carrier brought the parcel of Question 7?");
  expect(context?.items.some(({ kind }) => kind === "summary")).toBe(true);

  for (const pattern of ["carrier parcel", "frost delivery window", '"Question 7"', "greenhouse", "nothing"])
    for (const scope of ["messages", "summaries", "both"] as const) await grep(pattern, { scope });
  const found = await grep("supplier invoice refund", { limit: 5 });
  expect(found.hits.length).toBeGreaterThan(0);
  await grep("Question 1[0-9]:", { mode: "regex", limit: 5 });

  const { nodes } = await ask((engine) => engine.readGraph({ conversationId: CONVERSATION }));
  for (const { summaryId } of nodes.slice(0, 3)) await ask((engine) => engine.describe({ id: summaryId }));
  await ask((engine) => engine.describe({ id: "msg_3..msg_9" }));
  await ask((engine) => engine.countMessages({ conversationIds: [CONVERSATION] }));

  await ask((engine) => engine.forget({ messageIds: [5, 6], reason: "asked" }));
  await grep("carrier parcel");
  for (const budget of [2_000, BUDGET]) await assemble(budget);
  const totals = await ask(async (engine) => {
    // What only a database has.
    const {
      databasePath: _path,
      databaseBytes: _bytes,
      schemaVersion: _version,
      ...rest
    } = await engine.status({ sessionKey: SESSION.key });
    return rest;
  });
  expect(totals.messages).toBeGreaterThan(100);
  const proof = await ask((engine) => engine.verify());
  expect(proof.problems).toEqual([]);
});

/** The engine on a real server: what it stores, folds, shows and finds is what it does on SQLite. */
import { createHash } from "node:crypto";
import { POSITION_STEP } from "@lossless/core";
import type { Engine } from "@lossless/core";
import { makeOpenEngine } from "@lossless/core/ports";
import type { Clock, OpenStore, Store } from "@lossless/core/ports";
import { makeTemporaryDirectory } from "@lossless/testkit";
import { describePostgres } from "@lossless/testkit/postgres-server.ts";
import { openStore } from "lossless-claw";
import { expect, onTestFinished, test } from "vitest";
import { openPostgresStore } from "../src/postgres-store.ts";
import { divide, session, speak, START } from "./speak.ts";

/** The same time and chance for both. */
function makeClock(): Clock {
  let time = START + 100_000_000;
  let drawn = 0;
  return {
    now: () => (time += 7),
    random: (size) => createHash("shake256", { outputLength: size }).update(String(drawn++)).digest(),
  };
}

async function open(openOne: OpenStore, address: string): Promise<Engine> {
  const make = makeOpenEngine({ openStore: openOne, workerUrl: new URL("file:///none") });
  const engine = await make({ database: address, thread: false, clock: makeClock() });
  onTestFinished(() => engine.close());
  return engine;
}

describePostgres("the engine on PostgreSQL", (server) => {
  async function openBoth(partitions: number): Promise<readonly [sqlite: Engine, postgres: Engine]> {
    const database = `${makeTemporaryDirectory()}/lcm.db`;
    const address = divide(await server.createDatabase(), partitions);
    const openOnServer: OpenStore = (_path, options) =>
      openPostgresStore({ ...options, address }) as Promise<unknown> as Promise<Store>;
    return [await open(openStore, database), await open(openOnServer, database)];
  }

  test.each([0, 4])(
    "stores, folds, shows, finds, forgets and proves as on SQLite, partitions: %i",
    async (partitions) => {
      const engines = await openBoth(partitions);
      const same = async <T>(ask: (engine: Engine) => Promise<T>): Promise<T> => {
        const expected = await ask(engines[0]);
        expect(await ask(engines[1])).toEqual(expected);
        return expected;
      };
      const rows = Array.from({ length: 200 }, (_, at) => ({
        eventId: `e${at}`,
        position: (at + 1) * POSITION_STEP,
        createdAt: START + at * 60_000,
        message: speak(at),
      }));
      for (let at = 0; at < rows.length; at += 25)
        await same((engine) => engine.ingest({ session, messages: rows.slice(at, at + 25) }));
      const conversationId = 1;
      const budgets = [400, 2_000, 8_000, 200_000];
      for (const budgetTokens of budgets)
        await same((engine) => engine.assemble({ conversationId, budgetTokens }));
      await same((engine) => engine.compact({ conversationId, budgetTokens: 2_000 }));
      for (const budgetTokens of budgets) {
        await same((engine) => engine.assemble({ conversationId, budgetTokens }));
        await same((engine) =>
          engine.assemble({ conversationId, budgetTokens, prompt: "which sextants and tides?" }),
        );
      }
      for (const pattern of ["harbours", '"message 17"', "tides OR ledgers", "read_file"])
        await same((engine) => engine.grep({ pattern, allConversations: true }));
      await same((engine) =>
        engine.grep({ pattern: "message 1[0-9]+ about", mode: "regex", allConversations: true }),
      );
      const { items } = await same((engine) => engine.listSummaries({ conversationId, limit: 20 }));
      for (const { summaryId } of items) await same((engine) => engine.describe({ id: summaryId }));
      await same((engine) => engine.describe({ id: "msg_34" }));
      await same((engine) => engine.verify());
      await same((engine) => engine.forget({ messageIds: [40, 41], reason: "a test" }));
      expect((await engines[1].verify()).problems).toEqual([]);
      for (const budgetTokens of budgets)
        await same((engine) => engine.assemble({ conversationId, budgetTokens }));
    },
  );
});

/** Behind PgBouncer in transaction mode: the contract, and an engine's whole way. */
import type { Store } from "@lossless/core/ports";
import { deriveMessage } from "@lossless/core/testing";
import { testStore } from "@lossless/testkit";
import { findPgBouncer, startPgBouncer } from "@lossless/testkit/pgbouncer.ts";
import { describePostgres } from "@lossless/testkit/postgres-server.ts";
import { isSoak } from "@lossless/testkit/rounds.ts";
import { openEngine } from "lossless-claw";
import { afterAll, expect, test } from "vitest";
import { openPostgresStore } from "../src/postgres-store.ts";
import { Connection } from "../src/testing.ts";
import { session, speak } from "./speak.ts";

describePostgres("behind PgBouncer in transaction mode", async (server) => {
  const found = findPgBouncer();
  if ("why" in found) return void test.skip(`there is no PgBouncer here: ${found.why}`);
  const bouncer = await startPgBouncer(found.root, server);
  afterAll(() => bouncer.stop());
  const openAt = (address: string): Promise<Store> =>
    openPostgresStore({ address, create: true, derive: deriveMessage });

  test("a program's connection is one of the server for no longer than a transaction", async () => {
    const address = bouncer.through(await server.createDatabase());
    const connections = Array.from({ length: 8 }, () => new Connection({ address, readOnly: true }));
    const ask = (one: Connection): Promise<{ pid: number }[]> =>
      one.all<{ pid: number }>("SELECT pg_backend_pid() AS pid, pg_sleep(0.01)");
    const pids = (await Promise.all(connections.map(ask))).flat().map(({ pid }) => pid);
    await Promise.all(connections.map((one) => one.close()));
    expect(new Set(pids).size).toBeLessThan(connections.length);
  });

  test("four engines store in one conversation, fold, show, find and prove", async () => {
    const database = bouncer.through(await server.createDatabase());
    const engines = await Promise.all([1, 2, 3, 4].map(() => openEngine({ database, thread: false })));
    const [engine] = engines as [(typeof engines)[number]];
    for (let turn = 0; turn < 20; turn++)
      await Promise.all(
        engines.map((one, who) =>
          one.ingest({
            session,
            messages: [0, 1].map((n) => ({ eventId: `${who}/${turn}/${n}`, message: speak(turn * 8 + n) })),
          }),
        ),
      );
    const conversationId = (await engine.listConversations({ limit: 1 })).items[0]?.conversationId ?? 0;
    await engine.compact({ conversationId, budgetTokens: 1_000 });
    const context = await engine.assemble({ conversationId, budgetTokens: 1_000 });
    expect(context?.messages.length).toBeGreaterThan(2);
    const { hits } = await engine.grep({ pattern: "sextants OR harbours", allConversations: true });
    expect(hits.length).toBeGreaterThan(5);
    expect(await engine.verify()).toMatchObject({ problems: [], messages: 160 });
    await Promise.all(engines.map((one) => one.close()));
  });

  if (!isSoak) return;
  const empty = await server.createDatabase();
  await (await openAt(empty)).close();
  const template = /\w+(?=\?)/.exec(empty)?.[0];
  const addresses = new Map<string, Promise<string>>();
  testStore("the contract", {
    open: async (folder) => {
      const known = addresses.get(folder) ?? server.createDatabase(template);
      addresses.set(folder, known);
      return openAt(bouncer.through(await known));
    },
    verbs: [],
    without: ["copies"],
  });
});

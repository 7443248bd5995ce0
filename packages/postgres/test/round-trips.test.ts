/** How often a program waits for its server, counted on the wire. */
import { POSITION_STEP } from "@lossless/core";
import type { Arrival, Engine, GrepRequest } from "@lossless/core";
import { HANG_LIMIT_MS } from "@lossless/testkit/hang-limit.ts";
import { describePostgres } from "@lossless/testkit/postgres-server.ts";
import { openEngine } from "lossless-claw";
import { expect, onTestFinished, test } from "vitest";
import { startWire } from "./round-trips.ts";
import type { Wire } from "./round-trips.ts";
import { session, speak, START } from "./speak.ts";

const arrivals = (from: number, count: number): Arrival[] =>
  Array.from({ length: count }, (_, i) => from + i).map((at) => ({
    eventId: `e${at}`,
    position: (at + 1) * POSITION_STEP,
    createdAt: START + at * 60_000,
    message: speak(at),
  }));

describePostgres("round trips on the wire", (server) => {
  async function open(): Promise<{ readonly engine: Engine; readonly wire: Wire }> {
    const wire = await startWire(await server.createDatabase());
    onTestFinished(() => wire.close());
    const engine = await openEngine({ database: wire.address, thread: false });
    onTestFinished(() => engine.close());
    await engine.ingest({ session, messages: arrivals(0, 60) });
    return { engine, wire };
  }

  test("a turn takes at most 4, late rows and revisions at most 10, a context without a prompt at most 4", async () => {
    const { engine, wire } = await open();
    const tell = (messages: Arrival[]): Promise<unknown> => engine.ingest({ session, messages });
    const turn = await wire.count(() => tell(arrivals(60, 4)));
    expect(turn.trips).toBeLessThanOrEqual(4);
    // Each statement costs the server more than the rows it writes.
    expect(turn.statements).toBeLessThanOrEqual(11);
    // BEGIN, what it reads, what it writes with the COMMIT.
    expect(turn.answers).toBe(3);
    const late = arrivals(10, 3).map((one) => ({ ...one, eventId: `late ${one.eventId}`, position: 7 }));
    expect((await wire.count(() => tell(late))).trips).toBeLessThanOrEqual(10);
    const message = { role: "user", content: "said again" };
    const revised = arrivals(20, 3).map((one) => ({ ...one, message }));
    expect((await wire.count(() => tell(revised))).trips).toBeLessThanOrEqual(10);
    const { key: sessionKey, owner } = session;
    for (const isFolded of [false, true]) {
      if (isFolded) await engine.compact({ sessionKey, owner, budgetTokens: 2_000 });
      for (const budgetTokens of [2_000, 200_000]) {
        const assemble = (): Promise<unknown> => engine.assemble({ sessionKey, owner, budgetTokens });
        // The first one also makes connections.
        await assemble();
        expect((await wire.count(assemble)).trips).toBeLessThanOrEqual(4);
      }
    }
  });

  test("the events of a turn are looked up by their keys, however long the session is", async () => {
    const address = await server.createDatabase();
    const engine = await openEngine({ database: address, thread: false });
    for (let at = 0; at < 160; at += 4) await engine.ingest({ session, messages: arrivals(at, 4) });
    await engine.close();
    const read = (): Promise<unknown[]> =>
      server.query(
        address,
        `SELECT t.n_tup_ins::int AS added, (t.seq_tup_read + sum(i.idx_tup_read))::int AS read
         FROM pg_stat_user_tables t JOIN pg_stat_user_indexes i USING (relid) WHERE t.relname = 'event_ids' GROUP BY 1, t.seq_tup_read`,
      );
    // The server counts when a connection ends.
    await expect.poll(read, { timeout: HANG_LIMIT_MS }).toMatchObject([{ added: 160 }]);
    const [counted] = (await read()) as { readonly read: number }[];
    expect(counted?.read).toBeLessThanOrEqual(160);
  });

  test("a search takes at most 6, in the archive, in a family and in a fork, folded or pending", async () => {
    const { engine, wire } = await open();
    const fork = { key: "agent:main:fork", id: "session-2", owner: session.owner };
    await engine.fork({ session: fork, parentSessionId: session.id, eventIds: ["e56", "e57", "e58"] });
    const patterns = [
      "harbours tides",
      '"message 17"',
      "read_file",
      "line of a file",
      "what did we say about harbours and the tides?",
      "what did we say about read_file on 14 November?",
    ];
    const scopes: GrepRequest[] = [
      { pattern: "", session, allConversations: true },
      { pattern: "", session },
      { pattern: "", session: fork },
    ];
    for (const isFolded of [false, true]) {
      if (isFolded) await engine.compact({ conversationId: 1, budgetTokens: 2_000 });
      for (const pattern of patterns)
        for (const scope of scopes) {
          const search = (): Promise<unknown> => engine.grep({ ...scope, mode: "full_text", pattern });
          // The first one also makes connections.
          if (pattern === patterns[0]) await search();
          const { trips } = await wire.count(search);
          expect(trips, `${pattern} ${JSON.stringify(scope)}`).toBeLessThanOrEqual(6);
        }
    }
  });
});

/** Plans on a real server: what they store proves, in few round trips, and whatever goes wrong between them and the server. */
import { connect, createServer } from "node:net";
import { join } from "node:path";
import { POSITION_STEP } from "@lossless/core";
import { proveArchive } from "@lossless/core/adapter";
import { deriveMessage } from "@lossless/core/testing";
import type { AppendEvent } from "@lossless/core/ports";
import { batchOf, makeEvent, say, session } from "@lossless/testkit/contract/parts.ts";
import { HANG_LIMIT_MS } from "@lossless/testkit/hang-limit.ts";
import type { PostgresServer } from "@lossless/testkit/postgres-server.ts";
import { describePostgres } from "@lossless/testkit/postgres-server.ts";
import { makeTemporaryDirectory } from "@lossless/testkit/temporary.ts";
import { expect, onTestFinished, test } from "vitest";
import { append } from "../src/append.ts";
import { databaseFiles, folderFiles } from "../src/blobs.ts";
import { FullTextIndex } from "../src/full-text-index.ts";
import { answerNow } from "../src/plans.ts";
import { Connection, migrate, SCHEMA_VERSION, statement } from "../src/testing.ts";
import { openPostgresStore } from "../src/postgres-store.ts";
import { bindVerbs, INTAKE_VERBS, VERBS } from "../src/verbs.ts";
import type { StoreContext } from "../src/testing.ts";

async function open(
  address: string,
  known = SCHEMA_VERSION,
): Promise<StoreContext & { readonly sql: Connection }> {
  const sql = new Connection({ address, readOnly: false });
  onTestFinished(() => sql.close());
  await migrate(sql, { create: true, known });
  return { sql, files: databaseFiles, index: new FullTextIndex(), derive: deriveMessage };
}

const prove = async (context: StoreContext): Promise<readonly unknown[]> => {
  const storage = {
    checkDatabase: () => undefined,
    openIndex: () => ({ expect: () => undefined, finish: () => undefined }),
    checkVectors: () => undefined,
    isTransient: () => false,
  };
  const request = { derive: deriveMessage, storage, onProgress: () => undefined };
  return (await context.sql.read((sql) => answerNow(context, sql, proveArchive(request)))).problems;
};

/** A function runs before the connection ends. */
type Drop = "answered" | "lost" | "unnoticed" | "torn" | (() => Promise<void>);

interface DroppingProxy {
  /**
   * Ends the connection that sends the next COMMIT: once that has reached the server, or before; or so that only the sender hears of it, before
   * anything has reached the server or when half of it has.
   */
  dropNextCommit(how: Drop): void;
  dropped(): number;
  close(): void;
}

/** Ends one process of the server by force: the server ends the others and recovers from its log. */
async function crash(server: PostgresServer, address: string): Promise<void> {
  const find = async (): Promise<number | null> => {
    const asked = server.query(
      address,
      "SELECT pid FROM pg_stat_activity WHERE backend_type = 'checkpointer'",
    );
    const [row] = (await asked.catch(() => [])) as { pid: number }[];
    return row?.pid ?? null;
  };
  const pid = (await find()) ?? 0;
  process.kill(pid, "SIGKILL");
  const isBack = async (): Promise<boolean> => ![pid, null].includes(await find());
  await expect.poll(isBack, { timeout: HANG_LIMIT_MS }).toBe(true);
}

const SOCKET = ".s.PGSQL.5432";

/** Stands between a store and its server. */
async function startDroppingProxy(serverFolder: string, folder: string): Promise<DroppingProxy> {
  let drop: Drop | null = null;
  let dropped = 0;
  const proxy = createServer((client) => {
    const server = connect(join(serverFolder, SOCKET));
    const end = (): void => void (client.destroy(), server.destroy());
    for (const socket of [client, server]) socket.on("error", end).on("close", end);
    let [isWriting, isDropping] = [false, false];
    client.on("data", (chunk) => {
      isWriting ||= chunk.includes("READ COMMITTED");
      if (drop === null || !isWriting || !chunk.includes("COMMIT\0")) return void server.write(chunk);
      const how = drop;
      drop = null;
      dropped += 1;
      isDropping = how === "answered";
      if (how === "answered") server.write(chunk);
      else if (how === "lost") end();
      else if (how === "unnoticed" || how === "torn") {
        if (how === "torn") server.write(chunk.subarray(0, chunk.length - "COMMIT\0".length - 30));
        client.off("close", end).destroy();
      } else {
        server
          .off("close", end)
          .off("error", end)
          .on("error", () => undefined);
        void how().finally(end);
      }
    });
    server.on("data", (chunk) => (isDropping ? end() : client.write(chunk)));
  });
  await new Promise<void>((resolve) => proxy.listen(join(folder, SOCKET), resolve));
  return {
    dropNextCommit: (how) => void (drop = how),
    dropped: () => dropped,
    close: () => proxy.close(),
  };
}

describePostgres("plans on PostgreSQL", (server) => {
  test("takes no lease that has time left, whatever the clock of this machine says", async () => {
    const address = await server.createDatabase();
    const [here, ahead, behind] = await Promise.all(
      [0, 300_000, -300_000].map(async (skewMs) => {
        const leap = { ms: 0 };
        const clock = (): number => Date.now() + skewMs + leap.ms;
        const store = await openPostgresStore({ address, create: true, clock });
        onTestFinished(() => store.close());
        const claim = (holder: string, leaseMs = 120_000) =>
          store.claimDebt({ conversationId: null, holder, now: clock(), leaseMs });
        return { store, clock, claim, leap };
      }),
    );
    const { conversationId } = await ahead!.store.append(batchOf([makeEvent("e", say("a"))]));
    await ahead!.store.addDebt({ conversationId, budgetTokens: 1_000, now: ahead!.clock() });
    expect(await here!.claim("here")).toMatchObject({ conversationId });
    expect(await ahead!.claim("ahead")).toBeNull();
    // Set while the program runs, or after a suspended machine.
    for (const ms of [600_000, -900_000]) {
      ahead!.leap.ms = ms;
      expect(await ahead!.claim("ahead")).toBeNull();
    }
    const until = here!.clock() + 1;
    await here!.store.renewDebt({ conversationId, holder: "here", until });
    await expect.poll(() => behind!.claim("behind")).toMatchObject({ conversationId });
    expect(await ahead!.claim("ahead")).toBeNull();
  });

  test("looks for work past a conversation that is being written to, and does not wait for it", async () => {
    const context = await open(await server.createDatabase());
    const store = bindVerbs(VERBS, context);
    const ids: number[] = [];
    for (const n of [1, 2]) {
      const own = { ...session, id: `s${n}`, key: `key ${n}` };
      const batch = batchOf([makeEvent("e", say("a"))], { session: own });
      const { conversationId } = await append(context, batch);
      await store.addDebt({ conversationId, budgetTokens: 1_000, now: n });
      ids.push(conversationId);
    }
    const claim = { conversationId: null, holder: "a", now: 50, leaseMs: 100 };
    await context.sql.write(async (sql) => {
      await sql.all("SELECT 1 FROM conversations WHERE conversation_id = $1 FOR NO KEY UPDATE", ids[0] ?? 0);
      expect((await store.claimDebt(claim))?.conversationId).toBe(ids[1]);
    });
    expect((await store.claimDebt(claim))?.conversationId).toBe(ids[0]);
  });

  test("a turn takes at most 4 round trips, late rows and revisions at most 10", async () => {
    const context = await open(await server.createDatabase());
    const count = async (work: () => Promise<unknown>): Promise<number> => {
      const before = context.sql.trips;
      await work();
      return context.sql.trips - before;
    };
    const at = (position: number): { position: number } => ({ position: position * POSITION_STEP });
    const turnOf = (n: number) =>
      [0, 1, 2, 3].map((i) => makeEvent(`e${n}-${i}`, say(`turn ${n} message ${i}`), at(n * 10 + i)));
    await append(context, batchOf(turnOf(1)));
    const turn = { advancementKey: "turn 2" };
    expect(await count(() => append(context, batchOf(turnOf(2), { turn })))).toBeLessThanOrEqual(4);
    const late = [15, 16, 17].map((i) => makeEvent(`late-${i}`, say(`late ${i}`), at(i)));
    expect(await count(() => append(context, batchOf(late)))).toBeLessThanOrEqual(10);
    const revised = [0, 1, 2].map((i) => makeEvent(`e1-${i}`, say(`revised ${i}`), at(10 + i)));
    expect(await count(() => append(context, batchOf(revised)))).toBeLessThanOrEqual(10);
    const payload = say("x".repeat(300_000));
    expect(await count(() => append(context, batchOf([makeEvent("large", payload)])))).toBeLessThanOrEqual(4);
    expect(await context.sql.all("SELECT count(*) AS n FROM messages")).toEqual([{ n: 15 }]);
    expect(await prove(context)).toEqual([]);
  });

  test("an archive of the first version is upgraded, and the program that made it stores nothing more", async () => {
    const address = await server.createDatabase();
    const older = await open(address, 1);
    await append(older, batchOf([makeEvent("a", say("before"))]));
    const newer = await open(address);
    expect(await newer.sql.all("SELECT owner, message_id FROM index_pending")).toEqual([
      { owner: "main", message_id: 1 },
    ]);
    const refused = { code: "database_newer" };
    await expect(append(older, batchOf([makeEvent("b", say("too late"))]))).rejects.toMatchObject(refused);
    await expect(open(address, 1)).rejects.toMatchObject(refused);
    await append(newer, batchOf([makeEvent("c", say("after"))]));
    expect(await newer.sql.all("SELECT count(*) AS n FROM index_pending")).toEqual([{ n: 2 }]);
    expect(await prove(newer)).toEqual([]);
  });

  test("writers on one conversation keep one order, and a new session is made once", async () => {
    const address = await server.createDatabase();
    const contexts = await Promise.all([open(address), open(address), open(address), open(address)]);
    await Promise.all(
      contexts.map(async (context, writer) => {
        for (let turn = 0; turn < 8; turn++) {
          const shared = makeEvent(`shared-${turn}`, say(`shared ${turn}`));
          await append(context, batchOf([shared, makeEvent(`w${writer}-${turn}`, say(`own ${writer}`))]));
        }
      }),
    );
    const [first] = contexts;
    expect(await first?.sql.all("SELECT count(*) AS n FROM sessions")).toEqual([{ n: 1 }]);
    expect(await first?.sql.all("SELECT head_seq, message_count FROM conversations")).toEqual([
      { head_seq: 40, message_count: 40 },
    ]);
    expect(first && (await prove(first))).toEqual([]);
  });

  test("a large payload is in the database, or in a folder", async () => {
    const inDatabase = await open(await server.createDatabase());
    const folder = makeTemporaryDirectory();
    const inFolder = { ...(await open(await server.createDatabase())), files: folderFiles(folder) };
    const large = makeEvent("large", say("y".repeat(2_500_000)));
    for (const context of [inDatabase, inFolder]) {
      await append(context, batchOf([large]));
      const [name = ""] = await context.files.list(context.sql);
      expect((await context.files.read(context.sql, name))?.byteLength).toBeGreaterThan(2_000_000);
      expect(await prove(context)).toEqual([]);
    }
    expect(await inFolder.sql.all("SELECT count(*) AS n FROM blobs")).toEqual([{ n: 0 }]);
    expect(await inDatabase.sql.all("SELECT count(*) AS n FROM blobs")).toEqual([{ n: 3 }]);
  });

  test("plans over rows that no head guards end as if each had run alone", async () => {
    const address = await server.createDatabase();
    const contexts = await Promise.all([open(address), open(address), open(address)]);
    const stores = contexts.map((context) => bindVerbs({ ...VERBS, ...INTAKE_VERBS }, context));
    const grant = {
      owner: "main",
      issuerKey: "issuer",
      holderKey: "holder",
      conversationIds: [],
      summaryIds: [],
    };
    const limits = { maxDepth: 1, tokenCap: 100, tokensUsed: 0, expiresAt: 2_000, revokedAt: null };
    const made = await Promise.all(
      stores.map((store, i) => store.insertGrant({ ...grant, ...limits, grantId: `grant ${i}` }, 1_000)),
    );
    expect(made.filter(Boolean)).toHaveLength(1);
    const found = await stores[0]?.findGrantOf("holder", 1_000);
    await Promise.all(stores.map((store) => store.chargeGrant(found?.grantId ?? "", 10, 1_000)));
    expect(await stores[0]?.findGrantOf("holder", 1_000)).toMatchObject({ tokensUsed: 30 });
  });

  test("what a turn teaches about a model waits for no other writer", async () => {
    const address = await server.createDatabase();
    const [first, second] = await Promise.all([open(address), open(address)]);
    const usage = { input_tokens: 900, output_tokens: 2_100 };
    const teach = (id: string): AppendEvent =>
      makeEvent(id, { role: "assistant", content: "x ".repeat(2_000), provider: "p", model: "m", usage });
    await append(first, batchOf([teach("a")]));
    const read = async (): Promise<unknown> => first.sql.get("SELECT samples FROM token_calibration");
    expect(await read()).toEqual({ samples: 1 });
    await first.sql.write(async (sql) => {
      await sql.get("SELECT * FROM token_calibration FOR UPDATE");
      await append(second, batchOf([teach("b")]));
    });
    expect(await read()).toEqual({ samples: 1 });
    await append(second, batchOf([teach("c")]));
    expect(await read()).toEqual({ samples: 2 });
    expect(await prove(second)).toEqual([]);
  });

  test("ids with characters that a text cannot hold are known again", async () => {
    const context = await open(await server.createDatabase());
    const ids = ["zero\0one", "\u0001", "half \ud800", "plain"];
    const events = ids.map((id) => makeEvent(id, say(id)));
    await append(context, batchOf(events, { session: { ...session, id: "s\0" } }));
    const again = await append(context, batchOf(events, { session: { ...session, id: "s\0" } }));
    expect(again.results.map(({ outcome }) => outcome)).toEqual(ids.map(() => "known"));
    expect(await prove(context)).toEqual([]);
  });

  test("a COMMIT whose answer is lost is not done again, and its result is not lost", async () => {
    const address = await server.createDatabase();
    const folder = makeTemporaryDirectory();
    const proxy = await startDroppingProxy(/host=([^&]*)/.exec(address)?.[1] ?? "", folder);
    onTestFinished(() => proxy.close());
    const context = await open(address.replace(/host=[^&]*/, `host=${folder}`));
    await append(context, batchOf([makeEvent("a", say("before"))]));
    for (const how of ["answered", "lost", "unnoticed", "torn"] as const) {
      proxy.dropNextCommit(how);
      const { results } = await append(context, batchOf([makeEvent(how, say("in between"))]));
      expect(results.map(({ outcome }) => outcome)).toEqual(["stored"]);
      proxy.dropNextCommit(how);
      const save = statement("INSERT INTO guards VALUES ($1, 0, 0, '')", how);
      await context.sql.write(async (sql) => sql.post(save));
    }
    // The server loses what it has in memory, goes on as the same one, and gives the number of the transaction to another.
    proxy.dropNextCommit(async () => {
      await crash(server, address);
      const take = "FOR i IN 1..100 LOOP PERFORM pg_current_xact_id(); COMMIT; END LOOP";
      await server.query(address, `DO $$ BEGIN ${take}; END $$`);
    });
    // A server that takes long to recover is not waited for to the end; what counts is that nothing is taken for stored that is not.
    const last = await append(context, batchOf([makeEvent("crash", say("in between"))])).then(
      () => 1,
      (error: unknown) => (expect(error).toMatchObject({ code: "database_unreachable" }), 0),
    );
    expect(proxy.dropped()).toBe(9);
    expect(await context.sql.all("SELECT count(*) AS n FROM messages")).toEqual([{ n: 5 + last }]);
    expect(await context.sql.all("SELECT count(*) AS n FROM guards")).toEqual([{ n: 4 }]);
    expect(await prove(context)).toEqual([]);
  });

  test("a server that restarts in between is waited for", async () => {
    const context = await open(await server.createDatabase());
    await append(context, batchOf([makeEvent("a", say("before"))]));
    const restarting = server.restart("fast");
    await append(context, batchOf([makeEvent("b", say("meanwhile"))]));
    await restarting;
    expect(await context.sql.all("SELECT count(*) AS n FROM messages")).toEqual([{ n: 2 }]);
    expect(await prove(context)).toEqual([]);
  });
});

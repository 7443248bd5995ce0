/** Forgetting on a server, where several programs forget and store at once. */
import { connect, createServer } from "node:net";
import { join } from "node:path";
import { BlobFolder } from "@lossless/core/adapter";
import { deriveMessage } from "@lossless/core/testing";
import { batchOf, makeEvent, say } from "@lossless/testkit/contract/parts.ts";
import { HANG_LIMIT_MS } from "@lossless/testkit/hang-limit.ts";
import { describePostgres } from "@lossless/testkit/postgres-server.ts";
import { makeTemporaryDirectory } from "@lossless/testkit/temporary.ts";
import { expect, onTestFinished, test } from "vitest";
import { openPostgresStore } from "../src/postgres-store.ts";
import { BareClient } from "../src/testing.ts";

const SOCKET = ".s.PGSQL.5432";
const ASKED = { alsoSummaryIds: [], replacements: [], reason: "asked", now: 1_000 };
const WAITING = `
  SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND query LIKE 'VACUUM %' AND wait_event_type = 'Lock'`;
const LOCKED =
  "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";

interface HoldingProxy {
  readonly folder: string;
  /** Holds back what the server answers to the next COMMIT. Resolves when that has arrived; then calls `release` to pass it on. */
  holdNextCommit(): Promise<() => void>;
}

/** Stands between a store and its server. */
async function startHoldingProxy(serverFolder: string): Promise<HoldingProxy> {
  const folder = makeTemporaryDirectory();
  let onHeld: ((release: () => void) => void) | null = null;
  const proxy = createServer((client) => {
    const server = connect(join(serverFolder, SOCKET));
    const end = (): void => void (client.destroy(), server.destroy());
    for (const socket of [client, server]) socket.on("error", end).on("close", end);
    let isHolding = false;
    client.on("data", (chunk) => {
      isHolding ||= onHeld !== null && chunk.includes("COMMIT\0");
      server.write(chunk);
    });
    server.on("data", (chunk) => {
      if (!isHolding) return void client.write(chunk);
      isHolding = false;
      onHeld?.(() => void client.write(chunk));
      onHeld = null;
    });
  });
  await new Promise<void>((resolve) => proxy.listen(join(folder, SOCKET), resolve));
  onTestFinished(() => void proxy.close());
  return { folder, holdNextCommit: () => new Promise((resolve) => (onHeld = resolve)) };
}

describePostgres("forgetting on PostgreSQL", (server) => {
  test("stays open for what is forgotten while the pages of an earlier forgetting are cleared", async () => {
    const address = await server.createDatabase();
    const store = await openPostgresStore({ address, create: true, derive: deriveMessage });
    onTestFinished(() => store.close());
    const other = new BareClient(address);
    await other.connect();
    onTestFinished(() => other.end());
    const { results } = await store.append(
      batchOf([makeEvent("e0", say("the stork")), makeEvent("e1", say("the heron"))]),
    );
    const [first = 0, second = 0] = results.map(({ messageId }) => messageId ?? 0);

    await store.forget({ ...ASKED, messageIds: [first] });
    // Holds up the VACUUM, and nobody else.
    await other.send("BEGIN; LOCK TABLE word_blocks IN SHARE UPDATE EXCLUSIVE MODE");
    const cleared = store.wipeFreed();
    await expect.poll(() => server.query(address, WAITING), { timeout: HANG_LIMIT_MS }).toHaveLength(1);
    await store.forget({ ...ASKED, messageIds: [second] });
    await other.send("COMMIT");
    expect(await cleared).toBe(true);
    expect(await store.isForgettingOpen()).toBe(true);
    expect(await store.wipeFreed()).toBe(true);
    expect(await store.isForgettingOpen()).toBe(false);
  });

  test("keeps a file in a shared folder that another program stores again before it is removed", async () => {
    const proxy = await startHoldingProxy(server.folder);
    const folder = makeTemporaryDirectory();
    const listFiles = (): string[] => new BlobFolder(folder).list();
    const address = `${await server.createDatabase()}&files=${folder}`;
    const through = address.replace(/host=[^&]*/, `host=${proxy.folder}`);
    const [store, other] = await Promise.all(
      [through, address].map(async (one) => {
        const opened = await openPostgresStore({ address: one, create: true, derive: deriveMessage });
        onTestFinished(() => opened.close());
        return opened;
      }),
    );
    const large = say("y".repeat(500_000));
    const { results } = await store!.append(batchOf([makeEvent("e0", large)]));
    expect(listFiles()).toHaveLength(1);

    const held = proxy.holdNextCommit();
    const forgotten = store!.forget({ ...ASKED, messageIds: [results[0]?.messageId ?? 0] });
    const release = await held;
    const again = await other!.append(batchOf([makeEvent("e1", large)]));
    release();
    expect(await forgotten).toMatchObject({ kind: "forgotten" });
    expect(listFiles()).toHaveLength(1);
    await store!.forget({ ...ASKED, messageIds: [again.results[0]?.messageId ?? 0] });
    expect(listFiles()).toEqual([]);
  });

  test("removes a file from a shared folder later, if another program keeps its conversation locked", async () => {
    const folder = makeTemporaryDirectory();
    const listFiles = (): string[] => new BlobFolder(folder).list();
    const plain = await server.createDatabase();
    const address = `${plain}&files=${folder}&lock_timeout=5`;
    const store = await openPostgresStore({ address, create: true, derive: deriveMessage });
    onTestFinished(() => store.close());
    const holders = await Promise.all(
      [plain, plain].map(async (one) => {
        const holder = new BareClient(one);
        await holder.connect();
        onTestFinished(() => holder.end());
        return holder;
      }),
    );
    const { results } = await store.append(batchOf([makeEvent("e0", say("y".repeat(500_000)))]));
    // A table is locked in the order of the requests. A row that changed meanwhile is locked by the first to ask again.
    const lock = "BEGIN; LOCK TABLE conversations IN EXCLUSIVE MODE";
    await holders[0]?.send(lock);
    const forgotten = store.forget({ ...ASKED, messageIds: [results[0]?.messageId ?? 0] });
    const isBusy = expect(forgotten).rejects.toMatchObject({ code: "database_busy" });
    await expect.poll(() => server.query(plain, LOCKED), { timeout: HANG_LIMIT_MS }).toHaveLength(1);
    const second = holders[1]?.send(lock);
    await expect.poll(() => server.query(plain, LOCKED), { timeout: HANG_LIMIT_MS }).toHaveLength(2);
    await holders[0]?.send("ROLLBACK");
    await isBusy;
    await second;
    await holders[1]?.send("ROLLBACK");
    expect(listFiles()).toHaveLength(1);
    expect(await store.isForgettingOpen()).toBe(true);
    expect(await store.wipeFreed()).toBe(true);
    expect(listFiles()).toEqual([]);
  });
});

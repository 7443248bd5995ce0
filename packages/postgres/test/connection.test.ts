/** Values, transactions, retries and round trips against a real server. */
import { once } from "node:events";
import type { Duplex } from "node:stream";
import { setImmediate } from "node:timers/promises";
import { createServer } from "node:net";
import type { AddressInfo, Socket } from "node:net";
import { startCutProxy } from "@lossless/testkit/cut-proxy.ts";
import { HANG_LIMIT_MS } from "@lossless/testkit/hang-limit.ts";
import { describePostgres } from "@lossless/testkit/postgres-server.ts";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import pg from "pg";
import { parseServerAddress } from "../src/address.ts";
import { Connection, migrate, SCHEMA_VERSION, statement } from "../src/testing.ts";
import type { WriteSql } from "../src/testing.ts";

async function open(address: string): Promise<Connection> {
  const connection = new Connection({ address, readOnly: false });
  onTestFinished(() => connection.close());
  await migrate(connection, { create: true });
  return connection;
}

describe("an address", () => {
  test("says how to behave, and shows no password", () => {
    const read = parseServerAddress("postgres://a:secret@db/lcm?pool=3&lock_timeout=5&sslmode=require");
    expect(read).toMatchObject({
      maxConnections: 3,
      lockTimeoutMs: 5000,
      isNamed: false,
      name: "postgres://a@db/lcm",
    });
    expect(read.connectionString).toContain("sslmode=verify-full");
    expect(read.connectionString).not.toContain("pool");
  });

  test.each([
    ["postgres://a:secret@db/lcm?sslmod=require", /no parameter sslmod/],
    ["postgres://a:secret@db/lcm?pool=0", /pool cannot be 0/],
    ["postgres://a:secret@db/lcm?sslmode=yes", /sslmode cannot be yes/],
    ["postgres://a:secret@db/lcm?lock_timeout=soon", /lock_timeout cannot be soon/],
    ["postgres://a:secret@db:port/lcm", /not a URL/],
    ["postgres://a:12#secret@db/lcm", /not a URL/],
  ])("%s is refused", (address, why) => {
    expect(() => parseServerAddress(address)).toThrow(why);
    expect(() => parseServerAddress(address)).not.toThrow(/secret/);
  });
});

test("a login without a password says so and leaves no connection open", async () => {
  const message = (kind: number, text: string): Buffer => {
    const bytes = Buffer.from(`R0000    ${text}`);
    bytes.writeInt32BE(bytes.length - 1, 1);
    bytes.writeInt32BE(kind, 5);
    return bytes;
  };
  const answers = [message(10, "SCRAM-SHA-256\0\0"), message(11, "r=x,s=eA==,i=1")];
  const server = createServer((socket) => socket.on("data", () => socket.write(answers.shift() ?? "")));
  onTestFinished(() => void server.close());
  await once(server.listen(0, "127.0.0.1"), "listening");
  const { port } = server.address() as AddressInfo;
  const connection = new Connection({ address: `postgres://a@127.0.0.1:${port}/x`, readOnly: true });
  const asked = expect(connection.all("SELECT 1")).rejects.toMatchObject({
    code: "database_unreadable",
    message: expect.stringContaining("cannot log in"),
  });
  const [socket] = (await once(server, "connection")) as [Socket];
  await Promise.all([asked, once(socket, "close")]);
  await connection.close();
});

describePostgres("a connection", (server) => {
  test("is kept while nobody uses it, so that the next turn need not log in", async () => {
    const address = await server.createDatabase();
    const watcher = await open(address);
    const connection = new Connection({ address, readOnly: false, idleLimitMs: 1 });
    onTestFinished(() => connection.close());
    const readPid = async (): Promise<number> =>
      (await connection.get<{ pid: number }>("SELECT pg_backend_pid() AS pid, pg_sleep($1)", 0.05))?.pid ?? 0;
    const used = await Promise.all([readPid(), readPid(), readPid()]);
    expect(new Set(used).size).toBe(3);
    const listLeft = async (): Promise<number[]> => {
      const rows = await watcher.all<{ pid: number }>(
        "SELECT pid FROM pg_stat_activity WHERE pid = ANY($1)",
        used,
      );
      return rows.map(({ pid }) => pid);
    };
    await expect.poll(listLeft).toHaveLength(1);
    expect([await readPid()]).toEqual(await listLeft());
  });

  test("is replaced when it dies while it is handed out", async () => {
    const connection = await open(await server.createDatabase());
    const connect = pg.Pool.prototype.connect as (this: pg.Pool) => Promise<pg.PoolClient>;
    let handedOut = 0;
    const spy = vi.spyOn(pg.Pool.prototype, "connect").mockImplementation(async function (this: pg.Pool) {
      const client = await connect.call(this);
      handedOut += 1;
      if (handedOut > 1) return client;
      // The pool does not listen any more, and its user does not yet.
      const { stream } = (client as unknown as { readonly connection: { readonly stream: Duplex } })
        .connection;
      stream.destroy(new Error("read ECONNRESET"));
      await setImmediate();
      return client;
    });
    onTestFinished(() => spy.mockRestore());
    expect(await connection.get("SELECT $1::bigint AS n", 7)).toEqual({ n: 7 });
    expect(handedOut).toBe(2);
  });

  test("brings values back as they were written", async () => {
    const connection = await open(await server.createDatabase());
    const texts = [
      "",
      "plain",
      "zero \0 inside",
      "\u0001",
      "\u00010",
      "\u00010001\0",
      "\ud800 half",
      "🦀 \\ ' \" {}",
    ];
    const bytes = Uint8Array.from({ length: 300 }, (_, i) => i);
    const row = await connection.get<Record<string, unknown>>(
      "SELECT $1::bigint AS n, $2::bytea AS b, $3::text AS t, $4::text AS nothing, $5::float8 AS f, $6::bool AS yes, sum(x) AS s FROM unnest($7::bigint[]) x",
      2 ** 53 - 1,
      bytes,
      texts[2] ?? "",
      null,
      0.1,
      true,
      [1, 2, 3],
    );
    expect(row).toEqual({ n: 2 ** 53 - 1, b: bytes, t: texts[2], nothing: null, f: 0.1, yes: true, s: 6 });
    const back = await connection.all<{ t: string }>("SELECT t FROM unnest($1::text[]) t", texts);
    expect(back.map(({ t }) => t)).toEqual(texts);
  });

  test("opens twice at once, and is refused by an older program and by another's tables", async () => {
    const address = await server.createDatabase();
    const [one, two] = await Promise.all([open(address), open(address)]);
    expect(await two.get("SELECT version FROM archive_schema")).toEqual({ version: SCHEMA_VERSION });
    await one.write(
      async (sql) => void (await sql.change("UPDATE archive_schema SET version = version + 1")),
    );
    await expect(two.write((sql) => sql.change("DELETE FROM guards"))).rejects.toMatchObject({
      code: "database_newer",
    });
    await expect(open(address)).rejects.toMatchObject({ code: "database_newer" });

    const foreign = new Connection({ address: await server.createDatabase(), readOnly: false });
    onTestFinished(() => foreign.close());
    await foreign.write(async (sql) => sql.post(statement("CREATE TABLE messages (id int)")));
    await expect(migrate(foreign, { create: true })).rejects.toMatchObject({ code: "database_foreign" });
  });

  test("sends a transaction in two trips, and keeps all of it or nothing", async () => {
    const connection = await open(await server.createDatabase());
    const save = statement("INSERT INTO guards VALUES ($1, 1, 2, 'why')", "a");
    const before = connection.trips;
    await connection.write(async (sql) => {
      expect(await sql.all("SELECT * FROM guards")).toEqual([]);
      sql.post(save);
    });
    expect(connection.trips - before).toBe(2);
    const failed = connection.write(async (sql) => {
      sql.post(statement("DELETE FROM guards"), save, save);
    });
    await expect(failed).rejects.toThrow(/duplicate key/);
    expect(await connection.all("SELECT name FROM guards")).toEqual([{ name: "a" }]);
  });

  test("statements that are sent together fail together, with the cause", async () => {
    const connection = await open(await server.createDatabase());
    const divide = (by: number): ReturnType<typeof statement> => statement("SELECT 6 / $1::int AS n", by);
    const failed = connection.write(async (sql) => {
      const sent = await Promise.allSettled([divide(1), divide(0), divide(2)].map((one) => sql.ask([one])));
      expect(sent.map((one) => String(one.status === "rejected" && one.reason))).toEqual(
        Array.from({ length: 3 }, () => expect.stringContaining("division by zero")),
      );
      sql.post(divide(3));
    });
    await expect(failed).rejects.toThrow(/division by zero/);
    const ask = connection.read((sql) => sql.ask([divide(1), statement("SELECT 5 AS n"), divide(2)]));
    expect(await ask).toEqual([[{ n: 6 }], [{ n: 5 }], [{ n: 3 }]]);
  });

  test("lists keep every text as it is", async () => {
    const connection = await open(await server.createDatabase());
    const texts = [
      "",
      "NULL",
      'a "quote"',
      "back\\slash\\",
      "{a,b}",
      " spaces ",
      "'",
      "zero \0",
      "half \ud800",
      "é🙂",
      null,
    ];
    expect(await connection.all("SELECT v FROM unnest($1::text[]) v", texts)).toEqual(
      texts.map((v) => ({ v })),
    );
  });

  test("refuses a statement that comes after the end of its transaction", async () => {
    const connection = await open(`${await server.createDatabase()}&pool=1`);
    const save = (sql: WriteSql): Promise<number> =>
      sql.change("INSERT INTO guards VALUES ($1, 0, 0, '')", "late");
    const used: WriteSql[] = [];
    const failed = connection.write(async (sql) => {
      used.push(sql);
      await sql.get("SELECT 1 AS one");
      throw new Error("on purpose");
    });
    await expect(failed).rejects.toThrow("on purpose");
    await connection.write(async (sql) => {
      used.push(sql);
      await sql.get("SELECT 1 AS one");
    });
    await connection.write(async (sql) => void used.push(sql));
    expect(used).toHaveLength(3);
    for (const sql of used) await expect(save(sql)).rejects.toThrow(/after the end of its transaction/);
    expect(await connection.all("SELECT name FROM guards")).toEqual([]);
  });

  test("does not wait for the locks of its own transaction whose connection was lost", async () => {
    const proxy = await startCutProxy(server);
    onTestFinished(() => proxy.close());
    const address = await server.createDatabase();
    const connection = await open(proxy.through(`${address}&lock_timeout=20`));
    const other = await open(address);
    connection.refuseNewerThan(SCHEMA_VERSION);
    await other.write(async (sql) => sql.post(statement("INSERT INTO guards VALUES ('a', 0, 0, '')")));
    let runs = 0;
    await connection.write(async (sql) => {
      runs += 1;
      await sql.get("SELECT 1 FROM guards WHERE name = $1 FOR UPDATE", "a");
      if (runs === 1) proxy.abandon();
      await sql.change("UPDATE guards SET failures = failures + 1 WHERE name = $1", "a");
    });
    expect(runs).toBe(2);
    expect(await other.all("SELECT failures FROM guards")).toEqual([{ failures: 1 }]);
  });

  test("runs again what lost a deadlock", async () => {
    const connection = await open(await server.createDatabase());
    await connection.write(async (sql) =>
      sql.post(statement("INSERT INTO guards VALUES ('a', 0, 0, ''), ('b', 0, 0, '')")),
    );
    const raise = (first: string, second: string): Promise<void> =>
      connection.write(async (sql) => {
        for (const name of [first, second])
          await sql.change("UPDATE guards SET failures = failures + 1 WHERE name = $1", name).catch(() => {
            // As imports do, which say in which file something failed.
            throw new Error(`cannot raise ${name}`);
          });
      });
    await Promise.all(Array.from({ length: 4 }, (_, i) => (i % 2 === 0 ? raise("a", "b") : raise("b", "a"))));
    expect(await connection.all("SELECT failures FROM guards")).toEqual([{ failures: 4 }, { failures: 4 }]);
  });

  test("runs again what could not have happened one after the other", async () => {
    const connection = await open(await server.createDatabase());
    const other = await open(connection.name);
    let runs = 0;
    /** Each adds a row only where there is none. */
    const addFirst = async (own: Connection, name: string, meanwhile?: () => Promise<void>): Promise<void> =>
      own.write(
        async (sql) => {
          runs += 1;
          const known = await sql.all("SELECT name FROM guards");
          if (runs === 1) await meanwhile?.();
          if (known.length === 0) sql.post(statement("INSERT INTO guards VALUES ($1, 0, 0, '')", name));
        },
        { isSerializable: true },
      );
    await addFirst(connection, "a", () => addFirst(other, "b"));
    expect(runs).toBe(3);
    expect(connection.retries).toBe(1);
    expect(await connection.all("SELECT name FROM guards")).toEqual([{ name: "b" }]);
  });

  test("waits for no lock, and for no login, longer than the address says", async () => {
    const address = await server.createDatabase();
    const holder = await open(address);
    const limited = await open(`${address}&lock_timeout=1`);
    await holder.write(async (sql) => sql.post(statement("INSERT INTO guards VALUES ('a', 0, 0, '')")));
    await holder.write(async (sql) => {
      await sql.get("SELECT 1 FROM guards FOR UPDATE");
      const waiting = limited.write((own) => own.change("UPDATE guards SET failures = 1"));
      await expect(waiting).rejects.toMatchObject({ code: "database_busy" });
    });
    const silent = createServer().listen(0, "127.0.0.1");
    await once(silent, "listening");
    onTestFinished(() => void silent.close());
    const { port } = silent.address() as AddressInfo;
    const alone = new Connection({
      address: `postgres://a@127.0.0.1:${port}/x?connect_timeout=1`,
      readOnly: true,
    });
    onTestFinished(() => alone.close());
    await expect(alone.all("SELECT 1")).rejects.toMatchObject({ code: "database_unreachable" });
  });

  test("uses no more connections than the address allows, and names statements only if asked to", async () => {
    const address = await server.createDatabase();
    const few = await open(`${address}&pool=2`);
    const readPid = async (): Promise<number> =>
      (await few.get<{ pid: number }>("SELECT pg_backend_pid() AS pid, pg_sleep($1)", 0.02))?.pid ?? 0;
    const pids = await Promise.all(Array.from({ length: 8 }, readPid));
    expect(new Set(pids).size).toBe(2);
    const countNamed = async (parameters: string): Promise<unknown> => {
      const connection = await open(`${address}&pool=1${parameters}`);
      for (const n of [1, 2]) await connection.get("SELECT $1::int AS n", n);
      return connection.get("SELECT count(*) AS n FROM pg_prepared_statements WHERE statement ~ $1", "AS n$");
    };
    expect(await countNamed("")).toEqual({ n: 0 });
    expect(await countNamed("&statements=named")).toEqual({ n: 1 });
  });

  test("runs again what the server has ended because it held its locks in silence", async () => {
    const connection = await open(await server.createDatabase());
    const other = await open(connection.name);
    const limit = "SHOW idle_in_transaction_session_timeout";
    const pids: number[] = [];
    await connection.write(async (sql) => {
      expect(await sql.all(limit)).toEqual([{ idle_in_transaction_session_timeout: "30s" }]);
      const row = await sql.get<{ pid: number }>("SELECT pg_backend_pid() AS pid");
      pids.push(row?.pid ?? 0);
      sql.post(statement("INSERT INTO guards VALUES ('a', 0, 0, '')"));
      if (pids.length > 1) return;
      await sql.all("SET LOCAL idle_in_transaction_session_timeout = 1");
      const find = (): Promise<unknown[]> =>
        other.all("SELECT pid FROM pg_stat_activity WHERE pid = $1", pids[0] ?? 0);
      await expect.poll(find, { timeout: HANG_LIMIT_MS }).toEqual([]);
    });
    expect(pids).toHaveLength(2);
    expect(await other.all("SELECT name FROM guards")).toEqual([{ name: "a" }]);
  });

  test("waits longer for a server that is starting than for one that is gone", async () => {
    const sql = new Connection({ address: await server.createDatabase(), readOnly: false });
    onTestFinished(() => sql.close());
    await sql.get("SELECT 1");
    const clock = Date.now;
    let passedMs = 0;
    const spy = vi.spyOn(Date, "now").mockImplementation(() => clock() + passedMs);
    onTestFinished(() => spy.mockRestore());
    const failOnce = (code: string): Promise<string> => {
      let tries = 0;
      return sql.read(async () => {
        tries += 1;
        if (tries > 1) return "there";
        passedMs += 11_000;
        throw Object.assign(new pg.DatabaseError("not now", 0, "error"), { code });
      });
    };
    expect(await failOnce("57P03")).toBe("there");
    await expect(failOnce("57P01")).rejects.toMatchObject({ code: "database_unreachable" });
  });

  test("ends a read that takes longer than the limit", async () => {
    const limited = await open(`${await server.createDatabase()}&statement_timeout=1`);
    await expect(limited.all("SELECT pg_sleep($1)", 60)).rejects.toMatchObject({ code: "database_busy" });
    const asked = limited.read((sql) => sql.all("SELECT pg_sleep(60)"));
    await expect(asked).rejects.toMatchObject({ code: "database_busy" });
  });

  test("reads one state while others write, and says what is wrong with an address", async () => {
    const connection = await open(await server.createDatabase());
    await connection.read(async (sql) => {
      expect(await sql.all("SELECT * FROM guards")).toEqual([]);
      await connection.write(async (other) =>
        other.post(statement("INSERT INTO guards VALUES ('a', 0, 0, '')")),
      );
      expect(await sql.all("SELECT * FROM guards")).toEqual([]);
    });
    const lost = new Connection({ address: server.addressOf("nowhere"), readOnly: false });
    onTestFinished(() => lost.close());
    await expect(lost.all("SELECT 1")).rejects.toMatchObject({ code: "database_missing" });
    const gone = new Connection({ address: "postgres://a:secret@127.0.0.1:1/x", readOnly: false });
    onTestFinished(() => gone.close());
    await expect(gone.all("SELECT 1")).rejects.toMatchObject({ code: "database_unreachable" });
  });
});

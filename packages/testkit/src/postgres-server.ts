/**
 * A real PostgreSQL for tests: a server of its own in a private folder, on a Unix socket there, as a user without privileges. It runs without
 * fsync: tests prove crashes of processes, not power loss. It stops when the process that started it ends, for whatever reason.
 */
import { execFileSync, spawn } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import { chownSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import { describe, test } from "vitest";
import { findFreePort } from "./loopback.ts";
import { findPostgres, findServerUser, OLDEST_POSTGRES, unfoldPrograms } from "./postgres-programs.ts";

export { findPostgres };

const USER = "lcm";
/** Signals a program when this process is gone, which closes its end of the pipe. */
export const watched = (signal: "QUIT" | "TERM"): string =>
  `exec 3<&0; "$@" & server=$!; (cat <&3 >/dev/null; kill -${signal} $server 2>/dev/null) & wait $server`;

export interface PostgresServer {
  /** Where its socket is. */
  readonly folder: string;
  /** Of the server itself, such as "15.18". */
  readonly version: string;
  /** Creates a database, empty or as a copy of another one that nobody has open, and returns its address. */
  createDatabase(template?: string): Promise<string>;
  addressOf(database: string): string;
  /** By TCP on loopback, for a server with a certificate. */
  tcpAddressOf(database: string): string;
  /** Runs SQL and returns the rows of the last statement. */
  query(address: string, sql: string): Promise<unknown[]>;
  /** Stops it as in a crash, or in order, and starts it again after a while. */
  restart(how?: "immediate" | "fast", downMs?: number): Promise<void>;
  stop(): Promise<void>;
}

/** What makes a server listen with TLS. */
export interface Certificate {
  readonly certificate: string;
  readonly key: string;
}

let shared: Promise<PostgresServer> | null = null;

/** One server for all tests of this process; each creates its own databases. */
export const sharePostgres = (): Promise<PostgresServer> =>
  (shared ??= findPostgres().then((programs) => startPostgres(programs ?? "")));

export async function startPostgres(installed: string, tls?: Certificate): Promise<PostgresServer> {
  const user = findServerUser();
  const folder = mkdtempSync(join(tmpdir(), "lcm-pg-"));
  const programs = unfoldPrograms(installed, folder);
  const data = join(folder, "data");
  mkdirSync(data, { mode: 0o700 });
  const own = (path: string): void => (user ? chownSync(path, user.uid, user.gid) : undefined);
  for (const path of [folder, data]) own(path);
  const options = { ...user, cwd: folder } as const;
  execFileSync(
    join(programs, "initdb"),
    ["-D", data, "-U", USER, "-A", "trust", "-E", "UTF8", "--no-locale", "--no-sync"],
    { ...options, stdio: "ignore" },
  );
  const port = tls ? await findFreePort() : 5432;
  const flags = [
    `listen_addresses=${tls ? "127.0.0.1" : ""}`,
    `port=${port}`,
    "fsync=off",
    "full_page_writes=off",
    "max_connections=200",
    "deadlock_timeout=100ms",
    ...(tls ? ["ssl=on", ...writeCertificate(folder, tls, own)] : []),
  ];
  const program = join(programs, "postgres");
  const command = [program, "-D", data, "-k", folder, ...flags.flatMap((flag) => ["-c", flag])];
  const launch = (): ChildProcess =>
    spawn("sh", ["-c", watched("QUIT"), "sh", ...command], {
      ...options,
      stdio: ["pipe", "ignore", "ignore"],
    });
  const addressOf = (database: string): string =>
    `postgres://${USER}@/${database}?host=${folder}${tls ? `&port=${port}` : ""}`;
  let server = launch();
  const removeAtExit = (): void => rmSync(folder, { recursive: true, force: true });
  process.on("exit", removeAtExit);
  const version = await waitUntilReady(addressOf("postgres"), server);
  let databases = 0;
  const end = async (signal: "SIGQUIT" | "SIGINT"): Promise<void> => {
    const ended = new Promise((resolve) => server.once("exit", resolve));
    const [pid = ""] = readFileSync(join(data, "postmaster.pid"), "utf8").split("\n");
    process.kill(Number(pid), signal);
    await ended;
    server.stdin?.end();
  };
  return {
    folder,
    version,
    addressOf,
    tcpAddressOf: (database) => `postgres://${USER}@127.0.0.1:${port}/${database}`,
    query,
    createDatabase: async (template) => {
      databases += 1;
      const name = `test_${process.pid}_${databases}`;
      const from = template === undefined ? "" : ` TEMPLATE ${template}`;
      await query(addressOf("postgres"), `CREATE DATABASE ${name}${from}`);
      return addressOf(name);
    },
    restart: async (how = "fast", downMs = 0) => {
      await end(how === "immediate" ? "SIGQUIT" : "SIGINT");
      await sleep(downMs);
      server = launch();
      await waitUntilReady(addressOf("postgres"), server);
    },
    stop: async () => {
      process.off("exit", removeAtExit);
      await end("SIGQUIT");
      removeAtExit();
    },
  };
}

function writeCertificate(
  folder: string,
  { certificate, key }: Certificate,
  own: (path: string) => void,
): string[] {
  const write = (name: string, text: string): string => {
    const path = join(folder, name);
    writeFileSync(path, text, { mode: 0o600 });
    own(path);
    return path;
  };
  return [`ssl_cert_file=${write("server.crt", certificate)}`, `ssl_key_file=${write("server.key", key)}`];
}

async function query(address: string, text: string): Promise<unknown[]> {
  const client = new pg.Client(address);
  // A query reports a lost connection to its caller; between queries it can be ignored.
  client.on("error", () => undefined);
  await client.connect();
  try {
    const answer = await client.query<Record<string, unknown>>(text);
    return (Array.isArray(answer) ? answer.at(-1) : answer).rows;
  } finally {
    await client.end();
  }
}

/** Retries for as long as the process lives: the start time depends on the machine. */
async function waitUntilReady(address: string, server: ChildProcess): Promise<string> {
  for (;;) {
    try {
      const [row] = await query(address, "SHOW server_version");
      return (row as { server_version: string }).server_version;
    } catch (error) {
      if (server.exitCode !== null)
        throw new Error("the PostgreSQL server ended at its start", { cause: error });
      await sleep(20);
    }
  }
}

/** Tests on a server of this process; skipped with a reason if there is none. */
export function describePostgres(name: string, work: (server: PostgresServer) => void | Promise<void>): void {
  describe(name, async () => {
    const programs = await findPostgres();
    if (programs === null)
      test.skip(`PostgreSQL ${OLDEST_POSTGRES} or newer is not installed and could not be fetched`);
    else await work(await sharePostgres());
  });
}

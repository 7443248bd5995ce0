/**
 * A real PostgreSQL for tests: an installed server (15 or newer) in a private folder, on a Unix socket there, as a user without privileges.
 * It does not wait for the disk: what a test proves about crashes, it proves about processes, not about power. It stops when the process that
 * started it ends, however that ends.
 */
import { execFileSync, spawn } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import { chownSync, existsSync, globSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pg from "pg";
import { describe, test } from "vitest";

const OLDEST = 15;
const USER = "lcm";
/** Ends the server when this process is gone: its end of the pipe closes with it. */
const WATCHED =
  'exec 3<&0; "$@" & server=$!; (cat <&3 >/dev/null; kill -QUIT $server 2>/dev/null) & wait $server';

export interface PostgresServer {
  /** Makes a database, empty or as another one is that nobody has open, and gives its address. */
  createDatabase(template?: string): Promise<string>;
  addressOf(database: string): string;
  /** Stops it as a crash does, or in order, and starts it again. */
  restart(how?: "immediate" | "fast"): Promise<void>;
  stop(): Promise<void>;
}

/** The folder with the newest server's programs; null where there is none. `LCM_POSTGRES` names another one. */
export function findPostgres(): string | null {
  const named = process.env["LCM_POSTGRES"];
  if (named !== undefined && named !== "") return existsSync(join(named, "initdb")) ? named : null;
  const found = globSync("/usr/lib/postgresql/*/bin/initdb")
    .map((path) => ({ path, version: Number(/postgresql\/(\d+)\//.exec(path)?.[1]) }))
    .filter(({ version }) => version >= OLDEST)
    .sort((a, b) => b.version - a.version);
  return found[0] === undefined ? null : join(found[0].path, "..");
}

let shared: Promise<PostgresServer> | null = null;

/** One server for all tests of this process; each makes databases of its own. */
export const sharePostgres = (programs: string): Promise<PostgresServer> =>
  (shared ??= startPostgres(programs));

/** PostgreSQL refuses to run as root. */
function findUser(): { uid: number; gid: number } | null {
  if (process.getuid?.() !== 0) return null;
  const id = (flag: string): number => Number(execFileSync("id", [flag, "postgres"], { encoding: "utf8" }));
  return { uid: id("-u"), gid: id("-g") };
}

export async function startPostgres(programs: string): Promise<PostgresServer> {
  const user = findUser();
  const folder = mkdtempSync(join(tmpdir(), "lcm-pg-"));
  const data = join(folder, "data");
  mkdirSync(data, { mode: 0o700 });
  if (user) for (const path of [folder, data]) chownSync(path, user.uid, user.gid);
  const options = { ...user, cwd: folder } as const;
  execFileSync(
    join(programs, "initdb"),
    ["-D", data, "-U", USER, "-A", "trust", "-E", "UTF8", "--no-locale", "--no-sync"],
    { ...options, stdio: "ignore" },
  );
  const flags = [
    "listen_addresses=",
    "fsync=off",

    "full_page_writes=off",
    "max_connections=200",
    "deadlock_timeout=100ms",
  ];
  const program = join(programs, "postgres");
  const command = [program, "-D", data, "-k", folder, ...flags.flatMap((flag) => ["-c", flag])];
  const launch = (): ChildProcess =>
    spawn("sh", ["-c", WATCHED, "sh", ...command], { ...options, stdio: ["pipe", "ignore", "ignore"] });
  const addressOf = (database: string): string => `postgres://${USER}@/${database}?host=${folder}`;
  let server = launch();
  const removeAtExit = (): void => rmSync(folder, { recursive: true, force: true });
  process.on("exit", removeAtExit);
  await waitUntilReady(addressOf("postgres"), server);
  let databases = 0;
  const end = async (signal: "SIGQUIT" | "SIGINT"): Promise<void> => {
    const ended = new Promise((resolve) => server.once("exit", resolve));
    const [pid = ""] = readFileSync(join(data, "postmaster.pid"), "utf8").split("\n");
    process.kill(Number(pid), signal);
    await ended;
    server.stdin?.end();
  };
  return {
    addressOf,
    createDatabase: async (template) => {
      databases += 1;
      const name = `test_${process.pid}_${databases}`;
      const from = template === undefined ? "" : ` TEMPLATE ${template}`;
      await query(addressOf("postgres"), `CREATE DATABASE ${name}${from}`);
      return addressOf(name);
    },
    restart: async (how = "fast") => {
      await end(how === "immediate" ? "SIGQUIT" : "SIGINT");
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

async function query(address: string, text: string): Promise<void> {
  const client = new pg.Client(address);
  await client.connect();
  try {
    await client.query(text);
  } finally {
    await client.end();
  }
}

/** Asked again and again for as long as the process lives: how long a start takes depends on the machine. */
async function waitUntilReady(address: string, server: ChildProcess): Promise<void> {
  for (;;) {
    try {
      return await query(address, "SELECT 1");
    } catch (error) {
      if (server.exitCode !== null)
        throw new Error("the PostgreSQL server ended at its start", { cause: error });
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }
}

/** Tests on a server of this process; left out, with a word why, where there is none. */
export function describePostgres(name: string, work: (server: PostgresServer) => void | Promise<void>): void {
  const programs = findPostgres();
  if (programs === null)
    test.skip(`${name}: no PostgreSQL ${OLDEST} or newer is installed here`, () => undefined);
  else describe(name, async () => work(await sharePostgres(programs)));
}

/**
 * PgBouncer in transaction mode before a test's server, as in many installations. Each transaction of a client connection may then use a
 * different server connection. Uses an installed one, else Debian's package, unpacked into the tool cache.
 */
import { execFileSync, spawn } from "node:child_process";
import {
  chmodSync,
  chownSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { findServerUser } from "./postgres-programs.ts";
import { watched } from "./postgres-server.ts";
import type { PostgresServer } from "./postgres-server.ts";
import { cachePath } from "./tool-cache.ts";

const INSTALLED = "/usr/sbin/pgbouncer";
/** Linked libraries that a machine may lack; the rest is on every Debian. */
const LIBRARIES = /^lib(c-ares|cares|event)[\w.-]*$/;
const PORT = 6432;
/** Fewer than one program opens, so that programs share them. */
const SERVER_CONNECTIONS = 4;

export interface PgBouncer {
  /** The address of a database through it. */
  through(address: string): string;
  stop(): Promise<void>;
}

/** The folder it was unpacked in, "/" for an installed one; or why there is none. */
export function findPgBouncer(): { readonly root: string } | { readonly why: string } {
  if (existsSync(INSTALLED)) return { root: "/" };
  const root = cachePath("pgbouncer");
  try {
    if (!existsSync(root)) unpack(root);
    return { root };
  } catch (error) {
    return { why: (error as Error).message.split("\n")[0] ?? "" };
  }
}

function unpack(root: string): void {
  const aside = `${root}.partial-${process.pid}`;
  const packages = `${aside}.packages`;
  for (const folder of [aside, packages]) mkdirSync(folder, { recursive: true });
  try {
    const run = (program: string, ...args: string[]): string =>
      execFileSync(program, args, { cwd: packages, encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] });
    const needed = run("apt-cache", "depends", "pgbouncer")
      .split("\n")
      .map((line) => /Depends: (\S+)/.exec(line)?.[1] ?? "")
      .filter((name) => LIBRARIES.test(name));
    run("apt-get", "download", "pgbouncer", ...needed);
    run("sh", "-c", `for one in *.deb; do dpkg -x "$one" "${aside}"; done`);
    renameSync(aside, root);
  } finally {
    for (const folder of [aside, packages]) rmSync(folder, { recursive: true, force: true });
  }
}

export async function startPgBouncer(root: string, server: PostgresServer): Promise<PgBouncer> {
  const user = findServerUser();
  const folder = mkdtempSync(join(tmpdir(), "lcm-bouncer-"));
  if (user) chownSync(folder, user.uid, user.gid);
  // The cache may be in a home that its user cannot enter.
  if (root !== "/") cpSync(root, join(folder, "root"), { recursive: true, verbatimSymlinks: true });
  const programs = root === "/" ? "/" : join(folder, "root");
  const write = (name: string, lines: readonly string[]): string => {
    const path = join(folder, name);
    writeFileSync(path, `${lines.join("\n")}\n`);
    chmodSync(path, 0o644);
    return path;
  };
  const settings = write("pgbouncer.ini", [
    "[databases]",
    `* = host=${server.folder}`,
    "[pgbouncer]",
    "pool_mode = transaction",
    `default_pool_size = ${SERVER_CONNECTIONS}`,
    "max_client_conn = 200",
    `unix_socket_dir = ${folder}`,
    `listen_port = ${PORT}`,
    "listen_addr =",
    "auth_type = trust",
    `auth_file = ${write("users", ['"lcm" ""'])}`,
  ]);
  const child = spawn(
    "sh",
    ["-c", watched("TERM"), "sh", join(programs, "usr/sbin/pgbouncer"), "-q", settings],
    {
      ...user,
      cwd: folder,
      env: { ...process.env, LD_LIBRARY_PATH: join(programs, "usr/lib/x86_64-linux-gnu") },
      stdio: ["pipe", "ignore", "pipe"],
    },
  );
  let said = "";
  child.stderr.on("data", (chunk: Buffer) => (said += chunk.toString()));
  const socket = join(folder, `.s.PGSQL.${PORT}`);
  while (!existsSync(socket)) {
    if (child.exitCode !== null) throw new Error(`PgBouncer ended at its start: ${said}`);
    await sleep(20);
  }
  const remove = (): void => rmSync(folder, { recursive: true, force: true });
  process.on("exit", remove);
  return {
    through: (address) => address.replace(/host=[^&]*/, `host=${folder}&port=${PORT}`),
    stop: async () => {
      const ended = new Promise((resolve) => child.once("exit", resolve));
      child.stdin.end();
      await ended;
      process.off("exit", remove);
      remove();
    },
  };
}

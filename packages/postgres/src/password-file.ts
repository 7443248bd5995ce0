/**
 * The password of a login from `~/.pgpass`, or from the file that PGPASSFILE names, as libpq reads it: lines of host:port:database:user:password, `*` for
 * any, the first line that fits. A file that others may read is left alone, as libpq does.
 */
import { readFileSync, statSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";

export interface Login {
  readonly host: string;
  readonly port: number;
  readonly database: string;
  readonly user: string;
}

const OTHERS = 0o077;
const FIELDS = /((?:\\.|[^:\\])*)(?::|$)/gy;

/** Undefined where the file has none. */
export function findPassword({ host, port, database, user }: Login): string | undefined {
  const text = readPasswords();
  // A socket's folder is asked for as localhost.
  const wanted = [host.startsWith("/") ? "localhost" : host, String(port), database, user];
  for (const line of text.split(/\r?\n/)) {
    if (line === "" || line.startsWith("#")) continue;
    const fields = Array.from(line.matchAll(FIELDS), ([, field = ""]) => field.replaceAll(/\\(.)/g, "$1"));
    if (wanted.every((value, at) => fields[at] === "*" || fields[at] === value)) return fields[wanted.length];
  }
  return undefined;
}

function readPasswords(): string {
  const path = process.env["PGPASSFILE"] ?? defaultPath();
  const stat = statSync(path, { throwIfNoEntry: false });
  if (!stat?.isFile()) return "";
  const isPrivate = process.platform === "win32" || (stat.mode & OTHERS) === 0;
  return isPrivate ? readFileSync(path, "utf8") : "";
}

const defaultPath = (): string =>
  process.platform === "win32"
    ? join(process.env["APPDATA"] ?? homedir(), "postgresql", "pgpass.conf")
    : join(homedir(), ".pgpass");

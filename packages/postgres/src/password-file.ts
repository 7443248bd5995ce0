/**
 * The password of a login from `~/.pgpass`, or from the file that PGPASSFILE names, in libpq's format: lines of
 * host:port:database:user:password, `*` for any, the first match wins. A file that others may read is ignored, as in libpq.
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

/** Undefined if the file has none. */
export function findPassword({ host, port, database, user }: Login): string | undefined {
  const text = readPasswords();
  // For a socket's folder, libpq looks up localhost.
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

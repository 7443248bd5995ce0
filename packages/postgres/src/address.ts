/**
 * Parses the address of a server: its location and login, in libpq's terms, and how this program uses it. An unknown parameter is refused: a
 * misspelt `sslmode` must not end in a connection without TLS.
 */
import { existsSync } from "node:fs";
import { isAbsolute } from "node:path";
import { EngineError } from "@lossless/core/adapter";

export interface ServerAddress {
  /** For the driver. */
  readonly connectionString: string;
  /** For display: without the password. */
  readonly name: string;
  readonly maxConnections: number;
  readonly connectTimeoutMs: number;
  readonly lockTimeoutMs: number;
  readonly statementTimeoutMs: number;
  /** A statement is prepared once per connection. Off: PgBouncer before 1.21 gives a connection to others between transactions. */
  readonly isNamed: boolean;
  /** The number of partitions of the large tables when they are created; 0: none. */
  readonly partitions: number;
  /** The folder of large payloads, which every machine must see; null: they are in the database. */
  readonly filesDir: string | null;
}

/** Our own parameters, with their defaults. Times are in seconds, as in libpq; 0 means no limit. */
const OWN = {
  pool: 10,
  connect_timeout: 10,
  lock_timeout: 60,
  statement_timeout: 600,
  partitions: 0,
} as const;
const OWN_NAMES = Object.keys(OWN) as readonly (keyof typeof OWN)[];
/** Planning a statement takes longer with each partition. */
const MAX_PARTITIONS = 256;
const STATEMENTS = "statements";
const FILES = "files";
/** The driver reads them when it connects, and a missing file would look like a missing server. */
const CERTIFICATES = ["sslcert", "sslkey", "sslrootcert"];
const DRIVERS = ["host", "port", "user", "password", "sslmode", ...CERTIFICATES, "application_name"];
/** The driver verifies the server's certificate for all of them, and warns that a later version will not. */
const PROVEN = ["prefer", "require", "verify-ca", "verify-full"];
const SSL_MODES = ["disable", ...PROVEN, "no-verify"];

/**
 * Parses an address.
 *
 * @example parseServerAddress("postgres://lcm@db.example/archive?sslmode=verify-full&pool=4").maxConnections; // 4
 */
export function parseServerAddress(address: string): ServerAddress {
  const url = parseUrl(address);
  const name = nameAddress(url);
  const known = [...OWN_NAMES, STATEMENTS, FILES, ...DRIVERS];
  const unknown = [...url.searchParams.keys()].find((key) => !known.includes(key));
  if (unknown !== undefined) refuse(name, `it has no parameter ${unknown}`, `known are ${known.join(", ")}`);
  const numbers = OWN_NAMES.map((key) => takeNumber(url, name, key));
  const statements = take(url, STATEMENTS) ?? "unnamed";
  if (statements !== "named" && statements !== "unnamed")
    refuse(name, `${STATEMENTS} cannot be ${statements}`, "write named or unnamed");
  const filesDir = take(url, FILES);
  if (filesDir !== null && !isAbsolute(filesDir))
    refuse(
      name,
      `${FILES} cannot be ${filesDir}`,
      "write the whole path of a folder that every machine sees",
    );
  const mode = url.searchParams.get("sslmode");
  if (mode !== null && !SSL_MODES.includes(mode))
    refuse(name, `sslmode cannot be ${mode}`, `write ${SSL_MODES.join(", ")}`);
  if (mode !== null && PROVEN.includes(mode)) url.searchParams.set("sslmode", "verify-full");
  for (const key of CERTIFICATES) {
    const path = url.searchParams.get(key);
    if (path !== null && !existsSync(path)) refuse(name, `${key} names no file: ${path}`, "check the path");
  }
  const [pool = 0, connect = 0, lock = 0, statement = 0, partitions = 0] = numbers;
  if (pool < 1) refuse(name, "pool cannot be 0", "write how many connections it may have, from 1 on");
  if (partitions === 1 || partitions > MAX_PARTITIONS)
    refuse(
      name,
      `partitions cannot be ${partitions}`,
      `write a number from 2 to ${MAX_PARTITIONS}, such as 16`,
    );
  return {
    connectionString: url.href,
    name,
    maxConnections: pool,
    connectTimeoutMs: connect * 1000,
    lockTimeoutMs: lock * 1000,
    statementTimeoutMs: statement * 1000,
    isNamed: statements === "named",
    partitions,
    filesDir,
  };
}

function parseUrl(address: string): URL {
  try {
    // libpq allows addresses with a user and no host; a URL does not.
    const url = new URL(address.replace("@/", "@localhost/"));
    // Text after a # is most likely the rest of a password.
    if (url.hash === "") return url;
  } catch {
    // Refused below.
  }
  // Not the address itself: it may contain a password.
  return refuse(
    "of the server",
    "it is not a URL",
    "write postgres://user@host:5432/database, and # in a password as %23",
  );
}

function nameAddress(url: URL): string {
  const shown = new URL(url.href);
  shown.password = "";
  shown.search = "";
  const host = url.searchParams.get("host");
  return host === null ? shown.href : `${shown.href}?host=${host}`;
}

function take(url: URL, key: string): string | null {
  const value = url.searchParams.get(key);
  url.searchParams.delete(key);
  return value;
}

function takeNumber(url: URL, name: string, key: keyof typeof OWN): number {
  const text = take(url, key);
  if (text === null) return OWN[key];
  if (!/^\d{1,6}$/.test(text)) refuse(name, `${key} cannot be ${text}`, "write a whole number, such as 10");
  return Number(text);
}

function refuse(name: string, why: string, hint: string): never {
  throw new EngineError("config", `cannot read the database address ${name}: ${why}`, { hint });
}

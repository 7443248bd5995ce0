/**
 * Where an archive is, as people write it: the path of a file, or an address that begins with `sqlite:` or `file:` and names one, or with
 * `postgres://` and names a server. An address of a kind that this version does not know is refused and never taken for a path.
 */
import { resolve } from "node:path";
import { EngineError } from "./errors.ts";

export type StoreAddress =
  | {
      readonly kind: "sqlite";
      /** Absolute. */
      readonly path: string;
    }
  | {
      readonly kind: "postgres";
      /** As it was written: its adapter reads it. May hold a password. */
      readonly address: string;
    };

/**
 * Reads an address.
 *
 * @example
 * parseAddress("sqlite:///state/lcm.db"); // { kind: "sqlite", path: "/state/lcm.db" }
 */
export function parseAddress(address: string): StoreAddress {
  const path = readFileAddress(address);
  if (path !== null) return { kind: "sqlite", path: resolve(path) };
  if (/^(?:sqlite|file):/i.test(address)) {
    throw new EngineError("config", `cannot read the database address ${address}: it names no file`, {
      hint: "write sqlite:/folder/lcm.db or file:///folder/lcm.db, without a host and without parameters",
    });
  }
  const scheme = /^([a-z][a-z0-9+.-]+):\/\//i.exec(address)?.[1];
  if (scheme === undefined) return { kind: "sqlite", path: resolve(address) };
  if (isServerAddress(address)) return { kind: "postgres", address };
  throw new EngineError(
    "config",
    `cannot open a database at ${scheme}://: this version stores in SQLite and PostgreSQL only`,
    {
      hint: "name the path of a file, or an address that begins with sqlite:, file: or postgres://",
    },
  );
}

/** Whether an address names a server, and no file. */
export const isServerAddress = (address: string): boolean => /^postgres(?:ql)?:\/\//i.test(address);

/** An address as it may be shown: what follows the user's name, and a password among the parameters, are left out. */
export const hidePassword = (address: string): string =>
  address
    .replace(/^([a-z][a-z0-9+.-]*:\/\/[^:@/]*):[^?]*@/i, "$1:***@")
    .replace(/([?&]password=)[^&]*/i, "$1***");

/** An address that means the same wherever it is read. */
export function settleAddress(address: string): string {
  const parsed = parseAddress(address);
  return parsed.kind === "sqlite" ? parsed.path : parsed.address;
}

/** The scheme, an empty host or this one, and a path. */
const FILE_ADDRESS = /^(?:sqlite|file):(?:\/\/(?:localhost)?(?=\/))?(?!\/\/)([^?#]+)$/i;

/** The path that an address of a file names, as it stands there; null for a plain path and for what names no file. */
export function readFileAddress(address: string): string | null {
  const path = FILE_ADDRESS.exec(address)?.[1];
  return path === undefined ? null : decode(path);
}

/** Null for a percent sign that begins no character. */
function decode(text: string): string | null {
  try {
    return decodeURIComponent(text);
  } catch {
    return null;
  }
}

/**
 * The location of an archive, as people write it: the path of a file, an address with `sqlite:` or `file:` that names one, or one with
 * `postgres://` that names a server. An address of an unknown kind is refused and never treated as a path.
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
      /** As written; its adapter parses it. May contain a password. */
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

/** Whether an address names a server rather than a file. */
export const isServerAddress = (address: string): boolean => /^postgres(?:ql)?:\/\//i.test(address);

/** An address that is safe to show: without what follows the user's name, and without a password in the parameters. */
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

/** The path in a file address, as written; null for a plain path and for an address that names no file. */
export function readFileAddress(address: string): string | null {
  const path = FILE_ADDRESS.exec(address)?.[1];
  return path === undefined ? null : decode(path);
}

/** Null for an invalid percent escape. */
function decode(text: string): string | null {
  try {
    return decodeURIComponent(text);
  } catch {
    return null;
  }
}

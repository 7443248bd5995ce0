/**
 * Where an archive is, as people write it: the path of a file, or an address that begins with `sqlite:` or `file:` and names one. Another
 * kind of database has a scheme of its own; an address of a kind that this version does not know is refused and never taken for a path.
 */
import { resolve } from "node:path";
import { EngineError } from "./errors.ts";

export interface StoreAddress {
  readonly kind: "sqlite";
  /** Absolute. */
  readonly path: string;
}

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
  throw new EngineError(
    "config",
    `cannot open a database at ${scheme}://: this version stores in SQLite only`,
    {
      hint: "name the path of a file, or an address that begins with sqlite: or file:",
    },
  );
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

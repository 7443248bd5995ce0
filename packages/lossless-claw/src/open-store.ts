/**
 * The one place that knows which databases there are. An address says which; its adapter is loaded when the first archive of that kind is
 * opened.
 */
import { resolve } from "node:path";
import { filesDirBeside, parseAddress } from "@lossless/core/ports";
import type { OpenStore } from "@lossless/core/ports";

/**
 * Opens the archive at an address: a path, or `sqlite:` or `file:` and a path.
 *
 * @example
 * const store = await openStore("sqlite:/state/lcm.db", { create: true, derive: deriveMessage });
 */
export const openStore: OpenStore = async (address, { filesDir, ...options }) => {
  const { path } = parseAddress(address);
  const { SqliteStore } = await import("@lossless/sqlite");
  return new SqliteStore({ ...options, path, filesDir: resolve(filesDir ?? filesDirBeside(path)) });
};

/** Fails when another process has the archive open; leaves everything written to it in the one file. */
export async function claimAlone(address: string): Promise<void> {
  const { path } = parseAddress(address);
  const sqlite = await import("@lossless/sqlite");
  sqlite.claimAlone(path);
}

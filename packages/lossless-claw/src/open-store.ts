/** The one place that knows all databases. The address selects one; its adapter is loaded when the first archive of that kind is opened. */
import { resolve } from "node:path";
import { EngineError } from "@lossless/core";
import { filesDirBeside, parseAddress } from "@lossless/core/ports";
import type { OpenStore } from "@lossless/core/ports";

/**
 * Opens the archive at an address: a path, `sqlite:` or `file:` and a path, or `postgres://` and a server.
 *
 * @example
 * const store = await openStore("sqlite:/state/lcm.db", { create: true, derive: deriveMessage });
 */
export const openStore: OpenStore = async (address, { filesDir, ...options }) => {
  const parsed = parseAddress(address);
  if (parsed.kind === "postgres") {
    const { openPostgresStore } = await import("@lossless/postgres");
    // Large payloads are where the address points: a folder on this machine would be out of reach for other clients.
    return openPostgresStore({ ...options, address: parsed.address });
  }
  const { path } = parsed;
  const { SqliteStore } = await import("@lossless/sqlite");
  return new SqliteStore({ ...options, path, filesDir: resolve(filesDir ?? filesDirBeside(path)) });
};

/** Fails when another process has the archive open; leaves everything written to it in the one file. */
export async function claimAlone(address: string): Promise<void> {
  const parsed = parseAddress(address);
  if (parsed.kind !== "sqlite") {
    throw new EngineError(
      "usage",
      "cannot lock a server's database exclusively: other programs may use it at any time",
      {
        hint: "name an archive in a file",
      },
    );
  }
  const sqlite = await import("@lossless/sqlite");
  sqlite.claimAlone(parsed.path);
}

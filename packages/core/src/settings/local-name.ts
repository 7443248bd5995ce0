/**
 * Files that this machine keeps beside an archive (receipts of forgetting, the record of copies, waiting turns) are named after its
 * database file. For an archive on a server they are named after the server and the database, in the state directory. The name contains no
 * password.
 */
import { createHash } from "node:crypto";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { hidePassword, isServerAddress } from "../model/address.ts";
import { findStateDir } from "./settings-resolve.ts";

/**
 * The path after which such files are named; its folder exists.
 *
 * @example
 * nameLocally("/state/lcm.db"); // "/state/lcm.db"
 */
export function nameLocally(database: string): string {
  if (!isServerAddress(database)) return database;
  const url = new URL(hidePassword(database).replace("@/", "@localhost/"));
  const parameter = (name: string): string => url.searchParams.get(name) ?? "";
  const location = `${url.host}${url.pathname} ${parameter("host")} ${parameter("port")}`;
  const name = createHash("sha256").update(location).digest("hex").slice(0, 12);
  const folder = findStateDir(process.env).path;
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  return join(folder, `lcm-${name}`);
}

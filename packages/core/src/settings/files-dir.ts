/**
 * The default location of an archive's large files: a separate folder beside the database. Archives in one folder must not share it,
 * because one may still need what another forgets.
 */
import { basename, dirname, join } from "node:path";

/**
 * The folder of large files of a database.
 *
 * @example
 * filesDirBeside("/state/lcm.db"); // "/state/lcm-files"
 */
export function filesDirBeside(database: string): string {
  return join(dirname(database), `${basename(database).replace(/\.db$/i, "")}-files`);
}

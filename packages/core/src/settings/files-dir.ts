/**
 * The default location of an archive's large files: a separate folder beside the database. Archives in one folder must not share it,
 * because one may still need what another forgets.
 */
import { existsSync, lstatSync, realpathSync } from "node:fs";
import { basename, dirname, join } from "node:path";

/**
 * The folder of large files of a database. Of a link to one, that of the database it leads to, unless the link has a folder of its own.
 *
 * @example
 * filesDirBeside("/state/lcm.db"); // "/state/lcm-files"
 */
export function filesDirBeside(database: string): string {
  const own = nameBeside(database);
  const isLink = existsSync(database) && lstatSync(database).isSymbolicLink();
  return isLink && !existsSync(own) ? nameBeside(realpathSync(database)) : own;
}

const nameBeside = (database: string): string =>
  join(dirname(database), `${basename(database).replace(/\.db$/i, "")}-files`);

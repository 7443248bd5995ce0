/**
 * Where an archive keeps its large files unless told otherwise: in a folder of its own beside the database. Archives that lie in one folder
 * must not share it, because what one forgets another may still need.
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

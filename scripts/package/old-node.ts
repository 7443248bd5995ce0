/** A Node that is too old for us, to see what users of one are told. Fetched once into the cache that the live tests use. */
import { join } from "node:path";
import { cachePath, installPackage, isCached } from "@lossless/testkit/tool-cache.ts";

const VERSION = "22.23.3";

/** The program, or null where there is none for this machine or no network. */
export async function ensureOldNode(): Promise<string | null> {
  // What `npm install node` fetches behind the scenes; this way no script of it runs.
  const name = `node-${process.platform}-${process.arch}`;
  const home = cachePath(`node-${VERSION}`);
  try {
    if (!isCached(home)) await installPackage(name, VERSION, home);
  } catch {
    return null;
  }
  return join(home, "node_modules", name, "bin", "node");
}

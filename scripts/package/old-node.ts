/** A Node that is too old for us, to test what its users see. Fetched once into the cache of the live tests. */
import { join } from "node:path";
import { cachePath, installPackage, isCached } from "@lossless/testkit/tool-cache.ts";

const VERSION = "22.23.3";

/** The program, or null if there is none for this machine or no network. */
export async function ensureOldNode(): Promise<string | null> {
  // The package that `npm install node` fetches; this way none of its scripts run.
  const name = `node-${process.platform}-${process.arch}`;
  const home = cachePath(`node-${VERSION}`);
  try {
    if (!isCached(home)) await installPackage(name, VERSION, home);
  } catch {
    return null;
  }
  return join(home, "node_modules", name, "bin", "node");
}

/**
 * Files of this package that the program needs: where they are, from source and bundled alike. Sources are in `src`, the bundle in `dist`, so
 * the parent folder is the package in both cases; from a subfolder it would not be.
 */
import { readFileSync } from "node:fs";

let version: string | null = null;

/** The version of this program. */
export function readVersion(): string {
  version ??= (
    JSON.parse(readFileSync(new URL("../package.json", import.meta.url), "utf8")) as { version: string }
  ).version;
  return version;
}

/**
 * Tells whether a database has to be adopted. Reads only through SQLite: closing a file handle of our own would release the locks that this
 * process holds on the file, and an engine may have it open.
 */
import { existsSync, readdirSync, rmSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { DatabaseSync } from "node:sqlite";

import { APPLICATION_ID, nameAdoptionFolder } from "@lossless/core/formats";

import { DocumentedSource } from "./source.ts";

/** True for a database of the documented schema, and for the leftovers of a killed adoption. */
export function needsAdoption(path: string): boolean {
  if (existsSync(`${path}.adopted`)) return true;
  // To open a pipe would be to wait for its other end.
  const isFile = existsSync(path) && statSync(path).isFile();
  return isFile && readApplicationId(path) !== APPLICATION_ID && isDocumented(path);
}

/** Removes folders of killed adoptions. Call it only where no adoption can be running: under its lock, or where there is nothing to adopt. */
export function removeLeftovers(path: string, own: string | null = null): void {
  if (!existsSync(dirname(path))) return;
  for (const name of readdirSync(dirname(path))) {
    const folder = join(dirname(path), name);
    if (name.startsWith(nameAdoptionFolder(path)) && folder !== own)
      rmSync(folder, { recursive: true, force: true });
  }
}

// An unreadable file is not adopted: opening it reports what is wrong.

function readApplicationId(path: string): number | null {
  try {
    const database = new DatabaseSync(path, { readOnly: true });
    try {
      return (database.prepare("PRAGMA application_id").get() as { application_id: number }).application_id;
    } finally {
      database.close();
    }
  } catch {
    return null;
  }
}

function isDocumented(path: string): boolean {
  try {
    new DocumentedSource(path).close();
    return true;
  } catch {
    return false;
  }
}

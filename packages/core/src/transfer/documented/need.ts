/**
 * Whether a database has to be adopted. Looks through SQLite alone: a handle of one's own on the file, once closed, would give up the locks
 * that this process holds on it, and an engine may have it open.
 */
import { existsSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";

import { APPLICATION_ID } from "../../store/sqlite/migrate.ts";

import { DocumentedSource } from "./source.ts";

/** True for a database of the documented schema, and for what a killed adoption left. */
export function needsAdoption(path: string): boolean {
  if (existsSync(`${path}.adopted`)) return true;
  return existsSync(path) && readApplicationId(path) !== APPLICATION_ID && isDocumented(path);
}

// What cannot be read is not adopted: what is wrong with it is told by whoever opens it.

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

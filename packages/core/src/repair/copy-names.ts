/** How copies of an archive are named: after it, with their purpose and the time they were made. */
import { existsSync } from "node:fs";

/** The suffix of a copy that is not complete yet. */
export const PARTIAL = ".partial";

/** Two copies within a second also get different names. */
export function findFreeName(path: string, ending = ""): string {
  for (let number = 1; ; number++) {
    const name = `${path}${number === 1 ? "" : `-${number}`}${ending}`;
    if (!existsSync(name)) return name;
  }
}

/** `20260214-110207`, in UTC, so that names sort by time. */
export function formatStamp(at: number): string {
  return new Date(at).toISOString().slice(0, 19).replaceAll(/[-:]/g, "").replace("T", "-");
}

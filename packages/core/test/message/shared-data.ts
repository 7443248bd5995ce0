/** Where the real transcripts are, for tests that skip when they are absent. */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";

const ROOT = resolve(import.meta.dirname, "../../../..");
const DATA = process.env["LCM_SHARED_DATA"] ?? join(ROOT, "../shared/data");

export function transcriptFolder(name: string): string | null {
  const folder = join(DATA, "transcripts", name);
  return existsSync(folder) ? folder : null;
}

/** Every line of every file in a folder of transcripts, without its line break. */
export function readTranscriptLines(folder: string): Buffer[] {
  const lines: Buffer[] = [];
  for (const name of readdirSync(folder).toSorted()) {
    const bytes = readFileSync(join(folder, name));
    let start = 0;
    while (start < bytes.length) {
      const newline = bytes.indexOf(0x0a, start);
      const end = newline < 0 ? bytes.length : newline;
      if (end > start) lines.push(bytes.subarray(start, end));
      start = end + 1;
    }
  }
  return lines;
}

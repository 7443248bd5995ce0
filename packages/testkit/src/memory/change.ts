/** Writes a few rows to an archive of maps, for the verbs that are not plans. */
import { Changes } from "@lossless/core/adapter";
import type { MemoryArchive } from "../memory-archive.ts";

/** Everything `work` changes is written together. */
export function change(archive: MemoryArchive, work: (changes: Changes) => void): void {
  // oxlint-disable-next-line require-yield -- nothing is asked
  archive.write(function* () {
    const changes = new Changes();
    work(changes);
    return changes.done(null);
  });
}

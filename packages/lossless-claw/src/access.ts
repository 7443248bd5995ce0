/** Access to further archives for verbs that need them. */
import type { ArchiveAccess } from "@lossless/core/repair";
import { withFileLock } from "./file-lock.ts";
import { openEngine } from "./open-engine.ts";
import { claimAlone, openStore } from "./open-store.ts";

export const ACCESS: ArchiveAccess = {
  openEngine,
  claimAlone,
  withFileLock,
  writeSnapshot: async (request) => {
    const { writeSnapshot } = await import("@lossless/interchange");
    return writeSnapshot(request, openStore);
  },
};

/** Access to further archives for verbs that need them. */
import type { ArchiveAccess } from "@lossless/core/repair";
import { openEngine } from "./open-engine.ts";
import { claimAlone, openStore } from "./open-store.ts";

export const ACCESS: ArchiveAccess = {
  openEngine,
  claimAlone,
  writeSnapshot: async (request) => {
    const { writeSnapshot } = await import("@lossless/interchange");
    return writeSnapshot(request, openStore);
  },
};

/** What an operator asks for: everything of `@lossless/core/repair`, with archives opened by address. */
import * as repair from "@lossless/core/repair";
import type { ArchiveAccess } from "@lossless/core/repair";
import { openEngine } from "./open-engine.ts";
import { claimAlone } from "./open-store.ts";

const ACCESS: ArchiveAccess = { openEngine, claimAlone };

/** A verb that is told how archives are opened. */
// @__NO_SIDE_EFFECTS__ (what a bundle does not use stays out of it)
const bind =
  <Request extends readonly unknown[], Result>(
    verb: (...request: [...Request, access: ArchiveAccess]) => Result,
  ) =>
  (...request: Request): Result =>
    verb(...request, ACCESS);

export * from "@lossless/core/repair";
export const applyForget = bind(repair.applyForget);
export const createBackup = bind(repair.createBackup);
export const mend = bind(repair.mend);
export const restoreBackup = bind(repair.restoreBackup);
export const rotateSessionFile = bind(repair.rotateSessionFile);
export const sweepSessionFiles = bind(repair.sweepSessionFiles);

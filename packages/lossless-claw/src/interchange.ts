/** Importing and exporting: everything of `@lossless/core/interchange`, with archives opened by address. */
import * as interchange from "@lossless/core/interchange";
import type { OpenStore } from "@lossless/core/ports";
import { openStore } from "./open-store.ts";

/** A verb that is told how stores are opened. */
// @__NO_SIDE_EFFECTS__ (what a bundle does not use stays out of it)
const bind =
  <Request extends readonly unknown[], Result>(
    verb: (...request: [...Request, openStore: OpenStore]) => Result,
  ) =>
  (...request: Request): Result =>
    verb(...request, openStore);

export * from "@lossless/core/interchange";
export const adoptDocumentedDatabase = bind(interchange.adoptDocumentedDatabase);
export const copyForTrial = bind(interchange.copyForTrial);
export const exportConversations = bind(interchange.exportConversations);
export const importHistory = bind(interchange.importHistory);

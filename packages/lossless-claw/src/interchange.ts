/** Importing and exporting: everything of `@lossless/interchange`, with archives opened by address. */
import * as interchange from "@lossless/interchange";
import { ACCESS } from "./access.ts";
import { bind } from "./bind.ts";
import { openStore } from "./open-store.ts";

export * from "@lossless/interchange";
export const adoptDocumentedDatabase = /* @__PURE__ */ bind(interchange.adoptDocumentedDatabase, openStore);
export const copyForTrial = /* @__PURE__ */ bind(interchange.copyForTrial, openStore);
export const exportConversations = /* @__PURE__ */ bind(interchange.exportConversations, openStore);
export const importHistory = /* @__PURE__ */ bind(interchange.importHistory, openStore);
export const migrate = /* @__PURE__ */ bind(interchange.migrate, openStore);
export const rotateSessionFile = /* @__PURE__ */ bind(interchange.rotateSessionFile, ACCESS);
export const sweepSessionFiles = /* @__PURE__ */ bind(interchange.sweepSessionFiles, ACCESS);

/** For operators: everything of `@lossless/core/repair`, with archives opened by address. */
import * as repair from "@lossless/core/repair";
import { ACCESS } from "./access.ts";
import { bind } from "./bind.ts";

export * from "@lossless/core/repair";
export const applyForget = /* @__PURE__ */ bind(repair.applyForget, ACCESS);
export const createBackup = /* @__PURE__ */ bind(repair.createBackup, ACCESS);
export const mend = /* @__PURE__ */ bind(repair.mend, ACCESS);
export const removeImports = /* @__PURE__ */ bind(repair.removeImports, ACCESS);
export const restoreBackup = /* @__PURE__ */ bind(repair.restoreBackup, ACCESS);
export { openRoles } from "./roles.ts";
export type { Roles } from "./roles.ts";

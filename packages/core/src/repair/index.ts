/** The operator's verbs: backups, doctor, forgetting, regenerating summaries, rotating files, prompts, bug reports. */

export type { ArchiveAccess, SnapshotCounts, SnapshotRequest } from "./archive-access.ts";

// Backups
export { createBackup, listBackups, planRestore, restoreBackup } from "./backup.ts";
export type {
  BackupEntry,
  BackupOptions,
  BackupResult,
  RestoreOptions,
  RestorePlan,
  RestoreResult,
} from "./backup.ts";

// The doctor
export { examine, mend } from "./doctor.ts";
export type { DoctorOptions, DoctorResult, Finding, MendResult, Severity } from "./doctor.ts";
export { listSpooledTurns } from "./spooled-turns.ts";
export type { SpooledTurns } from "./spooled-turns.ts";
export { buildSupportBundle } from "./support.ts";

// Forgetting and cleaning
export { applyForget, previewForget } from "./forget.ts";
export type { ForgetOptions, ForgetPreview, ForgetResult, ForgetSelection, Receipt } from "./forget.ts";
export { listCleanable } from "./clean.ts";
export type { Cleanable, CleanKind } from "./clean.ts";
export { listImports, planRemoval, removeImports } from "./imports.ts";
export type { ListedImport, RemovalPlan, RemovalResult } from "./imports.ts";

// Summaries and prompts
export { describeDamage, estimateCost, findDamage } from "./checks/summaries.ts";
export {
  exportPrompts,
  listPrompts,
  parsePromptName,
  readPrompts,
  renderPrompt,
  showPrompt,
} from "./prompts.ts";
export type { PromptEntry } from "./prompts.ts";
export { planRewrite, rewriteAll } from "./rewrite.ts";
export type { RewriteSelection, RewriteTarget } from "./rewrite.ts";

/**
 * The doctor: runs every check, and on request fixes what can be fixed without changing a message. Fixes that need a model are only
 * reported, with their cost.
 *
 * Invariant: checking changes nothing. Fixing begins with a backup, unless there are only permissions to fix. An archive with summaries
 * that do not verify cannot be backed up: it is copied as it is before they are removed, and backed up afterwards.
 */
import { chmodSync, rmSync } from "node:fs";
import type { Engine } from "../engine/engine.ts";
import type { VerifyResult } from "../store/store.ts";
import type { ArchiveAccess } from "./archive-access.ts";
import { createBackup, createRawCopy } from "./backup.ts";
import { checkBackups } from "./checks/backups.ts";
import { checkDebt } from "./checks/debt.ts";
import { checkFiles } from "./checks/files.ts";
import { checkGuards } from "./checks/guards.ts";
import { checkPermissions } from "./checks/permissions.ts";
import { checkProof, listBrokenSummaries } from "./checks/proof.ts";
import { checkIndex } from "./checks/search-index.ts";
import { checkSettings } from "./checks/settings.ts";
import { checkSummaries } from "./checks/summaries.ts";
import { checkVersions } from "./checks/versions.ts";
import { checkWaiting } from "./checks/waiting.ts";
import type { Check, CheckInput, Finding, Fix, Severity } from "./finding.ts";

export type { Finding, Severity } from "./finding.ts";

const CHECKS: readonly Check[] = [
  checkVersions,
  checkSettings,
  checkProof,
  checkIndex,
  checkSummaries,
  checkDebt,
  checkGuards,
  checkFiles,
  checkWaiting,
  checkPermissions,
  checkBackups,
];

const ORDER: Readonly<Record<Severity, number>> = { error: 0, warning: 1, info: 2 };

export interface DoctorOptions extends Omit<
  CheckInput,
  "verify" | "now" | "modelProblem" | "replacedSettings"
> {
  readonly now?: number;
  readonly modelProblem?: string | null;
  readonly replacedSettings?: CheckInput["replacedSettings"];
  readonly onProgress?: (done: number, total: number) => void;
}

export interface DoctorResult {
  /** No error was found. */
  readonly ok: boolean;
  /** The worst first. */
  readonly findings: readonly Finding[];
  readonly counts: Readonly<Record<Severity, number>>;
  /** The cost of a model for everything that needs one. */
  readonly cost: { readonly inputTokens: number; readonly outputTokens: number };
}

export async function examine(options: DoctorOptions): Promise<DoctorResult> {
  let proof: Promise<VerifyResult> | null = null;
  const input: CheckInput = {
    ...options,
    now: options.now ?? Date.now(),
    modelProblem: options.modelProblem ?? null,
    replacedSettings: options.replacedSettings ?? [],
    verify: () =>
      (proof ??= options.engine.verify(options.onProgress ? { onProgress: options.onProgress } : {})),
  };
  const findings: Finding[] = [];
  for (const check of CHECKS) findings.push(...(await check(input)));
  findings.sort((a, b) => ORDER[a.severity] - ORDER[b.severity]);
  return summarize(findings);
}

function summarize(findings: readonly Finding[]): DoctorResult {
  const counts = { info: 0, warning: 0, error: 0 };
  const cost = { inputTokens: 0, outputTokens: 0 };
  for (const finding of findings) {
    counts[finding.severity] += 1;
    cost.inputTokens += finding.cost?.inputTokens ?? 0;
    cost.outputTokens += finding.cost?.outputTokens ?? 0;
  }
  return { ok: counts.error === 0, findings, counts, cost };
}

export interface MendResult {
  /** The backup that was made first; null when none was needed. */
  readonly backupPath: string | null;
  /** The unverified copy made before summaries were removed; null if none were. */
  readonly copyPath: string | null;
  /** Without what could not be fixed. */
  readonly mended: readonly Finding[];
}

/** Fixes what the findings mark as safe to fix. */
export async function mend(
  options: DoctorOptions,
  findings: readonly Finding[],
  access: ArchiveAccess,
): Promise<MendResult> {
  const mendable = findings.filter((finding) => finding.fix !== undefined);
  const isFirst = (finding: Finding): boolean =>
    finding.fix?.kind === "make_private" || finding.fix?.kind === "drop_summaries";
  const ordered = [...mendable.filter(isFirst), ...mendable.filter((finding) => !isFirst(finding))];
  let backupPath: string | null = null;
  let copyPath: string | null = null;
  const mended: Finding[] = [];
  for (const finding of ordered) {
    if (finding.fix?.kind === "drop_summaries") copyPath ??= await copyAsItIs(options, access);
    else if (!isFirst(finding)) backupPath ??= await backUp(options, access);
    if (await apply(options, finding.fix as Fix)) mended.push(finding);
  }
  return { backupPath, copyPath, mended };
}

const copyAsItIs = (
  { engine, databasePath, filesDir }: DoctorOptions,
  access: ArchiveAccess,
): Promise<string> => createRawCopy({ engine, databasePath, filesDir }, access);

const backUp = async (
  { engine, databasePath, filesDir }: DoctorOptions,
  access: ArchiveAccess,
): Promise<string> => (await createBackup({ engine, databasePath, filesDir }, access)).path;

/**
 * Removes the summaries that do not verify, and if that is not enough, all of the conversation. False if a fork shows one of them and still
 * needs it.
 */
async function dropBroken(
  engine: Engine,
  { conversationId, summaryIds }: { conversationId: number; summaryIds: readonly string[] },
): Promise<boolean> {
  if ((await engine.dropSummaries({ conversationId, summaryIds })) === null) return false;
  const left = await listBrokenSummaries(engine, (await engine.verify()).problems);
  return !left.has(conversationId) || (await engine.dropSummaries({ conversationId })) !== null;
}

/** False if something prevented it and nothing changed. */
async function apply({ engine }: DoctorOptions, fix: Fix): Promise<boolean> {
  switch (fix.kind) {
    case "reindex":
      await engine.reindex();
      return true;
    case "drop_summaries":
      return dropBroken(engine, fix);
    case "make_private":
      chmodSync(fix.path, fix.mode);
      return true;
    case "close_debt":
      await engine.closeDebt({ conversationId: fix.conversationId });
      return true;
    case "remove_file":
      return (await engine.removeUnnamedBlobs({ paths: [fix.blob] })).length > 0;
    case "remove_copy":
      rmSync(fix.path, { recursive: true, force: true });
      return true;
    case "finish_forgetting":
      await engine.finishForgetting();
      return true;
  }
}

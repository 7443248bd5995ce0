/**
 * `lcm rotate`: shortens a host's session file, after every line of it has been proven to be in the archive. With `--auto` it checks many files,
 * and the settings decide.
 */
import { stat } from "node:fs/promises";
import { join, resolve } from "node:path";
import type { Command } from "commander";
import { EngineError } from "@lossless/core";
import type { RotateResult, SweepTally } from "@lossless/interchange";
import { toAction } from "../../invocation.ts";
import type { Invocation } from "../../invocation.ts";
import { countOf, formatBytes, formatCount, usageError } from "@lossless/core/doors";
import { printNote } from "../../output.ts";
import { style } from "../../style.ts";
import { renderPairs } from "../../table.ts";
import { addExamples } from "../shared.ts";

interface RotateOptions {
  readonly apply?: boolean;
  readonly auto?: boolean;
  /** False with `--no-original`. */
  readonly original: boolean;
}

export function defineRotate(program: Command): void {
  const command = program
    .command("rotate")
    .description("Shorten a session file of OpenClaw or pi after proving that all of it is archived")
    .argument(
      "[path...]",
      "the JSONL session file; with --auto files and folders, by default those of the host",
    )
    .option("--no-original", "do not keep the original file")
    .option("--apply", "apply; without this, dry run")
    .option("--auto", "check every session file and act as autoRotateSessionFiles says (default: warn)")
    .action(toAction(runRotate));
  addExamples(command, [
    ["lcm import session.jsonl && lcm rotate session.jsonl", "is all of it archived, and what would stay"],
    ["lcm rotate session.jsonl --apply", "replace it"],
    ["lcm rotate --auto ~/.pi/agent/sessions", "which files have grown too large"],
  ]);
  command.addHelpText(
    "after",
    `
Stop the host first, or at least the session: a file that is written to meanwhile is left alone. Every line must be in
the archive, byte for byte, or nothing happens. The archive is backed up first.

What stays in the file: its header, the newest settings of the session, and the newest messages (freshTailCount), back to
a message of the user.

With --auto, files larger than autoRotateSessionFiles.sizeBytes are treated as autoRotateSessionFiles.startup says: warn,
rotate or off.`,
  );
}

async function runRotate(
  invocation: Invocation,
  options: RotateOptions,
  paths: readonly string[],
): Promise<void> {
  if (options.auto === true) return runSweep(invocation, options, paths);
  const [file] = paths;
  if (file === undefined || paths.length > 1)
    throw usageError("cannot run lcm rotate: it takes one session file", "With --auto it takes several.");
  const { rotateSessionFile } = await import("lossless-claw/interchange");
  const { settings } = await invocation.settings();
  const dryRun = options.apply !== true;
  const { databasePath, largeFilesDir: filesDir, freshTailCount } = settings;
  const report = await invocation.withArchive(
    dryRun ? "read" : "change",
    (engine) =>
      rotateSessionFile({
        engine,
        path: resolve(file),
        freshTailCount,
        dryRun,
        keepsOriginal: options.original,
        backup: { databasePath, filesDir },
        databasePath,
        ...invocation.scope,
      }),
    { thread: true },
  );
  await invocation.print({ data: { applied: !dryRun, ...report }, text: () => renderReport(report, dryRun) });
}

async function runSweep(
  invocation: Invocation,
  { apply }: RotateOptions,
  paths: readonly string[],
): Promise<void> {
  if (apply === true)
    throw usageError(
      "cannot run lcm rotate --auto --apply: the settings decide what is done",
      "lcm config set autoRotateSessionFiles.startup rotate",
    );
  const { sweepSessionFiles } = await import("lossless-claw/interchange");
  const { settings, locations } = await invocation.settings();
  const { databasePath, largeFilesDir: filesDir } = settings;
  const files = await listSessionFiles(paths, locations.stateDir);
  const mayRotate = settings.autoRotateSessionFiles.startup === "rotate";
  const tally = await invocation.withArchive(
    mayRotate ? "change" : "read",
    (engine) =>
      sweepSessionFiles({
        engine,
        files,
        phase: "startup",
        settings,
        databasePath,
        filesDir,
        ...invocation.scope,
        log: printNote,
      }),
    { thread: true },
  );
  const mode = tally === null ? "off" : settings.autoRotateSessionFiles.startup;
  await invocation.print({ data: { mode, ...tally }, text: () => renderTally(tally, mode) });
}

/** Session files below folders, and the named files. A missing folder of the host has none. */
async function listSessionFiles(named: readonly string[], stateDir: string): Promise<string[]> {
  const { findSessionFiles } = await import("@lossless/interchange");
  const isNamed = named.length > 0;
  const paths = isNamed ? named : [join(stateDir, "agents")];
  const files: string[] = [];
  for (const path of paths) {
    const stats = await stat(path).catch(() => null);
    if (stats === null && isNamed)
      throw new EngineError("not_found", `cannot rotate ${path}: there is no such file or folder`);
    if (stats?.isFile()) files.push(resolve(path));
    if (stats?.isDirectory()) files.push(...(await findSessionFiles(path)));
  }
  return files.sort();
}

function renderTally(tally: SweepTally | null, mode: string): string {
  if (tally === null) return "autoRotateSessionFiles is off; nothing was looked at.";
  const { scanned, eligible, rotated, warned, bytesRemoved } = tally;
  return renderPairs(
    [
      ["Looked at", countOf(scanned, "file")],
      ["Too large", countOf(eligible, "file")],
      ["Rotated", `${countOf(rotated, "file")}, ${formatBytes(bytesRemoved)} removed`],
      ["Warned", countOf(warned, "file")],
      ["Setting", `autoRotateSessionFiles.startup is ${mode}`],
    ],
    style.faint,
  );
}

function renderReport(report: RotateResult, dryRun: boolean): string {
  const { path, lines, keptLines, preservedTailMessageCount, sizeBytes, newSizeBytes } = report;
  const pairs: [string, string][] = [
    ["File", path],
    ["Proven", `all ${countOf(lines, "line")} are in the archive, byte for byte`],
    ["Stays", `${countOf(keptLines, "line")} with ${formatCount(preservedTailMessageCount)} messages`],
    ["Size", `${formatBytes(sizeBytes)} becomes ${formatBytes(newSizeBytes)}`],
    ...(report.originalPath === null ? [] : ([["Original", report.originalPath]] as [string, string][])),
    ...(report.backupPath === null ? [] : ([["Backup", report.backupPath]] as [string, string][])),
  ];
  const end =
    report.bytesRemoved <= 0
      ? "There is nothing to remove."
      : dryRun
        ? "Nothing was done. Add --apply to replace the file."
        : `${style.good("ok")}  rotated`;
  return `${renderPairs(pairs, style.faint)}\n\n${end}`;
}

/** `lcm rotate`: shortens a host's session file, after every line of it has been proven to be in the archive. */
import { resolve } from "node:path";
import type { Command } from "commander";
import type { RotateReport } from "@lossless/core/maintain/rotate.ts";
import { toAction } from "../context.ts";
import type { Invocation } from "../context.ts";
import { countOf, formatBytes, formatCount } from "../format.ts";
import { style } from "../style.ts";
import { renderPairs } from "../table.ts";
import { addExamples } from "./shared.ts";

interface RotateOptions {
  readonly apply?: boolean;
  /** False with `--no-original`. */
  readonly original: boolean;
}

export function defineRotate(program: Command): void {
  const command = program
    .command("rotate")
    .description("shorten a session file of OpenClaw or pi, once all of it is proven to be archived")
    .argument("<file>", "the JSONL session file")
    .option("--no-original", "do not keep the original beside it")
    .option("--apply", "do it; without this, only prove and tell")
    .action(toAction(runRotate));
  command.addHelpText(
    "after",
    `
Every line must be in the archive, byte for byte; the first that is not ends it. What stays: the header, the newest
settings of the session, and the newest messages (freshTailCount), back to a message of the user. The archive is backed
up first. Stop the host, or at least the session: a file that is written to meanwhile is left alone.`,
  );
  addExamples(command, [
    ["lcm import session.jsonl && lcm rotate session.jsonl", "is all of it archived, and what would stay"],
    ["lcm rotate session.jsonl --apply", "replace it"],
  ]);
}

async function runRotate(invocation: Invocation, options: RotateOptions, file: string): Promise<void> {
  const { rotateSessionFile } = await import("@lossless/core/maintain/rotate.ts");
  const { settings } = await invocation.settings();
  const isDry = options.apply !== true;
  const { databasePath, largeFilesDir: filesDir, freshTailCount } = settings;
  const report = await invocation.withArchive(
    "read",
    (engine) =>
      rotateSessionFile({
        engine,
        path: resolve(file),
        freshTailCount,
        isDry,
        keepsOriginal: options.original,
        backup: { databasePath, filesDir },
        ...invocation.scope,
      }),
    { thread: true },
  );
  await invocation.print({ data: { applied: !isDry, ...report }, text: () => renderReport(report, isDry) });
}

function renderReport(report: RotateReport, isDry: boolean): string {
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
      : isDry
        ? "Nothing was done. Add --apply to replace the file."
        : `${style.good("ok")}  rotated`;
  return `${renderPairs(pairs, style.faint)}\n\n${end}`;
}

/** `lcm restore`: replaces the archive with a backup. A dry run unless told to apply it. */
import { resolve } from "node:path";
import { Option } from "commander";
import type { Command } from "commander";
import type { RestorePlan, RestoreResult } from "@lossless/core/repair";
import { toAction } from "../../invocation.ts";
import type { Invocation } from "../../invocation.ts";
import { countOf, formatBytes, formatTime, toIso } from "@lossless/core/doors";
import { countNote, startProgress } from "../../progress.ts";
import { style } from "../../style.ts";
import { renderPairs } from "../../table.ts";
import { addExamples } from "../shared.ts";

interface RestoreOptions {
  readonly apply?: boolean;
  readonly yes?: boolean;
  readonly withForgotten?: boolean;
}

export function defineRestore(program: Command): void {
  const command = program
    .command("restore")
    .description("Restore the archive from a backup")
    .argument("<path>", "the backup folder")
    .option("--with-forgotten", "also restore messages that were forgotten since")
    .option("--apply", "apply; without this, dry run")
    .addOption(new Option("--yes", "the former name of --apply").hideHelp())
    .action(toAction(runRestore));
  addExamples(command, [
    ["lcm restore lcm.db.backup-20260214-110207", "dry run"],
    ["lcm restore lcm.db.backup-20260214-110207 --apply", "apply"],
  ]);
  command.addHelpText(
    "after",
    `
The backup is verified before anything is replaced, and the archive that was there is kept beside it under a name with
the time. Nobody else may have the database open: stop the agent host first. A backup that would bring back messages that
were forgotten since is refused, and the messages are named, unless you pass --with-forgotten.`,
  );
}

async function runRestore(
  invocation: Invocation,
  { apply = false, yes = apply, withForgotten = false }: RestoreOptions,
  path: string,
): Promise<void> {
  const { planRestore, restoreBackup } = await import("lossless-claw/repair");
  const { settings } = await invocation.settings();
  const locations = {
    backupPath: resolve(path),
    databasePath: settings.databasePath,
    filesDir: settings.largeFilesDir,
  };
  const plan = planRestore(locations);
  if (yes !== true) {
    await invocation.print({
      data: { applied: false, ...toPlanJson(plan) },
      text: () => renderPlan(plan, settings.databasePath, settings.timezone),
    });
    return;
  }
  const progress = startProgress("Verifying", { isWanted: !invocation.isJson });
  const report = await restoreBackup({
    ...locations,
    withForgotten,
    onProgress: (done, total) => progress.update(done, total, countNote(done, total, "messages")),
  }).finally(() => progress.finish());
  await invocation.print({ data: { applied: true, ...report }, text: () => renderReport(report) });
}

const toPlanJson = ({ backup, replaces }: RestorePlan): object => ({
  backup: { ...backup, createdAt: toIso(backup.createdAt) },
  replaces,
});

function renderPlan({ backup, replaces }: RestorePlan, databasePath: string, timezone: string): string {
  const pairs: [string, string][] = [
    [
      "Backup",
      `${backup.path} (${formatTime(backup.createdAt, timezone)}, ${formatBytes(backup.bytes)} with its large files)`,
    ],
    ["Goes to", databasePath],
    [
      "Replaces",
      replaces === null
        ? "nothing: there is no archive"
        : `the archive there (${formatBytes(replaces.bytes)}), which is kept beside it under a name with the time`,
    ],
  ];
  return `${renderPairs(pairs, style.faint)}\n\nNothing was done. Add --yes to verify the backup and put it in place.`;
}

function renderReport({ databasePath, keptAt, messages, files }: RestoreResult): string {
  const counts = `${countOf(messages, "message")}, ${countOf(files, "large file")}`;
  return [
    `${style.good("ok")}  ${databasePath} is the backup now: ${counts}, all verified`,
    ...(keptAt === null ? [] : [style.faint(`    what was there before: ${keptAt}`)]),
  ].join("\n");
}

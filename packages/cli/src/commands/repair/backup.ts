/** `lcm backup` and `lcm backup list`: a proven copy of the archive with its large files, made while agents keep writing. */
import { resolve } from "node:path";
import { Argument, InvalidArgumentError } from "commander";
import type { Command } from "commander";
import { hidePassword } from "@lossless/core";
import type { BackupEntry, BackupResult } from "@lossless/core/repair";
import { toAction } from "../../invocation.ts";
import type { Invocation } from "../../invocation.ts";
import { countOf, formatBytes, formatTime, toIso, usageError } from "@lossless/core/doors";
import { terminalColumns } from "../../output.ts";
import { startProgress } from "../../progress.ts";
import { style } from "../../style.ts";
import { renderTable } from "../../table.ts";
import { addExamples } from "../shared.ts";

interface BackupOptions {
  readonly out?: string;
  readonly keep?: number;
}

const STEPS = { database: "Copying", files: "Copying files", verify: "Verifying" } as const;

export function defineBackup(program: Command): void {
  const command = program
    .command("backup")
    .description("Back up the whole archive and verify the copy; `list` shows backups")
    .addArgument(new Argument("[list]", "show the backups beside the database").choices(["list"]))
    .option("--out <path>", "the folder to make, for a server the file (default: named by the time)")
    .option("--keep <n>", "afterwards keep only the newest n beside the database", parseKeep)
    .action(toAction(runBackup));
  addExamples(command, [
    ["lcm backup", "a new one beside the database"],
    ["lcm backup --keep 7", "and remove all but the newest seven"],
    ["lcm backup --out /mnt/disk/lcm-friday", "somewhere else"],
    ["lcm backup list", "list backups"],
    ["lcm backup --db postgres://lcm@db.example/archive", "an archive file of what is on a server"],
  ]);
  command.addHelpText(
    "after",
    `
A backup is a folder beside the database, with the database and every large file. It gets its name only after everything
in it has been verified. Agents can keep writing meanwhile. lcm restore puts one back.

Of an archive on a server, a backup is an archive file (.lcmx.zst) in the state directory of this machine, proven by
importing it on trial, which needs as much room again for a while. lcm import reads it into an empty database. Vectors and
the record of model usage are not in it.`,
  );
}

function parseKeep(text: string): number {
  const keep = Number(text);
  if (Number.isSafeInteger(keep) && keep >= 1 && text.trim() !== "") return keep;
  throw new InvalidArgumentError("It must be a whole number, 1 or more.");
}

async function runBackup(invocation: Invocation, options: BackupOptions, list?: string): Promise<void> {
  return list === undefined ? runCreate(invocation, options) : runList(invocation);
}

async function runCreate(invocation: Invocation, { out, keep }: BackupOptions): Promise<void> {
  if (out === "-")
    throw usageError(
      "cannot write a backup to standard output",
      "name a folder with --out; lcm export --out - writes an archive to standard output",
    );
  const { createBackup } = await import("lossless-claw/repair");
  const { settings } = await invocation.settings();
  const bars = new Map<string, ReturnType<typeof startProgress>>();
  const report = await invocation
    .withArchive(
      "read",
      (engine) =>
        createBackup({
          engine,
          databasePath: settings.databasePath,
          filesDir: settings.largeFilesDir,
          target: out === undefined ? undefined : resolve(out),
          keep,
          onProgress: (step, done, total) => {
            const bar = bars.get(step) ?? startProgress(STEPS[step], { isWanted: !invocation.isJson });
            bars.set(step, bar);
            bar.update(done, total);
          },
        }),
      { thread: true },
    )
    .finally(() => {
      for (const bar of bars.values()) bar.finish();
    });
  await invocation.print({ data: report, text: () => renderReport(report) });
}

function renderReport(report: BackupResult): string {
  const counts = `${countOf(report.messages, "message")}, ${countOf(report.files, "large file")}`;
  const lines = [
    `${style.good("ok")}  ${report.path}`,
    `    ${counts}, ${formatBytes(report.bytes)}: copied and verified`,
    ...report.removed.map((path) => style.faint(`    removed ${path}`)),
  ];
  return lines.join("\n");
}

async function runList(invocation: Invocation): Promise<void> {
  const { listBackups } = await import("@lossless/core/repair");
  const { settings } = await invocation.settings();
  const backups = listBackups(settings.databasePath);
  await invocation.print({
    data: { items: backups.map(toBackupJson) },
    text: () => renderList(backups, settings.databasePath, settings.timezone),
  });
}

const toBackupJson = (entry: BackupEntry): object => ({ ...entry, createdAt: toIso(entry.createdAt) });

function renderList(backups: readonly BackupEntry[], databasePath: string, timezone: string): string {
  if (backups.length === 0) return `No backups beside ${hidePassword(databasePath)}.`;
  return renderTable(
    [
      { title: "MADE" },
      { title: "SIZE", align: "right" },
      { title: "PATH", style: style.name, flexible: true },
    ],
    backups.map(({ path, createdAt, bytes }) => [formatTime(createdAt, timezone), formatBytes(bytes), path]),
    { maxWidth: terminalColumns(), styleTitle: style.faint },
  );
}

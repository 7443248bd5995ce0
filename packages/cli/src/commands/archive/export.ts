/** `lcm export`: conversations as an archive, as text for people, or as the database of another program. Never changes the archive. */
import { resolve } from "node:path";
import { Option } from "commander";
import type { Command } from "commander";
import { EXPORT_FORMATS } from "@lossless/interchange/names";
import type { ExportFormat } from "@lossless/interchange/names";
import type { ExportResult } from "@lossless/interchange";
import { runCancellable, toAction } from "../../invocation.ts";
import type { Invocation } from "../../invocation.ts";
import { countOf, formatBytes, toOneLine, usageError } from "@lossless/core/doors";
import { startProgress } from "../../progress.ts";
import { style } from "../../style.ts";
import { addExamples, parseConversationId, readTimeOption } from "../shared.ts";

interface ExportOptions {
  readonly format: ExportFormat;
  readonly out: string;
  readonly conversation?: number;
  readonly session?: string;
  readonly sessionFilter?: readonly string[];
  readonly since?: string;
  readonly dryRun?: boolean;
  readonly force?: boolean;
}

export function defineExport(program: Command): void {
  const command = program
    .command("export")
    .description("Export conversations to an archive, readable text, or another program's database")
    .requiredOption("--out <path>", "the file to write")
    .addOption(new Option("--format <name>", "what to write").choices(EXPORT_FORMATS).default("archive"))
    .addOption(new Option("--conversation <n>", "only this conversation").argParser(parseConversationId))
    .addOption(new Option("--session <key>", "only this session, by key or id").conflicts("conversation"))
    .option("--session-filter <id...>", "only these sessions, by id or key")
    .option("--since <time>", "only conversations with a message at this time or later, such as 2026-02-14")
    .option("--dry-run", "for remnic: dry run, write nothing")
    .option("--force", "overwrite an existing file")
    .action(toAction(runExport));
  command.addHelpText(
    "after",
    `
archive        everything, for lcm import: messages to the byte, large files, summaries, context. Compressed when the
               name ends in .zst. The format is open; docs/interchange.md describes it.
markdown, html what was said, to read
openai         one JSON object per conversation and line, with its messages
lossless-claw  a database in the documented schema
remnic         adds to a Remnic LCM database (state/lcm.sqlite)`,
  );
  addExamples(command, [
    ["lcm export --out all.lcmx.zst", "everything, to move or to keep"],
    ["lcm export --format html --conversation 3 --out talk.html", "one conversation as a page"],
    ["lcm export --format remnic --out ~/memory/state/lcm.sqlite --dry-run", "dry run"],
  ]);
}

async function runExport(invocation: Invocation, options: ExportOptions): Promise<void> {
  const { format, conversation, session, sessionFilter = [], dryRun, force } = options;
  if (dryRun && format !== "remnic") {
    throw usageError(
      "cannot run lcm export --dry-run: only remnic adds to something that is there",
      "Leave --dry-run out; an export changes nothing",
    );
  }
  const { settings } = await invocation.settings();
  const since = await readTimeOption(invocation, "--since", options.since);
  const { exportConversations } = await import("lossless-claw/interchange");
  const progress = startProgress("Exporting", { isWanted: !invocation.isJson });
  const report = await runCancellable(
    (signal) =>
      exportConversations({
        database: settings.databasePath,
        filesDir: settings.largeFilesDir,
        format,
        out: resolve(options.out),
        owner: invocation.owner,
        conversationIds: conversation === undefined ? undefined : [conversation],
        sessionFilter: session === undefined ? sessionFilter : [session, ...sessionFilter],
        since,
        dryRun,
        overwrite: force,
        signal,
        onProgress: ({ done, total }) => progress.update(done, total),
      }),
    { isPatient: true, what: "the export" },
  ).finally(() => progress.finish());
  await invocation.print({
    data: { format, ...report, dryRun: dryRun || undefined },
    text: () => renderReport(report, dryRun ?? false),
  });
}

function renderReport(report: ExportResult, dryRun: boolean): string {
  const size = report.bytes === 0 ? "" : `, ${formatBytes(report.bytes)}`;
  const counts = [
    countOf(report.conversations, "conversation"),
    countOf(report.messages, "message"),
    ...(report.summaries > 0
      ? [`${report.summaries} ${report.summaries === 1 ? "summary" : "summaries"}`]
      : []),
    ...(report.files > 0 ? [countOf(report.files, "file")] : []),
  ].join(", ");
  return `${style.good("ok")}  ${toOneLine(report.path)}: ${counts}${size}${dryRun ? " would be written" : ""}`;
}

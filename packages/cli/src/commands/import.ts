/**
 * `lcm import`: transcripts into the archive. Each file stands for itself: one that cannot be read is reported and the others go on.
 * Importing again adds only what is new, so a cancelled or failed import is repaired by running it again.
 */
import { stat } from "node:fs/promises";
import { Option } from "commander";
import type { Command } from "commander";
import { EngineError, ERROR_CODES } from "@lossless/core/model/errors.ts";
import type { FormatName } from "@lossless/core/transfer/format.ts";
import type { ImportReport, ImportTarget } from "@lossless/core/transfer/import.ts";
import { runCancellable, toAction } from "../context.ts";
import type { Invocation } from "../context.ts";
import { countOf, formatBytes, formatCount, toOneLine } from "../format.ts";
import { printNote } from "../output.ts";
import { startProgress } from "../progress.ts";
import type { Progress } from "../progress.ts";
import { style } from "../style.ts";
import { addExamples } from "./shared.ts";

interface ImportOptions {
  readonly format: FormatName | "auto";
  readonly session?: string;
  readonly dryRun?: boolean;
}

/** A file to import; `isNamed` when the person asked for this very file. */
interface Source {
  readonly path: string;
  readonly bytes: number;
  readonly isNamed: boolean;
}

interface ImportProblem {
  readonly code: string;
  readonly line: number;
  readonly message: string;
  readonly path: string;
}

const SHOWN_PROBLEMS = 20;

export function defineImport(program: Command): void {
  const command = program
    .command("import")
    .description("store transcripts of agents: files, or folders of *.jsonl files")
    .argument("<path...>", "files and folders")
    .addOption(
      new Option("--format <name>", "what the files are")
        .choices(["auto", "claude-code", "pi"])
        .default("auto"),
    )
    .option("--session <key>", "store under this session key instead of the file's own")
    .option("--dry-run", "read everything and say what would be stored; store nothing")
    .action(toAction(runImport));
  command.addHelpText(
    "after",
    `
Reads Claude Code sessions (claude-code) and OpenClaw or pi sessions (pi). Every line is kept byte for byte. Importing
a file again, or after it has grown, adds only what is new. Lines that cannot be read are kept, hidden and listed.`,
  );
  addExamples(command, [
    ["lcm import session.jsonl", "one file"],
    ["lcm import ~/.claude/projects", "every session below a folder"],
    ["lcm import ~/.claude/projects --dry-run", "look before you store"],
    ["lcm import old.jsonl --db archive.db --owner alice", "somebody's file into an archive of its own"],
  ]);
}

/** Counts what an import did, over all files. */
class Tally {
  imported = 0;
  skipped = 0;
  readonly conversations = new Set<number>();
  readonly problems: ImportProblem[] = [];
  readonly failures: EngineError[] = [];
  files = 0;

  add(report: ImportReport): void {
    this.files += 1;
    this.imported += report.imported + report.revisions;
    this.skipped += report.skipped;
    if (report.conversationId) this.conversations.add(report.conversationId);
    for (const problem of report.problems) this.problems.push({ ...problem, path: report.path });
    if (report.conversationId === 0) {
      const message =
        "nothing was stored: ignoreSessionPatterns or statelessSessionPatterns covers this session";
      this.problems.push({ code: "ignored_session", line: 0, message, path: report.path });
    }
  }

  refuse(path: string, error: EngineError, isNamed: boolean): void {
    if (isNamed) this.failures.push(error);
    this.problems.push({ code: "refused_file", line: 0, message: error.message, path });
  }
}

async function runImport(
  invocation: Invocation,
  options: ImportOptions,
  paths: readonly string[],
): Promise<void> {
  const { settings } = await invocation.settings();
  if (!settings.enabled) {
    throw new EngineError("config", "cannot import: storing is switched off (enabled: false)", {
      hint: "lcm config explain enabled says where that was set",
    });
  }
  const tally = new Tally();
  const sources = await listSources(paths, options, tally);
  // Nothing to read means nothing to create: a typing error must not leave an empty database behind.
  if (sources.length > 0) {
    await runCancellable(
      (signal) =>
        withTarget(invocation, options.dryRun ?? false, (target) =>
          importAll(target, invocation, { ...options, sources, tally, signal }),
        ),
      { isPatient: true, what: "the import" },
    );
  }
  const [failure] = tally.failures;
  if (failure !== undefined && tally.files === 0) throw failure;
  if (failure !== undefined) process.exitCode = ERROR_CODES.invalid_input.exit;
  const { imported, skipped, conversations, problems } = tally;
  await invocation.print({
    data: {
      imported,
      skipped,
      conversations: conversations.size,
      problems,
      ...(options.dryRun ? { dryRun: true } : {}),
    },
    text: () => renderTally(tally, options.dryRun ?? false),
  });
}

/** The archive, or with a dry run something that only looks like one. */
async function withTarget(
  invocation: Invocation,
  isDry: boolean,
  work: (target: ImportTarget) => Promise<void>,
): Promise<void> {
  if (!isDry) return invocation.withArchive("create", work, { thread: true });
  const { settings } = await invocation.settings();
  const { createDryTarget } = await import("./dry-run.ts");
  try {
    return await invocation.withArchive("read", (engine) => work(createDryTarget(engine, settings)));
  } catch (error) {
    if (!(error instanceof EngineError) || error.code !== "database_missing") throw error;
    return work(createDryTarget(null, settings));
  }
}

async function listSources(
  paths: readonly string[],
  { format }: ImportOptions,
  tally: Tally,
): Promise<Source[]> {
  const { listTranscripts } = await import("@lossless/core/transfer/detect.ts");
  const sources: Source[] = [];
  for (const path of paths) {
    try {
      const found = await listTranscripts(path);
      const isNamed = found.length === 1 && found[0] === path;
      if (isNamed && format === "auto") await checkTranscript(path);
      for (const file of found) sources.push({ path: file, bytes: (await stat(file)).size, isNamed });
    } catch (error) {
      if (!(error instanceof EngineError)) throw error;
      tally.refuse(path, error, true);
    }
  }
  return sources;
}

/** Refuses a file that is no transcript before anything is opened for it. */
async function checkTranscript(path: string): Promise<void> {
  const { detectFormat, openTranscript } = await import("@lossless/core/transfer/detect.ts");
  const transcript = await openTranscript(path);
  try {
    await detectFormat(transcript);
  } finally {
    await transcript.file.close();
  }
}

interface Work extends ImportOptions {
  readonly sources: readonly Source[];
  readonly tally: Tally;
  readonly signal: AbortSignal;
}

async function importAll(target: ImportTarget, invocation: Invocation, work: Work): Promise<void> {
  const progress = startProgress("Importing", { isWanted: !invocation.isJson });
  try {
    const total = work.sources.reduce((sum, source) => sum + source.bytes, 0);
    let before = 0;
    for (const source of work.sources) {
      const report = await importSource(target, invocation, work, source, { progress, before, total });
      before += source.bytes;
      if (report === null) continue;
      work.tally.add(report);
      if (!invocation.isJson && !process.stderr.isTTY)
        printNote(describeReport(report, work.dryRun ?? false));
    }
  } finally {
    progress.finish();
  }
}

async function importSource(
  target: ImportTarget,
  { owner }: Invocation,
  { format, session, signal, tally }: Work,
  { path, isNamed }: Source,
  { progress, before, total }: { progress: Progress; before: number; total: number },
): Promise<ImportReport | null> {
  const { importTranscript } = await import("@lossless/core/transfer/import.ts");
  try {
    return await importTranscript({
      engine: target,
      path,
      format,
      owner,
      sessionKey: session,
      signal,
      onProgress: ({ bytesDone }) =>
        progress.update(
          before + bytesDone,
          total,
          `${formatBytes(before + bytesDone)} of ${formatBytes(total)}`,
        ),
    });
  } catch (error) {
    if (!(error instanceof EngineError) || !isAboutTheFile(error)) throw error;
    tally.refuse(path, error, isNamed);
    return null;
  }
}

const isAboutTheFile = ({ code }: EngineError): boolean => code === "invalid_input" || code === "not_found";

function describeReport(report: ImportReport, isDry: boolean): string {
  const { path, imported, revisions, skipped, conversationId } = report;
  const where = conversationId === null || isDry ? "" : `, conversation ${conversationId}`;
  return `${toOneLine(path)}: ${formatCount(imported + revisions)} ${isDry ? "new" : "stored"}, ${formatCount(skipped)} known before${where}`;
}

function renderTally(
  { imported, skipped, conversations, files, problems, failures }: Tally,
  isDry: boolean,
): string {
  const mark = failures.length === 0 ? style.good("ok") : style.warning("partly");
  const summary = `${mark}  ${countOf(files, "file")}: ${countOf(imported, "message")} ${isDry ? "would be stored" : "stored"}, ${formatCount(skipped)} known before, in ${countOf(conversations.size, "conversation")}`;
  if (problems.length === 0) return summary;
  const shown = problems.slice(0, SHOWN_PROBLEMS).map(renderProblem);
  const more = problems.length - shown.length;
  return [
    summary,
    "",
    `${countOf(problems.length, "problem")}:`,
    ...shown,
    ...(more > 0 ? [style.faint(`and ${formatCount(more)} more: --json lists them all`)] : []),
  ].join("\n");
}

function renderProblem({ code, path, line, message }: ImportProblem): string {
  const place = line > 0 ? `${toOneLine(path)}:${line}` : toOneLine(path);
  return `  ${style.warning(code)}  ${code === "refused_file" ? toOneLine(message) : `${place}  ${toOneLine(message)}`}`;
}

/**
 * `lcm import`: imports transcripts into the archive. Each file is independent: an unreadable one is reported and the others are imported.
 * Importing again adds only what is new, so run a cancelled or failed import again.
 */
import { mkdtemp, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setFlagsFromString } from "node:v8";
import { Option } from "commander";
import type { Command } from "commander";
import { EngineError, ERROR_CODES, makeImportId } from "@lossless/core";
import { FORMAT_NAMES } from "@lossless/interchange/names";
import type { FormatName } from "@lossless/interchange/names";
import type {
  HistoryKind,
  HistoryResult,
  ImportResult,
  ImportTarget,
  PrepareAhead,
} from "@lossless/interchange";
import { runCancellable, toAction } from "../../invocation.ts";
import type { Invocation } from "../../invocation.ts";
import { countOf, formatBytes, formatCount, toOneLine } from "@lossless/core/doors";
import { printNote } from "../../output.ts";
import { startProgress } from "../../progress.ts";
import type { Progress } from "../../progress.ts";
import { style } from "../../style.ts";
import { addExamples, readTimeOption } from "../shared.ts";

interface ImportOptions {
  readonly format: FormatName | "auto";
  readonly session?: string;
  readonly sessionFilter?: readonly string[];
  readonly since?: string;
  readonly dryRun?: boolean;
}

/** A file to import; `isNamed` when the user named this very file. */
interface Source {
  readonly path: string;
  readonly bytes: number;
  readonly isNamed: boolean;
  /** Set for a file with whole histories. */
  readonly history: HistoryKind | null;
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
    .description("Import transcripts of agents, archives, and databases of other lossless-claw programs")
    .argument("<path...>", "files and folders")
    .addOption(
      new Option("--format <name>", "what the files are").choices(["auto", ...FORMAT_NAMES]).default("auto"),
    )
    .option("--session <key>", "store under this session key instead of the file's own")
    .option("--session-filter <id...>", "only these sessions, by id or key")
    .option("--since <time>", "only what was changed at this time or later, such as 2026-02-14")
    .option("--dry-run", "dry run: read everything, store nothing")
    .action(toAction(runImport));
  addExamples(command, [
    ["lcm import session.jsonl", "one file"],
    ["lcm import ~/.claude/projects", "every session below a folder"],
    ["lcm import ~/.claude/projects --dry-run", "dry run"],
    ["lcm import ~/.local/share/opencode/storage", "all sessions of OpenCode"],
    ["lcm import backup.lcmx.zst", "an archive, summaries included"],
    ["lcm import old-lcm.db", "the database of another lossless-claw; it is only read"],
    ["lcm import old.jsonl --db archive.db --owner alice", "another person's file into a separate archive"],
  ]);
  command.addHelpText(
    "after",
    `
Keeps every line byte for byte. Importing again, or after a file has grown, adds only what is new. Lines that cannot be
read are kept, hidden and listed; files that cannot be read are named.

Reads sessions of Claude Code, OpenClaw, pi, Codex, Gemini CLI, OpenCode (its storage folder), Hermes, SWE-agent, Qwen,
Kimi, Droid, Copilot, Cursor, Grok and Antigravity; OpenAI messages; archives (.lcmx, .lcmx.zst); and databases of
lossless-claw 0.1 to 1.0.`,
  );
}

/** Counts what an import did, over all files. */
class Tally {
  imported = 0;
  skipped = 0;
  summaries = 0;
  readonly conversations = new Set<number>();
  readonly problems: ImportProblem[] = [];
  readonly failures: EngineError[] = [];
  files = 0;
  /** Lines of the hosts that are not messages. */
  readonly housekeeping = { lines: 0, bytes: 0, storedBytes: 0 };

  add(report: ImportResult): void {
    this.files += 1;
    const { lines, bytes, storedBytes } = report.housekeeping ?? { lines: 0, bytes: 0, storedBytes: 0 };
    this.housekeeping.lines += lines;
    this.housekeeping.bytes += bytes;
    this.housekeeping.storedBytes += storedBytes;
    this.imported += report.imported + report.revisions;
    this.skipped += report.skipped;
    for (const id of report.conversationIds ?? [report.conversationId]) if (id) this.conversations.add(id);
    for (const problem of report.problems) this.problems.push({ ...problem, path: report.path });
    if (report.conversationId === 0) {
      const message =
        "nothing was stored: ignoreSessionPatterns or statelessSessionPatterns covers this session";
      this.problems.push({ code: "ignored_session", line: 0, message, path: report.path });
    }
  }

  addHistory(report: HistoryResult): void {
    this.files += 1;
    this.imported += report.imported + report.revisions;
    this.skipped += report.skipped;
    this.summaries += report.summaries;
    for (const id of report.conversationIds) this.conversations.add(id);
    for (const problem of report.problems) this.problems.push({ ...problem, path: report.path });
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
  const since = await readTimeOption(invocation, "--since", options.since);
  boundMemory();
  const tally = new Tally();
  const sources = await listSources(paths, options, tally);
  const shared = { ...options, since, tally, importId: makeImportId() };
  // Nothing to read means nothing to create: a typo must not leave an empty database behind.
  const transcripts = sources.filter((source) => source.history === null);
  const histories = sources.filter((source) => source.history !== null);
  await runCancellable(
    async (signal) => {
      if (histories.length > 0) await importHistories(invocation, { ...shared, sources: histories, signal });
      if (transcripts.length === 0) return;
      await withTarget(invocation, options.dryRun ?? false, (target) =>
        importAll(target, invocation, { ...shared, sources: transcripts, signal }),
      );
    },
    { isPatient: true, what: "the import" },
  );
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
      housekeeping: tally.housekeeping.lines === 0 ? undefined : tally.housekeeping,
      summaries: tally.summaries || undefined,
      dryRun: options.dryRun || undefined,
    },
    text: () => renderTally(tally, options.dryRun ?? false),
  });
}

/**
 * An import produces garbage faster than anything else here, and V8 reacts by growing its heaps: 300 to 400 MB for any large file. With a
 * nursery of its initial size and an old space that grows in small steps, the same work takes about half the memory. Threads that start later
 * are limited too; the nursery of the engine's thread is large enough that most of a batch dies in it.
 */
function boundMemory(): void {
  setFlagsFromString("--semi-space-growth-factor=1");
  setFlagsFromString("--heap-growing-percent=10");
  setFlagsFromString("--min-semi-space-size=2");
}

/** The archive, or the target of a dry run. */
async function withTarget(
  invocation: Invocation,
  dryRun: boolean,
  work: (target: ImportTarget) => Promise<void>,
): Promise<void> {
  if (!dryRun) return invocation.withArchive("create", work, { thread: true });
  const { settings } = await invocation.settings();
  const { createDryTarget } = await import("@lossless/interchange");
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
  const { detectHistory, listTranscripts } = await import("@lossless/interchange");
  const sources: Source[] = [];
  for (const path of paths) {
    try {
      const found = await listTranscripts(path);
      const isNamed = found.length === 1 && found[0] === path;
      for (const file of found) {
        const stats = await stat(file);
        const isLookedAt = stats.isFile() && format === "auto";
        const history = isLookedAt
          ? await refuseUnreadable(() => detectHistory(file), file, isNamed, tally)
          : null;
        if (history === "refused") continue;
        if (isNamed && isLookedAt && history === null) await checkTranscript(file);
        sources.push({ path: file, bytes: stats.size, isNamed, history });
      }
    } catch (error) {
      if (!(error instanceof EngineError)) throw error;
      tally.refuse(path, error, true);
    }
  }
  return sources;
}

/** Reports an unreadable file; the others of its folder are imported. */
async function refuseUnreadable<T>(
  look: () => Promise<T>,
  path: string,
  isNamed: boolean,
  tally: Tally,
): Promise<T | "refused"> {
  try {
    return await look();
  } catch (error) {
    if (!(error instanceof EngineError) || !isAboutTheFile(error)) throw error;
    tally.refuse(path, error, isNamed);
    return "refused";
  }
}

/** Refuses a file that is not a transcript before anything is opened for it. */
async function checkTranscript(path: string): Promise<void> {
  const { detectFormat, holdsSessionLines, isDocumentName, isOpenCodeDatabase, openTranscript } =
    await import("@lossless/interchange");
  if (isOpenCodeDatabase(path)) return;
  const transcript = await openTranscript(path);
  try {
    if (!isDocumentName(path) && !(await holdsSessionLines(transcript))) await detectFormat(transcript);
  } finally {
    await transcript.file.close();
  }
}

/** Whole histories bypass the engine. A dry run imports them into a temporary copy of the archive. */
async function importHistories(
  invocation: Invocation,
  { sources, tally, signal, ...options }: Work,
): Promise<void> {
  const { copyForTrial, importHistory } = await import("lossless-claw/interchange");
  const { settings } = await invocation.settings();
  if (!options.dryRun) await invocation.prepareArchive("create");
  const scratch = options.dryRun ? await mkdtemp(join(tmpdir(), "lcm-dry-")) : null;
  const progress = startProgress("Importing", { isWanted: !invocation.isJson });
  try {
    const archive = { database: settings.databasePath, filesDir: settings.largeFilesDir };
    const location = scratch === null ? archive : await copyForTrial(archive, scratch);
    for (const { path, history, isNamed } of sources) {
      if (history === null) continue;
      const report = await importHistory(history, {
        ...location,
        path,
        owner: invocation.owner,
        sessionFilter: options.sessionFilter,
        since: options.since,
        largeFileThresholdTokens: settings.largeFileThresholdTokens,
        settings,
        importId: options.importId,
        signal,
        onProgress: ({ bytesDone, bytesTotal }) => progress.update(bytesDone, bytesTotal),
      }).catch((error: unknown) => {
        if (!(error instanceof EngineError) || !isAboutTheFile(error)) throw error;
        tally.refuse(path, error, isNamed);
        return null;
      });
      if (report !== null) tally.addHistory(report);
    }
  } finally {
    progress.finish();
    if (scratch !== null) await rm(scratch, { recursive: true, force: true });
  }
}

interface Work extends Omit<ImportOptions, "since"> {
  readonly importId: string;
  /** ms UTC. */
  readonly since: number | undefined;
  readonly sources: readonly Source[];
  readonly tally: Tally;
  readonly signal: AbortSignal;
}

async function importAll(target: ImportTarget, invocation: Invocation, work: Work): Promise<void> {
  const progress = startProgress("Importing", { isWanted: !invocation.isJson });
  const prepareAhead = work.dryRun ? undefined : await loadPreparer(invocation);
  try {
    const total = work.sources.reduce((sum, source) => sum + source.bytes, 0);
    let before = 0;
    for (const source of work.sources) {
      const report = await importSource(target, invocation, work, source, {
        progress,
        before,
        total,
        prepareAhead,
      });
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

interface ImportSituation {
  readonly progress: Progress;
  /** Bytes of the files before this one, and of all. */
  readonly before: number;
  readonly total: number;
  readonly prepareAhead: PrepareAhead | undefined;
}

async function loadPreparer(invocation: Invocation): Promise<PrepareAhead | undefined> {
  const { createPreparer } = await import("@lossless/interchange");
  return createPreparer((await invocation.settings()).settings);
}

async function importSource(
  target: ImportTarget,
  { owner }: Invocation,
  { format, session, signal, tally, sessionFilter, since, importId }: Work,
  { path, isNamed }: Source,
  { progress, before, total, prepareAhead }: ImportSituation,
): Promise<ImportResult | null> {
  const { importTranscript } = await import("@lossless/interchange");
  try {
    return await importTranscript({
      engine: target,
      path,
      format,
      owner,
      sessionKey: session,
      sessionFilter,
      since,
      importId,
      signal,
      prepareAhead,
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

function describeReport(report: ImportResult, dryRun: boolean): string {
  const { path, imported, revisions, skipped, conversationId } = report;
  const where = conversationId === null || dryRun ? "" : `, conversation ${conversationId}`;
  return `${toOneLine(path)}: ${formatCount(imported + revisions)} ${dryRun ? "new" : "stored"}, ${formatCount(skipped)} known before${where}`;
}

function renderTally(
  { imported, skipped, conversations, files, problems, failures, housekeeping }: Tally,
  dryRun: boolean,
): string {
  const mark = failures.length === 0 ? style.good("ok") : style.warning("partly");
  const stored = `${mark}  ${countOf(files, "file")}: ${countOf(imported, "message")} ${dryRun ? "would be stored" : "stored"}, ${formatCount(skipped)} known before, in ${countOf(conversations.size, "conversation")}`;
  const { lines, bytes, storedBytes } = housekeeping;
  const summary =
    lines === 0
      ? stored
      : `${stored}\n    ${style.faint(`${countOf(lines, "line")} of housekeeping of the agent, not messages: ${formatBytes(bytes)}, hidden, about ${formatBytes(storedBytes)} on disk`)}`;
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
  const location = line > 0 ? `${toOneLine(path)}:${line}` : toOneLine(path);
  return `  ${style.warning(code)}  ${code === "refused_file" ? toOneLine(message) : `${location}  ${toOneLine(message)}`}`;
}

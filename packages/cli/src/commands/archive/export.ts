/**
 * `lcm export`: conversations as an archive, as text or a page for people, or as the database of another program. Never changes the archive. A
 * page is meant to be sent, so the user first sees what is redacted: it is a dry run unless `--apply` is given.
 */
import { mkdtemp, open, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { Option } from "commander";
import type { Command } from "commander";
import { EXPORT_FORMATS } from "@lossless/interchange/names";
import type { ExportFormat } from "@lossless/interchange/names";
import type { ExportResult, PageResult } from "@lossless/interchange";
import { runCancellable, toAction } from "../../invocation.ts";
import type { Invocation } from "../../invocation.ts";
import { countOf, formatBytes, toOneLine, usageError } from "@lossless/core/doors";
import { printNote, writeBytes } from "../../output.ts";
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
  readonly apply?: boolean;
  readonly redact: boolean;
  readonly housekeeping: boolean;
  readonly force?: boolean;
}

const STDOUT = "-";
const DATABASES: ReadonlySet<ExportFormat> = new Set(["lossless-claw", "remnic"]);

export function defineExport(program: Command): void {
  const command = program
    .command("export")
    .description("Export conversations to an archive, readable text, or another program's database")
    .requiredOption("--out <path>", "the file to write; - for standard output")
    .addOption(new Option("--format <name>", "what to write").choices(EXPORT_FORMATS).default("archive"))
    .addOption(new Option("--conversation <n>", "only this conversation").argParser(parseConversationId))
    .addOption(new Option("--session <key>", "only this session, by key or id").conflicts("conversation"))
    .option("--session-filter <id...>", "only these sessions, by id or key")
    .option("--since <time>", "only conversations with a message at this time or later, such as 2026-02-14")
    .option("--apply", "for html: write the page; without this, dry run")
    .option("--no-redact", "for html: keep what looks like a secret")
    .option("--no-housekeeping", "for html: leave out lines that the agent's program wrote for itself")
    .option("--dry-run", "for remnic: dry run, write nothing")
    .option("--force", "overwrite an existing file")
    .action(toAction(runExport));
  addExamples(command, [
    ["lcm export --out all.lcmx.zst", "everything, to move or to keep"],
    ["lcm export --format html --conversation 3 --out talk.html", "what a page would hold and redact"],
    ["lcm export --format html --conversation 3 --out talk.html --apply", "write the page"],
    ["lcm export --format markdown --conversation 3 --out - | less", "read it in another program"],
    ["lcm export --format remnic --out ~/memory/state/lcm.sqlite --dry-run", "dry run"],
  ]);
  command.addHelpText(
    "after",
    `
  archive        everything, for lcm import: messages to the byte, large files, summaries, context; compressed when
                 the name ends in .zst
  markdown       what was said, to read
  html           one page to read, send or print: searchable, with calls, results and changed lines. Secrets are
                 redacted by the built-in patterns and your redactPatterns: see which without --apply
  openai         one JSON object per conversation and line, with its messages
  lossless-claw  a database in the documented schema
  remnic         adds to a Remnic LCM database (state/lcm.sqlite)

An export never changes the archive. docs/interchange.md describes the formats.`,
  );
}

type Report = ExportResult & Partial<PageResult>;

const isDryRun = ({ format, apply = false, dryRun = false }: ExportOptions): boolean =>
  format === "html" ? !apply : dryRun;

async function runExport(invocation: Invocation, options: ExportOptions): Promise<void> {
  checkOptions(options, invocation.isJson);
  const dryRun = isDryRun(options);
  const report =
    options.out === STDOUT
      ? await writeToStdout(invocation, options)
      : await writeTo(resolve(options.out), invocation, options);
  const text = (): string =>
    [
      renderReport(report, dryRun),
      ...(options.format === "html" ? renderPage(report, options.apply ?? false) : []),
    ].join("\n");
  // Standard output has the export.
  if (options.out === STDOUT && !dryRun) return printNote(text());
  await invocation.print({ data: { format: options.format, ...report, dryRun: dryRun || undefined }, text });
}

/**
 * By way of a file: an export that fails halfway writes nothing. The file is removed before it is passed on, because the reader may end the
 * program at any time.
 */
async function writeToStdout(invocation: Invocation, options: ExportOptions): Promise<Report> {
  const folder = await mkdtemp(join(tmpdir(), "lcm-export-"));
  const remove = (): Promise<void> => rm(folder, { recursive: true, force: true });
  try {
    const path = join(folder, "export");
    const report = await writeTo(path, invocation, options);
    if (!isDryRun(options)) {
      const file = await open(path);
      // Windows keeps an open file: it is removed below.
      await remove().catch(() => undefined);
      for await (const chunk of file.createReadStream()) await writeBytes(chunk as Uint8Array);
    }
    return { ...report, path: "standard output" };
  } finally {
    await remove();
  }
}

async function writeTo(out: string, invocation: Invocation, options: ExportOptions): Promise<Report> {
  const { format, conversation, session, sessionFilter = [], force } = options;
  const { settings } = await invocation.settings();
  const since = await readTimeOption(invocation, "--since", options.since);
  const { exportConversations } = await import("lossless-claw/interchange");
  const progress = startProgress("Exporting", { isWanted: !invocation.isJson });
  return runCancellable(
    (signal) =>
      exportConversations({
        database: settings.databasePath,
        filesDir: settings.largeFilesDir,
        format,
        out,
        owner: invocation.owner,
        conversationIds: conversation === undefined ? undefined : [conversation],
        sessionFilter: session === undefined ? sessionFilter : [session, ...sessionFilter],
        since,
        dryRun: isDryRun(options),
        overwrite: force,
        redactPatterns: options.redact ? settings.redactPatterns : null,
        keepHousekeeping: options.housekeeping,
        timezone: settings.timezone,
        signal,
        onProgress: ({ done, total }) => progress.update(done, total),
      }),
    { isPatient: true, what: "the export" },
  ).finally(() => progress.finish());
}

function checkOptions(
  { dryRun, apply, format, redact, housekeeping, out }: ExportOptions,
  isJson: boolean,
): void {
  if (out === STDOUT && DATABASES.has(format))
    throw usageError(`cannot write a ${format} database to standard output`, "Name a file with --out");
  if (out === STDOUT && isJson)
    throw usageError(
      "cannot write both the export and its JSON report to standard output",
      "Leave out --json, or name a file with --out",
    );
  if (dryRun && apply)
    throw usageError("cannot run lcm export with --dry-run and --apply", "Give one of them");
  if (dryRun && format !== "remnic" && format !== "html") {
    throw usageError(
      `cannot run lcm export --dry-run for ${format}: it only writes a new file`,
      "Leave --dry-run out; an export changes nothing",
    );
  }
  // A user who gives one of them to another format believes that it redacts.
  const [name] = [apply && "--apply", !redact && "--no-redact", !housekeeping && "--no-housekeeping"].filter(
    (given) => typeof given === "string",
  );
  if (format !== "html" && name !== undefined)
    throw usageError(
      `cannot run lcm export ${name} for ${format}: only html redacts, and is written with --apply`,
      `Leave ${name} out, or add --format html`,
    );
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

/** Places listed for each kind; the others are counted. */
const SHOWN_PLACES = 8;

/** What a page redacts, by kind and place, and the next step. */
function renderPage({ housekeeping = 0, redacted = [] }: Partial<PageResult>, isWritten: boolean): string[] {
  const kinds = [...new Set(redacted.map(({ kind }) => kind))];
  const values = redacted.reduce((sum, { count }) => sum + count, 0);
  const hidden = `${countOf(housekeeping, "line")} of housekeeping, hidden until the reader asks; --no-housekeeping leaves them out`;
  return [
    ...(housekeeping === 0 ? [] : [`    ${hidden}`]),
    `${values === 0 ? "nothing" : countOf(values, "value")} ${isWritten ? "redacted" : "would be redacted"}${values === 0 ? "" : ":"}`,
    ...kinds.map((kind) => renderKind(redacted.filter((place) => place.kind === kind))),
    "Patterns know only common shapes of secrets: read the page before you send it.",
    ...(isWritten ? [] : ["Nothing was written. Add --apply to write the page."]),
  ];
}

function renderKind(places: NonNullable<PageResult["redacted"]>): string {
  const count = places.reduce((sum, place) => sum + place.count, 0);
  const named = places
    .slice(0, SHOWN_PLACES)
    .map(({ messageId, conversationId, part }) =>
      messageId === null
        ? `${part} of conversation ${conversationId}`
        : `msg_${messageId} (${part.replace("_", " ")})`,
    );
  const rest = places.length - named.length;
  return `    ${places[0]?.kind ?? ""}  ${count}  ${named.join(", ")}${rest > 0 ? `, and ${countOf(rest, "more place")}` : ""}`;
}

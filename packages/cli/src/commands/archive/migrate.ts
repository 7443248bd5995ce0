/** `lcm migrate`: copies an archive from one database to another, continues after a kill, and compares both sides at the end. */
import type { Command } from "commander";
import { settleAddress } from "@lossless/core";
import type { ArchiveLocation, MigrateProgress, MigrateResult } from "@lossless/interchange";
import { countOf, formatCount, toOneLine } from "@lossless/core/doors";
import { runCancellable, toAction } from "../../invocation.ts";
import type { Invocation } from "../../invocation.ts";
import { countNote, startProgress } from "../../progress.ts";
import type { Progress } from "../../progress.ts";
import { style } from "../../style.ts";
import { addExamples } from "../shared.ts";

interface Options {
  readonly dryRun?: boolean;
  readonly skipExisting?: boolean;
}

const STEPS = { copy: "Copying", compare: "Comparing", verify: "Verifying" } as const;
const SHOWN_KEYS = 10;

export function defineMigrate(program: Command): void {
  const command = program
    .command("migrate")
    .description("Copy an archive to another database, and compare both")
    .argument("<from>", "path or postgres:// address of the archive to copy")
    .argument("<to>", "path or postgres:// address to copy it to; a file is made, a database must exist")
    .option("--dry-run", "dry run, write nothing")
    .option("--skip-existing", "leave out conversations that the target has already")
    .action(toAction(runMigrate));
  addExamples(command, [
    ["lcm migrate lcm.db postgres://lcm@db.example/archive", "from a file to a server"],
    ["lcm migrate postgres://lcm@db.example/archive ~/lcm-copy.db", "and back"],
    ["lcm migrate lcm.db other.db --dry-run", "what would be copied"],
  ]);
  command.addHelpText(
    "after",
    `
The source is only read, as it is at the start; agents can keep using both archives. At the end both sides are compared
record by record and the target is verified. After a kill or Ctrl-C run the same command again: it continues, and also
copies what was stored since. To use the target from then on: lcm config set databasePath TO.

Copied: conversations with messages, large files, summaries, context, sealed values and turns. Not copied: vectors (lcm
embed run makes them again), the record of model usage, debts, grants, and what a fork shows of its parent.

A target that has one of the conversations from elsewhere is refused before anything is written, unless you pass
--skip-existing.`,
  );
}

async function runMigrate(invocation: Invocation, options: Options, from: string, to: string): Promise<void> {
  const { migrate } = await import("lossless-claw/interchange");
  const [source, target] = [await locate(invocation, from), await locate(invocation, to)];
  const bars = new Map<string, Progress>();
  const onProgress = ({ step, done, total }: MigrateProgress): void => {
    const bar = bars.get(step) ?? startProgress(STEPS[step], { isWanted: !invocation.isJson });
    bars.set(step, bar);
    bar.update(done, total, countNote(done, total, step === "verify" ? "messages" : "rows"));
  };
  const result = await runCancellable(
    (signal) => migrate({ ...options, from: source, to: target, signal, onProgress }),
    { isPatient: true, isService: true, what: "the migration" },
  ).finally(() => {
    for (const bar of bars.values()) bar.finish();
  });
  await invocation.print({ data: { ...result }, text: () => renderResult(result) });
}

/** The configured folder of large files belongs to the configured archive. */
async function locate(invocation: Invocation, database: string): Promise<ArchiveLocation> {
  const { settings } = await invocation.settings();
  const isOwn = settleAddress(database) === settleAddress(settings.databasePath);
  return isOwn ? { database, filesDir: settings.largeFilesDir } : { database };
}

function renderResult(result: MigrateResult): string {
  const { conversations, messages, summaries, files, presentBefore, leftOut, compared, dryRun } = result;
  const counts = [
    countOf(conversations, "conversation"),
    countOf(messages, "message"),
    countOf(summaries, "summary", "summaries"),
    ...(dryRun ? [] : [countOf(files, "large file")]),
  ].join(", ");
  const lines = [
    dryRun
      ? `Dry run: ${counts} would be copied; nothing was written`
      : `${style.good("ok")}  ${counts} copied`,
  ];
  if (presentBefore > 0) lines.push(`    ${countOf(presentBefore, "conversation")} had been copied before`);
  if (!dryRun)
    lines.push(`    ${formatCount(compared)} records are equal on both sides; the target is verified`);
  const lost = listNotCopied(result.notCopied);
  if (lost.length > 0) lines.push(`    not copied: ${lost.join(", ")}`);
  if (leftOut.length > 0) lines.push(`    left out, because the target has them: ${nameKeys(leftOut)}`);
  return lines.join("\n");
}

const listNotCopied = ({ vectors, modelCalls, debts }: MigrateResult["notCopied"]): string[] => [
  ...(vectors > 0 ? [`${countOf(vectors, "vector")} (lcm embed run makes them again)`] : []),
  ...(modelCalls > 0 ? [`the record of ${countOf(modelCalls, "model call")}`] : []),
  ...(debts > 0 ? [`${countOf(debts, "fold")} that are owed (the next turn notes them again)`] : []),
];

function nameKeys(keys: readonly string[]): string {
  const more = keys.length > SHOWN_KEYS ? ` and ${formatCount(keys.length - SHOWN_KEYS)} more` : "";
  return `${keys.slice(0, SHOWN_KEYS).map(toOneLine).join(", ")}${more}`;
}

/** `lcm doctor`: reports all problems, with the command that fixes each. With `--fix` it fixes what is safe to fix. */
import { countOf, formatCount, SHELL_WORDS, toOneLine } from "@lossless/core/doors";
import { ERROR_CODES, wordStep } from "@lossless/core";
import type { Engine } from "@lossless/core";
import type { DoctorOptions, DoctorResult, Finding, MendResult } from "@lossless/core/repair";
import type { Command } from "commander";
import { toAction } from "../../invocation.ts";
import type { Invocation } from "../../invocation.ts";
import { countNote, startProgress } from "../../progress.ts";
import { style } from "../../style.ts";
import { defineDoctorImports } from "./doctor-imports.ts";
import { addExamples } from "../shared.ts";

interface Options {
  readonly fix?: boolean;
  readonly apply?: boolean;
}

export function defineDoctor(program: Command): void {
  const command = program
    .command("doctor")
    .description("Check everything, and show how to fix each problem")
    .option("--fix", "fix what is safe to fix, after a backup")
    .option("--apply", "the same as --fix")
    .action(toAction(runDoctor));
  addExamples(command, [
    ["lcm doctor", "list problems"],
    ["lcm doctor --fix", "fix what can be fixed without a model"],
    ["lcm doctor --json | jq '.data.findings[].mend'", "the fixing commands, for a program"],
  ]);
  command.addHelpText(
    "after",
    `
Checks the proof of the archive (as lcm verify does), the index, summaries, due folds, paused models, large files,
permissions, versions, settings and backups. Without --fix it is a dry run.

With --fix it makes a backup, rebuilds the index, makes files private, removes files that no message names, closes what
ended conversations owe, and finishes a forgetting. Summaries that do not verify are removed with those above them, after
a copy of the archive as it is. Messages are never changed. What needs a model is only listed, with its cost.

Ends with status ${ERROR_CODES.verification_failed.exit} when an error is left.`,
  );
  defineDoctorImports(command);
}

interface DoctorOutput {
  readonly report: DoctorResult;
  readonly mended: MendResult | null;
}

async function runDoctor(invocation: Invocation, { apply = false, fix = apply }: Options): Promise<void> {
  const progress = startProgress("Checking", { isWanted: !invocation.isJson });
  const modelProblem = await findModelProblem(invocation);
  const { report, mended } = await invocation
    .withArchive(
      fix ? "change" : "read",
      async (engine) => {
        const options = await buildOptions(invocation, engine, modelProblem, (done, total) =>
          progress.update(done, total, countNote(done, total, "messages")),
        );
        return treat(options, fix);
      },
      { thread: true },
    )
    .finally(() => progress.finish());
  if (!report.ok) process.exitCode = ERROR_CODES.verification_failed.exit;
  const { ok, findings, counts, cost } = report;
  await invocation.print({
    data: {
      ok,
      counts,
      cost,
      findings: findings.map(toFindingJson),
      ...(mended === null
        ? {}
        : {
            backupPath: mended.backupPath,
            copyPath: mended.copyPath,
            mended: mended.mended.map(toFindingJson),
          }),
    },
    text: () => renderOutcome({ report, mended }),
  });
}

async function treat(options: DoctorOptions, fix: boolean): Promise<DoctorOutput> {
  const { examine, mend } = await import("lossless-claw/repair");
  const report = await examine(options);
  if (!fix || !report.findings.some((finding) => finding.fix !== undefined)) {
    return { report, mended: fix ? { backupPath: null, copyPath: null, mended: [] } : null };
  }
  const mended = await mend(options, report.findings);
  return { report: await examine(options), mended };
}

export async function buildOptions(
  invocation: Invocation,
  engine: Engine,
  modelProblem: string | null,
  onProgress: (done: number, total: number) => void,
): Promise<DoctorOptions> {
  const { settings, replaced: replacedSettings } = await invocation.settings();
  const { databasePath, largeFilesDir: filesDir } = settings;
  return { engine, settings, databasePath, filesDir, modelProblem, replacedSettings, onProgress };
}

/** Why the first model of the settings cannot be used; nothing is sent to find out. */
export async function findModelProblem(invocation: Invocation): Promise<string | null> {
  const { settings, locations } = await invocation.settings();
  const { listCandidates } = await import("@lossless/core");
  const { findEndpoint } = await import("@lossless/models");
  const first = listCandidates(settings)[0];
  if (first === undefined || first === null) return null;
  const endpoint = await findEndpoint(first, { env: process.env, stateDir: locations.stateDir });
  return "kind" in endpoint ? endpoint.message : null;
}

const toFindingJson = ({ code, severity, id, message, step, fix, cost }: Finding): object => ({
  code,
  severity,
  id,
  message,
  mend: step === null ? null : wordStep(step, SHELL_WORDS),
  isSafeToFix: fix !== undefined,
  cost,
});

const PAINT = { error: style.bad, warning: style.warning, info: style.faint };
/** More of one kind are counted, not listed. */
const SHOWN_OF_A_KIND = 8;

function renderOutcome({ report, mended }: DoctorOutput): string {
  const { findings, counts, cost } = report;
  const blocks: string[] = [];
  if (mended !== null) blocks.push(renderMended(mended));
  const total = `${countOf(counts.error, "error")}, ${countOf(counts.warning, "warning")}, ${countOf(counts.info, "note")}`;
  const isGood = counts.error + counts.warning === 0;
  blocks.push(isGood ? `${style.good("ok")}  ${total}` : `${style.warning("look")}  ${total}`);
  const lines = renderFindings(findings);
  if (lines.length > 0) blocks.push(lines.join("\n"));
  if (cost.inputTokens > 0) {
    const read = formatCount(cost.inputTokens);
    const written = formatCount(cost.outputTokens);
    blocks.push(
      `Regenerating those summaries with a model takes about ${read} tokens in and ${written} out.`,
    );
  }
  if (mended === null && findings.some((finding) => finding.fix !== undefined)) {
    blocks.push("lcm doctor --fix fixes what is marked with +, after a backup.");
  }
  return blocks.join("\n\n");
}

function renderFindings(findings: readonly Finding[]): string[] {
  const seen = new Map<string, number>();
  const lines: string[] = [];
  for (const { code, severity, message, step, fix } of findings) {
    const count = (seen.get(code) ?? 0) + 1;
    seen.set(code, count);
    if (count > SHOWN_OF_A_KIND) continue;
    lines.push(
      `${fix === undefined ? " " : "+"} ${PAINT[severity](severity.padEnd(7))}  ${style.name(code)}  ${toOneLine(message)}`,
      ...(step === null ? [] : [style.faint(`             ${toOneLine(wordStep(step, SHELL_WORDS))}`)]),
    );
  }
  for (const [code, count] of seen) {
    if (count > SHOWN_OF_A_KIND)
      lines.push(
        style.faint(`  and ${formatCount(count - SHOWN_OF_A_KIND)} more of ${code}: --json lists them`),
      );
  }
  return lines;
}

function renderMended({ backupPath, copyPath, mended }: MendResult): string {
  if (mended.length === 0) return "Nothing to fix without a model.";
  return [
    `${style.good("fixed")}  ${countOf(mended.length, "finding")}${backupPath === null ? "" : `, backup: ${backupPath}`}${copyPath === null ? "" : `, copy as it was: ${copyPath}`}`,
    ...mended.map(({ code, message }) => `  ${style.name(code)}  ${toOneLine(message)}`),
  ].join("\n");
}

/** `lcm verify`: proves that the stored bytes are the arrival bytes, or reports what differs. */
import type { Command } from "commander";
import { ERROR_CODES } from "@lossless/core";
import type { Problem, VerifyResult } from "@lossless/core";
import { runCancellable, toAction } from "../../invocation.ts";
import type { Invocation } from "../../invocation.ts";
import { countOf, toOneLine } from "@lossless/core/doors";
import { countNote, startProgress } from "../../progress.ts";
import { style } from "../../style.ts";
import { addExamples } from "../shared.ts";

const SHOWN_PROBLEMS = 50;

export function defineVerify(program: Command): void {
  const command = program
    .command("verify")
    .description("Prove that everything stored is complete and unaltered")
    .action(toAction(runVerify));
  addExamples(command, [
    ["lcm verify", "check the archive"],
    ["lcm verify --json | jq .data.problems", "list problems, for a program"],
  ]);
  command.addHelpText(
    "after",
    `
Rebuilds every message and compares it with its commitment, walks the hash chain of each conversation, checks
that the context covers every message exactly once, that every large file is there and unaltered, that owners,
placements and boundaries match their seals, and that the index matches. Changes nothing. What it does not prove is
listed in docs/storage.md. Ends with status ${ERROR_CODES.verification_failed.exit} when something is wrong.`,
  );
}

async function runVerify(invocation: Invocation): Promise<void> {
  const progress = startProgress("Verifying", { isWanted: !invocation.isJson });
  const report = await runCancellable(
    () =>
      invocation.withArchive(
        "read",
        (engine) =>
          engine.verify({
            onProgress: (done, total) => progress.update(done, total, countNote(done, total, "messages")),
          }),
        { thread: true },
      ),
    { isPatient: false, what: "the verification" },
  ).finally(() => progress.finish());
  if (!report.ok) process.exitCode = ERROR_CODES.verification_failed.exit;
  const { ok, conversations, messages, summaries, files, problems, redacted } = report;
  await invocation.print({
    data: {
      ok,
      conversations,
      messages,
      summaries,
      files,
      problems,
      redacted,
    },
    text: () => renderReport(report),
  });
}

export function renderReport(report: VerifyResult): string {
  const checked = [
    countOf(report.messages, "message"),
    countOf(report.conversations, "conversation"),
    countOf(report.summaries, "summary", "summaries"),
    countOf(report.files, "large file"),
  ].join(", ");
  if (report.ok)
    return [
      `${style.good("ok")}  ${checked}: everything is whole and unaltered`,
      ...renderRedacted(report),
    ].join("\n");
  const shown = report.problems.slice(0, SHOWN_PROBLEMS).map(renderProblem);
  const more = report.problems.length - shown.length;
  return [
    `${style.bad("not ok")}  ${checked}: ${countOf(report.problems.length, "problem")}`,
    ...shown,
    ...(more > 0
      ? [style.faint(`and ${countOf(more, "problem")} more: lcm verify --json lists them all`)]
      : []),
  ].join("\n");
}

/** Without the key only the stored form can be proven. */
function renderRedacted({ redacted }: VerifyResult): string[] {
  if (redacted === undefined) return [];
  const { messages, proven } = redacted;
  return [
    style.faint(`${countOf(messages, "redacted message")}, ${proven} proven with the key to be what arrived`),
  ];
}

function renderProblem({ code, id, message }: Problem): string {
  return `  ${style.bad(code)}  ${style.name(toOneLine(id))}  ${toOneLine(message)}`;
}

/** `lcm transplant`: copies a conversation, with its summaries, in front of another one. */
import { Option } from "commander";
import type { Command } from "commander";
import { toAction } from "../../invocation.ts";
import type { Invocation } from "../../invocation.ts";
import { countOf } from "@lossless/core/doors";
import { style } from "../../style.ts";
import { addExamples, parseConversationId, requireConversation } from "../shared.ts";

interface TransplantOptions {
  readonly from: number;
  readonly to: number;
  readonly apply?: boolean;
}

export function defineTransplant(program: Command): void {
  const command = program
    .command("transplant")
    .description("Copy a conversation and its summaries to the front of another one")
    .addOption(
      new Option("--from <n>", "what is copied").argParser(parseConversationId).makeOptionMandatory(),
    )
    .addOption(new Option("--to <n>", "where it goes").argParser(parseConversationId).makeOptionMandatory())
    .option("--apply", "apply; without this, dry run")
    .action(toAction(runTransplant));
  command.addHelpText(
    "after",
    `
Messages, parts, large files, summaries and their links are copied and get ids of their own; the original stays as it
is. Refused when the other conversation already holds one of the messages, or belongs to another owner.`,
  );
  addExamples(command, [["lcm transplant --from 3 --to 7", "what would be copied"]]);
}

async function runTransplant(invocation: Invocation, { from, to, apply }: TransplantOptions): Promise<void> {
  const dryRun = apply !== true;
  const report = await invocation.withArchive(dryRun ? "read" : "change", async (engine) => {
    for (const id of [from, to]) await requireConversation(engine, invocation, id);
    return engine.transplant({ from, to, dryRun });
  });
  const what = `${countOf(report.messages, "message")} and ${countOf(report.summaries, "summary", "summaries")} of conversation ${from}`;
  await invocation.print({
    data: { applied: !dryRun, ...report },
    text: () =>
      dryRun
        ? `${what} would be copied in front of conversation ${to}.\nNothing was done. Add --apply to do it.`
        : `${style.good("ok")}  ${what} copied in front of conversation ${to}`,
  });
}

/** `lcm adopt`: adopts the database of an older lossless-claw in place. Every command that writes does this first. */
import type { Command } from "commander";
import { adoptOlder } from "../../adopt.ts";
import { toAction } from "../../invocation.ts";
import type { Invocation } from "../../invocation.ts";
import { hidePassword } from "@lossless/core";
import { countOf } from "@lossless/core/doors";
import { style } from "../../style.ts";
import { renderPairs } from "../../table.ts";
import { addExamples } from "../shared.ts";

export function defineAdopt(program: Command): void {
  const command = program
    .command("adopt")
    .description("Migrate the database of an older lossless-claw in place")
    .action(toAction(runAdopt));
  addExamples(command, [
    ["lcm adopt", "the database that the settings name"],
    ["lcm adopt --db old/lcm.db", "another one"],
  ]);
  command.addHelpText(
    "after",
    `
Its history is imported into a new file and proven; then the old file, with its log, is kept beside it as
<database>.before-adoption and the new one takes its name. Nothing is written to the old one. It is refused while another program
has it open; interrupted, it starts over or finishes when it is run again. Commands that write adopt first.`,
  );
}

async function runAdopt(invocation: Invocation): Promise<void> {
  const { settings } = await invocation.settings();
  const adoption = await adoptOlder(settings, { isQuiet: invocation.isJson, isAsked: true });
  const report = adoption.kind === "adopted" ? adoption.report : null;
  const data = {
    kind: adoption.kind,
    database: settings.databasePath,
    backup: adoption.kind === "adopted" ? adoption.backup : undefined,
    ...(report === null
      ? {}
      : {
          imported: report.imported,
          summaries: report.summaries,
          conversations: report.conversationIds.length,
          problems: report.problems,
        }),
  };
  await invocation.print({
    data,
    text: () => {
      if (adoption.kind === "not_needed") return `${hidePassword(settings.databasePath)} needs no adopting.`;
      if (adoption.kind === "finished") return `${style.good("ok")}  finished what was interrupted`;
      const pairs: [string, string][] = [
        [
          "Imported",
          `${countOf(adoption.report.imported, "row")}, ${countOf(adoption.report.summaries, "summary", "summaries")}`,
        ],
        ["Old file", adoption.backup],
        ...adoption.report.problems.map(({ message }): [string, string] => ["Note", message]),
      ];
      return `${renderPairs(pairs, style.faint)}\n\n${style.good("ok")}  adopted`;
    },
  });
}

/** `lcm help`, and what `lcm` alone says to somebody who has never used it. */
import type { Command } from "commander";
import { findNearest, usageError } from "@lossless/core/doors";
import { toAction } from "../../invocation.ts";
import { style } from "../../style.ts";
import { addExamples } from "../shared.ts";

export function defineHelp(program: Command): void {
  const command = program
    .command("help")
    .description("Show help for a command")
    .argument("[command...]", "the command, for example: messages list")
    .action(
      toAction((invocation, _options: object, words: readonly string[]) => {
        const text = helpOf(findCommand(program, words));
        return invocation.print({ data: { command: words.join(" "), text }, text: () => text });
      }),
    );
  addExamples(command, [["lcm help messages list", "options and examples of one command"]]);
}

function findCommand(program: Command, words: readonly string[]): Command {
  let at = program;
  for (const word of words) {
    const next = at.commands.find((child) => child.name() === word);
    if (next === undefined) {
      const nearest = findNearest(
        word,
        at.commands.map((child) => child.name()),
      );
      throw usageError(
        `cannot help with ${words.join(" ")}: there is no such command`,
        nearest === null ? "See lcm help" : `Did you mean ${nearest}?`,
      );
    }
    at = next;
  }
  return at;
}

/** Help with the examples, which commander keeps apart from it. `columns` fixes its width. */
export function helpOf(command: Command, columns?: number): string {
  let text = "";
  const before = command.configureOutput();
  command.configureOutput({
    ...before,
    writeOut: (piece) => (text += piece),
    ...(columns === undefined ? {} : { getOutHelpWidth: () => columns }),
  });
  command.outputHelp();
  command.configureOutput(before);
  return text;
}

const FIRST_STEPS: readonly (readonly [line: string, says: string])[] = [
  ["lcm import ~/.claude/projects", "store your agents' transcripts"],
  ["lcm search why did we choose sqlite", "find anything that was ever said"],
  ["lcm messages tail --conversation 1", "read the end of a conversation"],
  ["lcm assemble --conversation 1 --budget 32k", "show the context a model gets"],
  ["lcm status", "show what is stored and its size"],
  ["lcm verify", "prove that nothing was lost or altered"],
];

export function renderWelcome(): string {
  const width = Math.max(...FIRST_STEPS.map(([line]) => line.length));
  const steps = FIRST_STEPS.map(([line, says]) => `  ${style.name(line.padEnd(width))}  ${says}`);
  return `${style.title("lcm")} keeps every message of your agents, word for word, in one file on your disk.
Nothing is ever lost: everything can be found, read in full, and proven unaltered.

${steps.join("\n")}

${style.faint("Add --db FILE to use another archive and --json for programs. All commands: lcm --help")}
`;
}

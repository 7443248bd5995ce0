/** `lcm help`, and the output of `lcm` alone for new users. */
import type { Command } from "commander";
import { EngineError } from "@lossless/core";
import type { StatusResult } from "@lossless/core";
import { countOf, findNearest, formatBytes, toOneLine, usageError } from "@lossless/core/doors";
import { toAction } from "../../invocation.ts";
import type { Invocation } from "../../invocation.ts";
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

/** Help including the examples, which commander keeps separately. `columns` fixes its width. */
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
  ["lcm conversations list", "list what is stored, newest first"],
  ["lcm search why did we choose sqlite", "find anything that was ever said"],
  ["lcm messages tail --conversation 1", "read the end of a conversation"],
  ["lcm stats", "show what your agents did"],
  ["lcm tui", "browse in the terminal"],
  ["lcm web --open", "browse in a web browser"],
  ["lcm assemble --conversation 1 --budget 32k", "show the context a model gets"],
  ["lcm setup", "connect your agents"],
  ["lcm verify", "prove that nothing was lost or altered"],
  ["lcm doctor", "find problems and how to fix them"],
];

/** The output of `lcm` alone: what is stored, and what you can do with it. */
export async function showWelcome(invocation: Invocation): Promise<void> {
  const status = await readStatus(invocation);
  await invocation.print({ data: { status }, text: () => renderWelcome(status) });
}

/** Null if there is nothing yet, or it cannot be read now: a welcome is not the place for errors, and lcm status reports them. */
async function readStatus(invocation: Invocation): Promise<ArchiveStatus | null> {
  try {
    return await invocation.withArchive("read", (engine) => engine.status(invocation.scope));
  } catch (error) {
    if (error instanceof EngineError) return null;
    throw error;
  }
}

type ArchiveStatus = Pick<
  StatusResult,
  "databasePath" | "databaseBytes" | "conversations" | "messages" | "lastMessageAt"
>;

function renderWelcome(status: ArchiveStatus | null): string {
  const width = Math.max(...FIRST_STEPS.map(([line]) => line.length));
  const steps = FIRST_STEPS.map(([line, says]) => `  ${style.name(line.padEnd(width))}  ${says}`);
  return `${style.title("lcm")} keeps every message of your agents, word for word, in one archive.
Nothing is ever lost: everything can be found, read in full, and proven unaltered.

${describeStored(status)}

${steps.join("\n")}

${style.faint("Add --db FILE to use another archive and --json for programs. All commands: lcm --help")}
`;
}

function describeStored(status: ArchiveStatus | null): string {
  if (status === null) return "Nothing is stored yet.";
  const { conversations, messages, databaseBytes, databasePath } = status;
  return `${countOf(messages, "message")} in ${countOf(conversations, "conversation")}, ${formatBytes(databaseBytes)}: ${toOneLine(databasePath)}`;
}

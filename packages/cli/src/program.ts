/**
 * The command tree: names, options and help of every command, without what they need to run. Completion scripts and docs/cli.md are generated
 * from it, so that they always match what the program accepts.
 */
import { Command, CommanderError } from "commander";
import type { Option } from "commander";
import { findNearest, usageError } from "@lossless/core/doors";
import { defineAdopt } from "./commands/archive/adopt.ts";
import { defineAsk } from "./commands/recall/ask.ts";
import { defineAssemble } from "./commands/fold/assemble.ts";
import { defineBackup } from "./commands/repair/backup.ts";
import { defineClean } from "./commands/repair/clean.ts";
import { defineCompact } from "./commands/fold/compact.ts";
import { defineCompletion } from "./commands/config/completion.ts";
import { defineConfig } from "./commands/config/config.ts";
import { defineConversations } from "./commands/archive/conversations.ts";
import { defineDissolve } from "./commands/fold/dissolve.ts";
import { defineDoctor } from "./commands/repair/doctor.ts";
import { defineEmbed } from "./commands/recall/embed.ts";
import { defineExpand } from "./commands/recall/expand.ts";
import { defineExport } from "./commands/archive/export.ts";
import { defineForget } from "./commands/repair/forget.ts";
import { defineHelp, showWelcome } from "./commands/config/help.ts";
import { defineLabels } from "./commands/archive/labels.ts";
import { defineImport } from "./commands/archive/import.ts";
import { defineMcp } from "./commands/mcp.ts";
import { defineMessages } from "./commands/archive/messages.ts";
import { defineMigrate } from "./commands/archive/migrate.ts";
import { definePrompts } from "./commands/fold/prompts.ts";
import { defineReindex } from "./commands/repair/reindex.ts";
import { defineRestore } from "./commands/repair/restore.ts";
import { defineRepair, defineRewrite } from "./commands/fold/rewrite.ts";
import { defineRoles } from "./commands/config/roles.ts";
import { defineRotate } from "./commands/repair/rotate.ts";
import { defineSetup } from "./commands/config/setup.ts";
import { defineSearch } from "./commands/recall/search.ts";
import { defineShow } from "./commands/recall/show.ts";
import { defineSpend } from "./commands/fold/spend.ts";
import { defineStats } from "./commands/archive/stats.ts";
import { defineStatus } from "./commands/archive/status.ts";
import { defineSummaries } from "./commands/fold/summaries.ts";
import { defineSupport } from "./commands/repair/support.ts";
import { defineTransplant } from "./commands/repair/transplant.ts";
import { defineTui } from "./commands/tui.ts";
import { defineUnseal, defineVault } from "./commands/archive/vault.ts";
import { defineVerify } from "./commands/repair/verify.ts";
import { defineVersion } from "./commands/config/version.ts";
import { defineWatch } from "./commands/archive/watch.ts";
import { defineWeb } from "./commands/web.ts";
import { defineWorker } from "./commands/fold/worker.ts";
import { wrapHelp } from "./help-text.ts";
import { commandPath, Invocation } from "./invocation.ts";
import { terminalColumns } from "./output.ts";
import { addGroupExamples } from "./commands/shared.ts";
import { readVersion } from "./own-files.ts";

export const DESCRIPTION =
  "Keep every message of your agents, word for word, in one archive: store, find, fold, show and prove them.";

/** The groups of the help, in order. */
const GROUPS: readonly (readonly [heading: string, commands: readonly ((program: Command) => void)[]])[] = [
  ["Look:", [defineStatus, defineConversations, defineMessages, defineLabels, defineStats, defineSpend]],
  ["Find:", [defineSearch, defineShow, defineExpand, defineAsk, defineEmbed]],
  ["Store and share:", [defineImport, defineWatch, defineAdopt, defineExport, defineMigrate]],
  [
    "Fold:",
    [
      defineCompact,
      defineWorker,
      defineAssemble,
      defineSummaries,
      defineRepair,
      defineRewrite,
      defineDissolve,
      definePrompts,
    ],
  ],
  [
    "Prove and repair:",
    [
      defineVerify,
      defineDoctor,
      defineReindex,
      defineBackup,
      defineRestore,
      defineForget,
      defineClean,
      defineTransplant,
      defineRotate,
      defineUnseal,
      defineVault,
      defineSupport,
    ],
  ],
  ["Open:", [defineTui, defineWeb, defineMcp]],
  ["Set up:", [defineSetup, defineConfig, defineRoles, defineCompletion, defineHelp, defineVersion]],
];

export function buildProgram(): Command {
  const program = new Command("lcm")
    .description(DESCRIPTION)
    .usage("[options] <command>")
    .version(readVersion(), "-V, --version", "print the version")
    .helpOption("-h, --help", "show help")
    .helpCommand(false)
    .option("-d, --db <path>", "path or postgres:// address of the database (default: setting databasePath)")
    .option("--owner <name>", "only this agent's data; for import, the owner of the data")
    .option("-j, --json", "print one JSON object");
  for (const [heading, commands] of GROUPS) {
    program.commandsGroup(heading);
    for (const define of commands) define(program);
  }
  addGroupExamples(program);
  for (const command of listCommands(program)) tame(command);
  return program;
}

/** The command and all its subcommands. */
export function listCommands(command: Command): Command[] {
  return [command, ...command.commands.flatMap(listCommands)];
}

/** Throws errors in our wording instead of printing them, and makes a group without a command list its commands. */
function tame(command: Command): void {
  command
    .configureHelp({
      showGlobalOptions: true,
      visibleGlobalOptions: listSharedOptions,
      // Short terms leave room for sentences, which wrap at words.
      subcommandTerm: (child) => child.name(),
      minWidthToWrap: 20,
    })
    .configureOutput({ writeErr: () => undefined, writeOut: printHelp })
    .showSuggestionAfterError(false)
    .exitOverride((error) => {
      throw translate(error, command);
    });
  // A command with its own options does something itself, whatever its subcommands.
  if (command.commands.length === 0 || (command.parent !== null && command.options.length > 0)) return;
  command
    .allowExcessArguments(true)
    .allowUnknownOption(true)
    .action(async () => {
      const [word] = command.args;
      if (word !== undefined) throw unknownWord(word, command);
      if (command.parent === null) await showWelcome(new Invocation("", command.opts()));
      else command.outputHelp();
    });
}

function printHelp(text: string): void {
  const columns = terminalColumns();
  process.stdout.write(columns === null ? text : wrapHelp(text, columns));
}

/** The options of every command; only the program has a version. */
function listSharedOptions(command: Command): Option[] {
  let root = command;
  while (root.parent !== null) root = root.parent;
  return root === command ? [] : root.options.filter((option) => option.long !== "--version");
}

export function isHelpShown(error: unknown): boolean {
  return error instanceof CommanderError && error.exitCode === 0;
}

function translate(error: CommanderError, command: Command): Error {
  if (error.exitCode === 0) return error;
  const message = error.message.replace(/^error: /, "");
  const name = ["lcm", commandPath(command)].join(" ").trim();
  const option = /^unknown option '([^']*)'/.exec(message)?.[1];
  if (option !== undefined) return unknownWord(option, command);
  return usageError(`cannot run ${name}: ${lowerFirst(message)}`, `See ${name} --help`);
}

function unknownWord(word: string, command: Command): Error {
  const name = ["lcm", commandPath(command)].join(" ").trim();
  const isOption = word.startsWith("-");
  const known = isOption
    ? [...command.options, ...listSharedOptions(command)].flatMap((option) => option.long ?? [])
    : command.commands.map((child) => child.name());
  const nearest = findNearest(word, known);
  const what = isOption ? `${name}: there is no option ${word}` : `${name} ${word}: there is no such command`;
  const hint =
    nearest === null ? `See ${name} --help` : `Did you mean ${isOption ? nearest : `${name} ${nearest}`}?`;
  return usageError(`cannot run ${what}`, hint);
}

const lowerFirst = (text: string): string => text.charAt(0).toLowerCase() + text.slice(1);

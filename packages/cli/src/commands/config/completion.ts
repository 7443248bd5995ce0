/**
 * `lcm completion bash|zsh|fish`: scripts that complete commands, options, formats and setting keys. Generated from the command tree, so a new
 * command completes without more work.
 */
import { Argument } from "commander";
import type { Command } from "commander";
import { commandPath, toAction } from "../../invocation.ts";
import { settingKeys } from "./config.ts";
import { addExamples } from "../shared.ts";

export function defineCompletion(program: Command): void {
  const command = program
    .command("completion")
    .description("Print a completion script for your shell")
    .addArgument(new Argument("<shell>", "your shell").choices(["bash", "zsh", "fish"]))
    .action(
      toAction((invocation, _options: object, shell: keyof typeof SCRIPTS) => {
        const script = SCRIPTS[shell](program);
        return invocation.print({ data: { shell, script }, text: () => script });
      }),
    );
  addExamples(command, [
    [`eval "$(lcm completion bash)"`, "in ~/.bashrc"],
    [`eval "$(lcm completion zsh)"`, "in ~/.zshrc, after compinit"],
    ["lcm completion fish | source", "in ~/.config/fish/config.fish"],
  ]);
}

/** One position in the command line: the command so far, and what may come next. */
interface CommandWords {
  readonly path: string;
  readonly words: readonly Word[];
  readonly options: readonly Word[];
  readonly choices: readonly { readonly option: string; readonly values: readonly string[] }[];
  /** Options that take a value. */
  readonly valued: readonly string[];
}

interface Word {
  readonly word: string;
  readonly says: string;
}

function listCommands(program: Command): CommandWords[] {
  const walk = (command: Command): CommandWords[] => [
    describeCommand(program, command),
    ...command.commands.flatMap(walk),
  ];
  return walk(program);
}

function describeCommand(program: Command, command: Command): CommandWords {
  const options = [...command.options, ...(command === program ? [] : program.options)];
  return {
    path: commandPath(command),
    words: [
      ...command.commands.map((child) => ({ word: child.name(), says: child.description() })),
      ...listArguments(command),
    ],
    options: [
      ...options.map((option) => ({ word: option.long ?? option.flags, says: option.description })),
      { word: "--help", says: "show help" },
    ],
    choices: options.flatMap((option) =>
      option.argChoices ? [{ option: option.long ?? "", values: option.argChoices }] : [],
    ),
    valued: options.filter((option) => option.required).map((option) => option.long ?? option.flags),
  };
}

function listArguments(command: Command): Word[] {
  return command.registeredArguments.flatMap((argument) => {
    if (argument.name() === "key") return settingKeys().map((word) => ({ word, says: "setting" }));
    return (argument.argChoices ?? []).map((word) => ({ word, says: argument.description }));
  });
}

const quote = (text: string): string => `'${text.replaceAll("'", String.raw`'\''`)}'`;

function renderBash(program: Command): string {
  const commands = listCommands(program);
  const cases = (pick: (entry: CommandWords) => readonly string[]): string =>
    commands.map((entry) => `    ${quote(entry.path)}) echo ${quote(pick(entry).join(" "))} ;;`).join("\n");
  const choices = commands
    .flatMap(({ choices }) => choices)
    .map(({ option, values }) => `    ${option}) echo ${quote(values.join(" "))} ;;`);
  const valued = [...new Set(commands.flatMap((entry) => entry.valued))];
  return `# Completion of lcm for bash. Made by: lcm completion bash
_lcm_words() {
  case "$1" in
${cases((entry) => entry.words.map(({ word }) => word))}
  esac
}
_lcm_options() {
  case "$1" in
${cases((entry) => entry.options.map(({ word }) => word))}
  esac
}
_lcm_choices() {
  case "$1" in
${[...new Set(choices)].join("\n")}
  esac
}
_lcm() {
  local current="\${COMP_WORDS[COMP_CWORD]}" before="\${COMP_WORDS[COMP_CWORD-1]}" place="" candidate word i
  COMPREPLY=()
  for ((i = 1; i < COMP_CWORD; i++)); do
    word="\${COMP_WORDS[i]}"
    case "$word" in
      ${valued.join("|")}) ((i++)) ;;
      -*) ;;
      *)
        candidate="\${place:+$place }$word"
        [[ -n "$(_lcm_options "$candidate")" ]] && place="$candidate"
        ;;
    esac
  done
  case "$before" in
    --db) compopt -o default 2>/dev/null; return ;;
    ${valued.filter((option) => option !== "--db").join("|")})
      mapfile -t COMPREPLY < <(compgen -W "$(_lcm_choices "$before")" -- "$current")
      return
      ;;
  esac
  if [[ "$current" == -* ]]; then
    mapfile -t COMPREPLY < <(compgen -W "$(_lcm_options "$place")" -- "$current")
  elif [[ "$place" == import ]]; then
    compopt -o default 2>/dev/null
  else
    mapfile -t COMPREPLY < <(compgen -W "$(_lcm_words "$place")" -- "$current")
  fi
}
complete -F _lcm lcm
`;
}

/** In zsh a colon separates a word from its description. */
const describeWord = ({ word, says }: Word): string =>
  quote(`${word.replaceAll(":", String.raw`\:`)}:${says}`);

function renderZsh(program: Command): string {
  const commands = listCommands(program);
  const valued = [...new Set(commands.flatMap((entry) => entry.valued))];
  const choices = commands
    .flatMap(({ choices }) => choices)
    .map(({ option, values }) => `    ${option}) choices=(${values.map(quote).join(" ")}) ;;`);
  const cases = commands.map(
    (entry) => `    ${quote(entry.path)})
      words_here=(${entry.words.map(describeWord).join(" ")})
      options_here=(${entry.options.map(describeWord).join(" ")})
      ;;`,
  );
  return `#compdef lcm
# Completion of lcm for zsh. Made by: lcm completion zsh
_lcm_look() {
  words_here=() options_here=()
  case "$1" in
${cases.join("\n")}
    *) return 1 ;;
  esac
}
_lcm() {
  local -a words_here options_here choices
  local place="" candidate word
  local -i i
  for ((i = 2; i < CURRENT; i++)); do
    word="\${words[i]}"
    case "$word" in
      ${valued.join("|")}) ((i++)) ;;
      -*) ;;
      *)
        candidate="\${place:+$place }$word"
        _lcm_look "$candidate" && place="$candidate"
        ;;
    esac
  done
  case "\${words[CURRENT-1]}" in
    --db) _files; return ;;
${[...new Set(choices)].join("\n")}
    ${valued.filter((option) => option !== "--db").join("|")}) return ;;
  esac
  if ((\${#choices})); then
    compadd -a choices
    return
  fi
  _lcm_look "$place"
  if [[ "$place" == import && "$PREFIX" != -* ]]; then
    _files
  elif [[ "$PREFIX" == -* ]]; then
    _describe option options_here
  else
    _describe command words_here
  fi
}
if (($+functions[compdef])); then compdef _lcm lcm; fi
`;
}

/** One line for each word and option: fish calls a function to check whether the words before lead to the command. */
function renderFish(program: Command): string {
  const commands = listCommands(program);
  const lines = commands.flatMap(({ path, words, options, choices, valued }) => {
    const here = `complete -c lcm -n ${quote(`__lcm_at ${quote(path)}`)}`;
    const valuesOf = new Map(choices.map(({ option, values }) => [option, values]));
    return [
      ...words.map(({ word, says }) => `${here} -f -a ${quote(word)} -d ${quote(says)}`),
      ...options.map(({ word, says }) => {
        const values = valuesOf.get(word);
        const value = values === undefined ? "" : ` -x -a ${quote(values.join(" "))}`;
        const needs = values === undefined && valued.includes(word) ? " -r" : "";
        return `${here} -l ${word.replace(/^--/u, "")}${needs}${value} -d ${quote(says)}`;
      }),
    ];
  });
  const paths = commands.map(({ path }) => quote(path)).join(" ");
  return `# Completion of lcm for fish. Made by: lcm completion fish
set -g __lcm_paths ${paths}
function __lcm_at
    set -l place ""
    for word in (commandline -opc)[2..-1]
        string match -q -- "-*" $word; and continue
        set -l candidate (string trim -- "$place $word")
        contains -- $candidate $__lcm_paths; and set place $candidate
    end
    test "$place" = "$argv[1]"
end
${lines.join("\n")}
`;
}

const SCRIPTS = { bash: renderBash, zsh: renderZsh, fish: renderFish } as const;

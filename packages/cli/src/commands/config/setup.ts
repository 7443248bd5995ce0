/** `lcm setup`: gives the archive to other agents, by an entry for the MCP server in their own configuration. A dry run unless `--apply`. */
import type { Command } from "commander";
import { hidePassword, settleAddress } from "@lossless/core";
import { Argument } from "commander";
import { existsSync } from "node:fs";
import { homedir } from "node:os";
import type { SetupAgent, SetupEdit } from "@lossless/agents";
import { diffLines, renderDiff } from "@lossless/core/doors";
import { toAction } from "../../invocation.ts";
import type { GlobalOptions, Invocation } from "../../invocation.ts";
import { style } from "../../style.ts";
import { addExamples, nameProgram } from "../shared.ts";

interface Options extends GlobalOptions {
  readonly apply?: boolean;
  readonly remove?: boolean;
}

const AGENTS: readonly SetupAgent[] = ["claude-code", "codex"];

export function defineSetup(program: Command): void {
  const command = program
    .command("setup")
    .description("Register the MCP server with Claude Code or Codex, or remove it again")
    .addArgument(new Argument("[agent]", "the agent; without one, show which are here").choices([...AGENTS]))
    .option("--apply", "make the change; without it, show what would change")
    .option("--remove", "take the entry out again")
    .action(toAction(runSetup));
  command.addHelpText(
    "after",
    `
Adds one entry named lossless to the agent's own configuration: ~/.claude.json of Claude Code, config.toml of Codex. The
agent can then search and open what is stored (lcm help mcp). The file as it was is kept beside the database, readable
only by you. --remove gives it back byte for byte if nothing else was changed in it since, and otherwise takes out only
this entry. Close the agent first: it may write the same file. For capture see lcm watch.`,
  );
  addExamples(command, [
    ["lcm setup", "which agents are here"],
    ["lcm setup claude-code", "show what would change"],
    ["lcm setup claude-code --apply", "change it"],
    ["lcm setup codex --remove --apply", "take it back"],
  ]);
}

async function runSetup(invocation: Invocation, options: Options, agent?: SetupAgent): Promise<void> {
  const setup = await import("@lossless/agents");
  const { settings } = await invocation.settings();
  const base = {
    env: process.env,
    home: homedir(),
    database: settings.databasePath,
    command: nameServer(options),
  };
  if (agent === undefined) {
    const found = AGENTS.map((name) => ({ name, folder: setup.findAgentFolder({ ...base, agent: name }) }));
    const agents = found.map(({ name, folder }) => ({ agent: name, isPresent: existsSync(folder), folder }));
    const lines = agents.map((row) => `${row.agent}: ${row.isPresent ? `here, ${row.folder}` : "not found"}`);
    return invocation.print({ data: { agents }, text: () => lines.join("\n") });
  }
  const { apply = false, remove = false } = options;
  const request = { ...base, agent };
  const edit = remove ? setup.planRemoval(request) : setup.planSetup(request);
  if (apply) setup.applySetup(request, edit, remove);
  const isChanged = edit.before !== edit.after;
  await invocation.print({
    data: { agent, path: edit.path, changed: isChanged, applied: apply && isChanged, remove },
    text: () => renderEdit(edit, apply),
  });
}

/** With what was typed about the archive; otherwise the server follows the settings. */
function nameServer({ db, owner }: Options): string[] {
  const typed = { db: db === undefined ? undefined : settleAddress(db), owner };
  return nameProgram(
    "mcp",
    ...Object.entries(typed).flatMap(([name, value]) => (value === undefined ? [] : [`--${name}`, value])),
  );
}

function renderEdit({ path, before, after }: SetupEdit, isApplied: boolean): string {
  if (before === after) return `${style.name(path)} needs no change.`;
  const head = `${isApplied ? "Changed" : "Would change"} ${style.name(path)}`;
  const lines = diffLines(...cutSame(hidePasswords(before), hidePasswords(after)));
  const diff = renderDiff(lines, { gone: style.bad, new: style.good });
  return [head, diff, ...(isApplied ? [] : [style.faint("Run it again with --apply.")])].join("\n");
}

/** The file has to name the address as it is; nobody else has to read it. */
const hidePasswords = (text: string | null): string =>
  (text ?? "").replaceAll(/postgres(?:ql)?:\/\/[^"'\s]*/giu, hidePassword);

/**
 * Without what both begin and end with: such files are long, and may hold passwords. Within a single line too, as programs write
 * whole files in one.
 */
function cutSame(before: string, after: string): [string, string] {
  const [a, b] = cutEnds(before.split("\n"), after.split("\n"), 0);
  if (a.length !== 1 || b.length !== 1) return [a.join("\n"), b.join("\n")];
  const [old, changed] = cutEnds([...(a[0] ?? "")], [...(b[0] ?? "")], CONTEXT);
  return [old.join(""), changed.join("")];
}

/** What is left of a long line beside what changes in it: enough for a bracket. */
const CONTEXT = 3;

/** What is put behind a line gives it a comma, and tells nothing else about it. */
const isSame = (a = "", b = ""): boolean => a === b || `${a},` === b || a === `${b},`;

function cutEnds(a: string[], b: string[], kept: number): [string[], string[]] {
  let start = 0;
  while (start < Math.min(a.length, b.length) && isSame(a[start], b[start])) start += 1;
  let end = 0;
  while (end < Math.min(a.length, b.length) - start && isSame(a.at(-1 - end), b.at(-1 - end))) end += 1;
  const cut = (all: string[]): string[] =>
    all.slice(Math.max(0, start - kept), all.length - Math.max(0, end - kept));
  return [cut(a), cut(b)];
}

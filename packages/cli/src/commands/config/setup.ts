/**
 * `lcm setup`: connects other agents with the archive, by entries in their own configuration. It shows what changes and asks; without a terminal
 * it is a dry run unless `--apply`.
 */
import type { Command } from "commander";
import { EngineError, settleAddress } from "@lossless/core";
import { describeFailure } from "@lossless/core/doors";
import type { Failure } from "@lossless/core/doors";
import { Argument, Option } from "commander";
import { homedir } from "node:os";
import type { DetectedAgent, SetupAgent, SetupEdit, SetupRequest } from "@lossless/agents";
import { REDACTION_SETS } from "@lossless/core/settings";
import { toAction } from "../../invocation.ts";
import type { GlobalOptions, Invocation } from "../../invocation.ts";
import { printNote } from "../../output.ts";
import { ask, canAsk, confirm } from "../../questions.ts";
import { style } from "../../style.ts";
import { addExamples, nameProgram } from "../shared.ts";
import { setOwnSetting } from "./config.ts";
import { renderEdit } from "./setup-diff.ts";

interface Options extends GlobalOptions {
  readonly apply?: boolean;
  readonly remove?: boolean;
  readonly captureOwner?: string;
  readonly redact?: boolean;
  readonly full?: boolean;
}

/** Listed here, because the agents package is loaded only when one is set up; a missing one does not compile. */
const AGENTS: Readonly<Record<SetupAgent, true>> = {
  "claude-code": true,
  codex: true,
  gemini: true,
  opencode: true,
  pi: true,
  cursor: true,
  copilot: true,
};

export function defineSetup(program: Command): void {
  const command = program
    .command("setup")
    .description("Connect Claude Code, Codex and other agents with the archive, or disconnect them")
    .addArgument(
      new Argument("[agents...]", "the agents; without one, those that are installed").choices(
        Object.keys(AGENTS),
      ),
    )
    .option("--apply", "make the changes without asking")
    .option("--remove", "undo them")
    .option("--full", "print scripts and skills in full, not only their number of lines")
    .addOption(
      new Option(
        "--capture-owner <name>",
        "owner of what lcm watch stores (the setting captureOwner)",
      ).conflicts("remove"),
    )
    .addOption(
      new Option(
        "--redact",
        `replace API keys, tokens and card numbers before they are stored (the setting redactPatterns)`,
      ).conflicts("remove"),
    )
    .action(toAction(runSetup));
  addExamples(command, [
    ["lcm setup", "find the agents that are here, and ask"],
    ["lcm setup claude-code", "show what would change, and ask"],
    ["lcm setup claude-code codex --apply", "change it"],
    ["lcm setup codex --remove", "undo it"],
    ["lcm setup --apply --capture-owner ann --redact codex", "and set whose sessions they are, redacted"],
  ]);
  command.addHelpText(
    "after",
    `
Shows what would change first. On a terminal it asks; elsewhere nothing is written without --apply. Close the agent first:
it may write the same files.

Each agent gets the MCP server lossless, with which it searches the archive; hooks, which tell lcm watch what happens and
give the model a restart bundle after a compaction; a skill; and for Claude Code a status line, unless you have one.
Sessions are stored by lcm watch.

  claude-code  ~/.claude.json, ~/.claude/settings.json, ~/.claude/skills
  codex        ~/.codex/config.toml, ~/.codex/hooks.json, ~/.codex/skills; trust the hooks afterwards with /hooks
  gemini       ~/.gemini/settings.json, ~/.gemini/skills
  opencode     ~/.config/opencode/opencode.json, ~/.config/opencode/skills
  pi           ~/.pi/agent/extensions/lossless.js, ~/.pi/agent/skills
  cursor       ~/.cursor/mcp.json, ~/.cursor/skills; from its documentation, untested
  copilot      ~/.copilot/mcp-config.json, ~/.copilot/hooks, ~/.copilot/skills; from its documentation, untested

--remove restores each file byte for byte if nobody else changed it, and otherwise removes only our entries. A file that
cannot be read is named at the end and does not stop the others. More in docs/agents.md.`,
  );
}

interface Plan {
  readonly request: SetupRequest;
  readonly edits: readonly SetupEdit[];
  /** Why this agent cannot be set up. */
  readonly failure: Failure | null;
}

type Base = Omit<SetupRequest, "agent">;

async function runSetup(
  invocation: Invocation,
  options: Options,
  named: readonly SetupAgent[],
): Promise<void> {
  const setup = await import("@lossless/agents");
  const { MCP_TOOLS } = await import("@lossless/mcp");
  const { settings } = await invocation.settings();
  const base: Base = {
    env: process.env,
    home: homedir(),
    database: settings.databasePath,
    command: nameServer(settings.databasePath, options.owner),
    tools: MCP_TOOLS,
  };
  const { apply = false, remove = false } = options;
  const isAsking = canAsk(invocation.isJson) && !apply;
  const found = setup.detectAgents(base);
  if (named.length === 0 && !isAsking && !apply && !remove) return printFound(invocation, found);
  const agents = named.length > 0 ? named : await chooseAgents(found, isAsking && !remove, remove);
  // Removal continues with the other agents; setup does all or nothing.
  const attempt = <T>(work: () => T): T | Failure => {
    if (!remove) return work();
    try {
      return work();
    } catch (error) {
      if (error instanceof EngineError) return describeFailure(error);
      throw error;
    }
  };
  let plans = agents.map((agent): Plan => {
    const request = { ...base, agent };
    const edits = attempt(() => (remove ? setup.planRemoval(request) : setup.planSetup(request)));
    return "code" in edits ? { request, edits: [], failure: edits } : { request, edits, failure: null };
  });
  const isAgreed = apply || (isAsking && (await agree(plans, options.full)));
  if (isAgreed)
    plans = plans.map((plan) => {
      if (plan.failure !== null) return plan;
      const failure = attempt(() => setup.applySetup(plan.request, plan.edits, remove));
      return failure === undefined ? plan : { ...plan, failure };
    });
  const isRefused = isAsking && !isAgreed;
  const set = remove || isRefused ? [] : await chooseSettings(invocation, options, { isAsking, isAgreed });
  const notes = plans.flatMap(({ request }) =>
    isAgreed && !remove ? setup.listNotes(request.agent).map((note) => `${request.agent}: ${note}`) : [],
  );
  const failed = plans.find(({ failure }) => failure !== null)?.failure;
  if (failed) process.exitCode = failed.exit;
  await printPlans(invocation, plans, { isAgreed, isAsking, remove, set, notes, isFull: options.full });
}

async function printFound(invocation: Invocation, agents: readonly DetectedAgent[]): Promise<void> {
  const lines = agents.map(({ agent, folder, isPresent }) =>
    isPresent ? `${agent}: here, ${folder}. Run: lcm setup ${agent} --apply` : `${agent}: not found`,
  );
  await invocation.print({ data: { agents }, text: () => lines.join("\n") });
}

/** Removal checks all of them: one whose program is gone may still have its files. */
async function chooseAgents(
  found: readonly DetectedAgent[],
  isAsking: boolean,
  remove: boolean,
): Promise<SetupAgent[]> {
  if (remove) return found.map(({ agent }) => agent);
  const present = found.filter(({ isPresent }) => isPresent);
  if (present.length === 0) printNote("No agent was found. Name one to set it up all the same.");
  const chosen: SetupAgent[] = [];
  for (const { agent, folder } of present)
    if (!isAsking || (await confirm(`Set up ${agent} (${folder})?`, true))) chosen.push(agent);
  return chosen;
}

async function agree(plans: readonly Plan[], isFull: boolean | undefined): Promise<boolean> {
  const changes = plans.flatMap(({ edits }) => edits.filter(({ before, after }) => before !== after));
  if (changes.length === 0) return true;
  process.stderr.write(
    `${changes.map((edit) => renderEdit(edit, { isApplied: false, isFull })).join("\n\n")}\n`,
  );
  return confirm("Make these changes?", false);
}

/** Which sessions are captured, and whether secrets are redacted: asked once, written as by `lcm config set`. A dry run only says so. */
async function chooseSettings(
  invocation: Invocation,
  { captureOwner, redact }: Options,
  { isAsking, isAgreed }: { readonly isAsking: boolean; readonly isAgreed: boolean },
): Promise<string[]> {
  const { settings, sources } = await invocation.settings();
  const set: string[] = [];
  const change = async (key: "captureOwner" | "redactPatterns", text: string, value = text) => {
    const place = isAgreed ? ` in ${await setOwnSetting(key, value)}` : "";
    set.push(`${isAgreed ? "Set" : "Would set"} ${key} = ${text}${place}`);
  };
  const isOpen = (key: "captureOwner" | "redactPatterns"): boolean =>
    isAsking && sources[key].kind === "default";
  const owner =
    captureOwner ??
    (isOpen("captureOwner")
      ? await ask("Whose sessions are these? Owner of what is captured:", settings.captureOwner)
      : undefined);
  if (owner !== undefined && (owner !== settings.captureOwner || captureOwner !== undefined))
    await change("captureOwner", owner);
  const isRedacting =
    redact ??
    (isOpen("redactPatterns") &&
      (await confirm(
        "Replace API keys, tokens and card numbers before they are stored? They cannot be found again.",
        false,
      )));
  if (isRedacting) {
    const patterns = [...new Set([...settings.redactPatterns, ...REDACTION_SETS])];
    await change("redactPatterns", patterns.join(", "), JSON.stringify(patterns));
  }
  return set;
}

async function printPlans(
  invocation: Invocation,
  plans: readonly Plan[],
  outcome: {
    readonly isAgreed: boolean;
    readonly isAsking: boolean;
    readonly remove: boolean;
    readonly set: readonly string[];
    readonly notes: readonly string[];
    readonly isFull: boolean | undefined;
  },
): Promise<void> {
  const { isAgreed, isAsking, remove, set, notes, isFull } = outcome;
  const agents = plans.map(({ request, edits, failure }) => ({
    agent: request.agent,
    failure: failure?.message,
    files: edits.map(({ path, before, after }) => ({ path, changed: before !== after })),
    applied: isAgreed && failure === null && edits.some(({ before, after }) => before !== after),
  }));
  const edits = plans.flatMap((plan) => (plan.failure === null ? plan.edits : []));
  const failures = plans.flatMap(({ request, failure }) =>
    failure === null
      ? []
      : [
          `${request.agent}: nothing was removed: ${failure.message}. ${failure.hint ?? "Mend the file and run it again"}`,
        ],
  );
  const isChange = edits.some(({ before, after }) => before !== after);
  const next =
    (isChange || set.length > 0) && !isAgreed && !isAsking
      ? ["Nothing was written. Run it again with --apply."]
      : [];
  const capture =
    isAgreed && isChange && !remove
      ? ["Sessions are stored by lcm watch; lcm watch --install keeps it running."]
      : [];
  await invocation.print({
    data: { agents, remove, settings: set, notes },
    text: () =>
      [
        ...edits.map((edit) =>
          isAsking && isAgreed ? renderDone(edit) : renderEdit(edit, { isApplied: isAgreed, isFull }),
        ),
        ...failures.map((failure) => style.bad(failure)),
        ...set,
        ...notes.map((note) => style.warning(note)),
        ...[...next, ...capture].map(style.faint),
      ].join("\n"),
  });
}

/** The diff was shown before the question. */
const renderDone = (edit: SetupEdit): string => renderEdit({ ...edit, steps: [] }, { isApplied: true });

/** With its archive: agents do not pass every variable on to the servers they start. */
function nameServer(database: string, owner: string | undefined): string[] {
  const words = ["mcp", "--db", settleAddress(database)];
  return nameProgram(...words, ...(owner === undefined ? [] : ["--owner", owner]));
}

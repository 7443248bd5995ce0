/** `lcm tui`, also `lcm-tui`: the archive in the terminal, driven by keys. */
import { homedir } from "node:os";
import type { Command } from "commander";
import { toAction } from "../invocation.ts";
import type { Invocation } from "../invocation.ts";
import { addModelOptions, chooseModel, nameChosen } from "../choose-model.ts";
import type { ModelOptions } from "../choose-model.ts";
import { buildOptions, findModelProblem } from "./repair/doctor.ts";
import { addConversationOptions, addExamples, chooseConversation } from "./shared.ts";
import type { ConversationChoice } from "./shared.ts";

interface TuiOptions extends ConversationChoice, ModelOptions {
  readonly sessions?: string;
  /** False with `--no-mouse`. */
  readonly mouse: boolean;
}

export function defineTui(program: Command): void {
  const command = addModelOptions(addConversationOptions(program.command("tui")))
    .description("Browse and repair the archive in the terminal")
    .option("--sessions <folder>", "list the transcripts in this folder, to import them")
    .option("--no-mouse", "leave the mouse to the terminal, to select text without Shift")
    .action(toAction(runCommand));
  addExamples(command, [
    ["lcm tui", "all conversations"],
    ["lcm tui --session agent:main:main", "one of them at once"],
    ["lcm tui --sessions ~/.claude/projects", "the transcripts of a folder, to import them"],
    ["lcm tui --no-model --db other.db", "rewriting asks no model"],
  ]);
  command.addHelpText(
    "after",
    `
Conversations, messages, the graph of summaries, the context with its reasons, large files, search, spend, doctor; ?
shows the keys. It follows along while agents write. Reading changes nothing; dissolve, rewrite, repair and transplant
show first what they would do, and what a model would cost. i lists the transcripts of Claude Code, Codex, OpenClaw and
others on this machine, and imports them. lcm-tui is the same command.`,
  );
}

async function runCommand(invocation: Invocation, options: TuiOptions): Promise<void> {
  const { findSessionFolders, requireFolder } = await import("@lossless/tui");
  const named = options.sessions === undefined ? null : await requireFolder(options.sessions);
  const { requireTerminal, runTui } = await import("@lossless/tui");
  requireTerminal();
  const model = await chooseModel(invocation, options);
  const { settings, locations } = await invocation.settings();
  const sessionFolders = named === null ? await findSessionFolders(homedir(), locations.stateDir) : [named];
  // Anything printed would be drawn into the screens.
  const quiet = { thread: true, onNote: () => undefined } as const;
  await invocation.withArchive(
    "read",
    async (engine) =>
      runTui({
        archive: {
          engine,
          scope: invocation.scope,
          settings,
          modelName: nameChosen(model),
          sessionFolders,
          change: (work) => invocation.withArchive("change", work, { ...quiet, model }),
          examine: (onProgress) =>
            invocation.withArchive(
              "read",
              async (own) => {
                const { examine } = await import("@lossless/core/repair");
                const problem = await findModelProblem(invocation);
                return examine(await buildOptions(invocation, own, problem, onProgress));
              },
              quiet,
            ),
          mend: (findings) =>
            invocation.withArchive(
              "change",
              async (own) => {
                const { mend } = await import("lossless-claw/repair");
                return mend(await buildOptions(invocation, own, null, () => undefined), findings);
              },
              quiet,
            ),
        },
        withTranscripts: named !== null,
        mouse: options.mouse,
        conversation: isNamed(options) ? await chooseConversation(engine, invocation, options) : null,
      }),
    quiet,
  );
}

const isNamed = ({ conversation, session }: ConversationChoice): boolean =>
  conversation !== undefined || session !== undefined;

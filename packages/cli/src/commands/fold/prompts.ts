/** `lcm prompts list|export|show|diff|render`: the prompts for summaries, and a folder with your own. */
import { statSync } from "node:fs";
import { join } from "node:path";
import type { Command } from "commander";
import { EngineError } from "@lossless/core";
import type { PromptEntry } from "@lossless/core/repair";
import { toAction } from "../../invocation.ts";
import type { Invocation } from "../../invocation.ts";
import { diffLines, renderDiff } from "@lossless/core/doors";
import { terminalColumns } from "../../output.ts";
import { style } from "../../style.ts";
import { renderTable } from "../../table.ts";
import { addExamples, parseTokens } from "../shared.ts";

interface PromptOptions {
  readonly promptDir?: string;
  readonly targetTokens?: number;
}

export function definePrompts(program: Command): void {
  const group = program.command("prompts").description("Show and override the prompts for summaries");
  const define = (name: string, description: string, takesName: boolean): Command => {
    const command = group
      .command(name)
      .description(description)
      .option(
        "--prompt-dir <path>",
        "the folder of your own prompts (default: prompts in the state directory)",
      );
    return takesName
      ? command.argument("<name>", "leaf, condensed-d1, condensed-d2 or condensed-d3")
      : command;
  };
  const list = define("list", "List the prompts, and which are your own", false).action(toAction(runList));
  addExamples(list, [["lcm prompts list", "four of them, one for each depth"]]);
  const out = define("export", "Write our prompts into the folder, to be changed there", false).action(
    toAction(runExport),
  );
  addExamples(out, [["lcm prompts export --prompt-dir prompts", "existing files are kept"]]);
  const show = define("show", "Show one prompt as it is used", true).action(toAction(runShow));
  addExamples(show, [["lcm prompts show leaf", "for summaries made from messages"]]);
  const diff = define("diff", "Show what you changed in a prompt", true).action(toAction(runDiff));
  addExamples(diff, [["lcm prompts diff leaf --prompt-dir prompts", "line by line"]]);
  const render = define("render", "Print the whole of what a model is asked", true)
    .option("--target-tokens <n>", "target length", parseTokens)
    .action(toAction(runRender));
  addExamples(render, [["lcm prompts render condensed-d1 --target-tokens 2000", "with frame and form"]]);
}

async function findFolder(invocation: Invocation, { promptDir }: PromptOptions): Promise<string> {
  if (promptDir !== undefined) return requirePromptFolder(promptDir);
  return findOwnFolder(invocation);
}

const findOwnFolder = async (invocation: Invocation): Promise<string> =>
  join((await invocation.settings()).locations.stateDir, "prompts");

/** A named folder must exist: otherwise ours would be used silently. */
export function requirePromptFolder(path: string): string {
  if (statSync(path, { throwIfNoEntry: false })?.isDirectory() === true) return path;
  throw new EngineError("not_found", `cannot use the prompts in ${path}: there is no such folder`, {
    hint: "lcm prompts export --prompt-dir PATH makes one",
  });
}

async function runList(invocation: Invocation, options: PromptOptions): Promise<void> {
  const { listPrompts } = await import("@lossless/core/repair");
  const items = listPrompts(await findFolder(invocation, options));
  await invocation.print({ data: { items }, text: () => renderList(items) });
}

function renderList(items: readonly PromptEntry[]): string {
  return renderTable(
    [{ title: "NAME", style: style.name }, { title: "ORIGIN" }, { title: "FILE", flexible: true }],
    items.map(({ name, origin, isChanged, path }) => [
      name,
      origin === "own" ? (isChanged ? "own, changed" : "own, as built in") : "built in",
      origin === "own" ? path : "",
    ]),
    { maxWidth: terminalColumns(), styleTitle: style.faint },
  );
}

async function runExport(invocation: Invocation, options: PromptOptions): Promise<void> {
  const { exportPrompts } = await import("@lossless/core/repair");
  const { written, kept } = exportPrompts(options.promptDir ?? (await findOwnFolder(invocation)));
  await invocation.print({
    data: { written, kept },
    text: () =>
      [
        ...written.map((path) => `${style.good("written")}  ${path}`),
        ...kept.map((path) => style.faint(`kept     ${path}`)),
      ].join("\n"),
  });
}

async function runShow(invocation: Invocation, options: PromptOptions, word: string): Promise<void> {
  const { parsePromptName, showPrompt } = await import("@lossless/core/repair");
  const name = parsePromptName(word);
  const { text } = showPrompt(await findFolder(invocation, options), name);
  await invocation.print({ data: { name, text }, text: () => text });
}

async function runDiff(invocation: Invocation, options: PromptOptions, word: string): Promise<void> {
  const { parsePromptName, showPrompt } = await import("@lossless/core/repair");
  const name = parsePromptName(word);
  const { text, builtIn } = showPrompt(await findFolder(invocation, options), name);
  const lines = diffLines(builtIn, text);
  const isSame = lines.every((line) => line.kind === "same");
  await invocation.print({
    data: { name, isSame, lines: lines.filter((line) => line.kind !== "same") },
    text: () =>
      isSame ? `${name} is as built in.` : renderDiff(lines, { gone: style.bad, new: style.good }),
  });
}

async function runRender(invocation: Invocation, options: PromptOptions, word: string): Promise<void> {
  const { parsePromptName, renderPrompt } = await import("@lossless/core/repair");
  const { settings } = await invocation.settings();
  const name = parsePromptName(word);
  const byDefault = name === "leaf" ? settings.leafTargetTokens : settings.condensedTargetTokens;
  const prompt = renderPrompt(await findFolder(invocation, options), name, {
    targetTokens: options.targetTokens ?? byDefault,
    timeZone: settings.timezone,
  });
  await invocation.print({
    data: { name, ...prompt },
    text: () => `${style.title("System")}\n${prompt.system}\n\n${style.title("User")}\n${prompt.user}`,
  });
}

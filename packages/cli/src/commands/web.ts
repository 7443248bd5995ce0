/** `lcm web`: the archive as a page in your browser, on this machine only, until Ctrl-C. */
import { spawn } from "node:child_process";
import type { Command } from "commander";
import { readPrices } from "@lossless/core/doors";
import { toAction } from "../invocation.ts";
import type { Invocation } from "../invocation.ts";
import { addModelOptions, chooseModel, nameChosen } from "../choose-model.ts";
import type { ModelOptions } from "../choose-model.ts";
import { printNote } from "../output.ts";
import { style } from "../style.ts";
import { readVersion } from "../own-files.ts";
import { addExamples, parsePort } from "./shared.ts";

interface Options extends ModelOptions {
  readonly port: number;
  readonly open?: boolean;
  readonly write?: boolean;
  readonly prices?: string;
}

export function defineWeb(program: Command): void {
  const command = addModelOptions(
    program
      .command("web")
      .description("Browse and repair the archive in a web browser")
      .option("--port <n>", "port to listen on (0: any free port)", parsePort, 0)
      .option("--open", "open the page in your browser")
      .option(
        "--prices <file>",
        "prices of models, to show costs on the page of figures; see docs/figures.md",
      )
      .option(
        "--write",
        "allow names and tags, and repair, backup, rewrite, dissolve and forget after a preview",
      ),
  ).action(toAction(runWeb));
  addExamples(command, [
    ["lcm web", "open the printed address in a browser"],
    ["lcm web --open", "open it at once"],
    ["lcm web --port 8123 --db other.db", "another archive, on a port of your choice"],
    ["lcm web --write", "repair and change things from the page"],
  ]);
  command.addHelpText(
    "after",
    `
Prints an address and serves it until Ctrl-C. Only this machine can reach it, and only with the token in the address. The
page shows conversations, the graph of summaries, the context for any budget, plots of growth and cost, search and health,
and follows along while agents write. It only reads, and contacts no model and no other server.

With --write it can also name, tag, pin and hide conversations, and do what lcm doctor --fix, backup, repair, rewrite,
dissolve and forget do, each after a preview that you confirm. Only repair and rewrite call a model, when one is set.`,
  );
}

async function runWeb(invocation: Invocation, options: Options): Promise<void> {
  const { port, open = false, write = false, prices } = options;
  // Report an invalid file here, not on a page that is opened later.
  if (prices !== undefined) await readPrices(prices);
  const model = write ? await chooseModel(invocation, options) : null;
  const { settings, replaced: replacedSettings } = await invocation.settings();
  const { runInspector } = await import("@lossless/web");
  const { findModelProblem } = await import("./repair/doctor.ts");
  const modelProblem = await findModelProblem(invocation);
  await invocation.withArchive(
    write ? "change" : "read",
    (engine) =>
      runInspector({
        engine,
        settings,
        scope: invocation.scope,
        port,
        version: readVersion(),
        database: invocation.namedDatabase,
        prices,
        modelProblem,
        replacedSettings,
        write: write ? { model: nameChosen(model) } : undefined,
        onReady: async ({ url, port }) => {
          await invocation.print({ data: { url, port, write }, text: () => renderReady(url, write) });
          if (open) openBrowser(url);
        },
      }),
    { thread: true, model },
  );
}

/** The address was printed: if no browser can be started, the user can still open it. */
function openBrowser(url: string): void {
  const [command, ...args] = { darwin: ["open"], win32: ["cmd", "/c", "start", ""] }[
    process.platform as string
  ] ?? ["xdg-open"];
  const child = spawn(command ?? "xdg-open", [...args, url], { stdio: "ignore", detached: true });
  child.on("error", () => printNote("No browser could be started; open the address yourself."));
  child.unref();
}

function renderReady(url: string, isWriting: boolean): string {
  const mode = isWriting ? "It can change the archive. " : "";
  return `${style.name(url)}\n\n${style.faint(`Open it in your browser. ${mode}Ctrl-C ends it.`)}`;
}

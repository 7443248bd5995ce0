/** `lcm web`: the archive as a page in your browser, on this machine only, until Ctrl-C. */
import type { Command } from "commander";
import { InvalidArgumentError } from "commander";
import { toAction } from "../context.ts";
import type { Invocation } from "../context.ts";
import { style } from "../style.ts";
import { addExamples } from "./shared.ts";

interface Options {
  readonly port: number;
}

export function defineWeb(program: Command): void {
  const command = program
    .command("web")
    .description("look into the archive with your browser")
    .option("--port <n>", "listen there (default: any port that is free)", parsePort, 0)
    .action(toAction(runWeb));
  command.addHelpText(
    "after",
    `
Prints an address and serves it until Ctrl-C: conversations, the graph of summaries, the context for any budget with
its reasons, growth and cost as plots, search, health. Only this machine can reach it, and only with the token in the
address. It only reads, asks no model and no other server, and follows along while agents write.`,
  );
  addExamples(command, [
    ["lcm web", "open the printed address in a browser"],
    ["lcm web --port 8123 --db other.db", "another archive, on a port of your choice"],
  ]);
}

function parsePort(text: string): number {
  const port = Number(text);
  if (/^\d+$/.test(text) && port <= 65_535) return port;
  throw new InvalidArgumentError("It must be a port, a number up to 65535.");
}

async function runWeb(invocation: Invocation, { port }: Options): Promise<void> {
  const { settings } = await invocation.settings();
  const { runInspector } = await import("../web/run-inspector.ts");
  await invocation.withArchive(
    "read",
    (engine) =>
      runInspector({
        engine,
        settings,
        scope: invocation.scope,
        port,
        onReady: ({ url, port }) =>
          invocation.print({
            data: { url, port },
            text: () => `${style.name(url)}\n\n${style.faint("Open it in your browser. Ctrl-C ends it.")}`,
          }),
      }),
    { thread: true },
  );
}

/** `lcm support`: a file for a bug report, without any message text. */
import { resolve } from "node:path";
import type { Command } from "commander";
import { usageError, writeNewFile } from "@lossless/core/doors";
import { toAction } from "../../invocation.ts";
import type { Invocation } from "../../invocation.ts";
import { writeBytes } from "../../output.ts";
import { style } from "../../style.ts";
import { readVersion } from "../../own-files.ts";
import { addExamples } from "../shared.ts";

export function defineSupport(program: Command): void {
  const command = program
    .command("support")
    .description("Write a file for a bug report: versions, sizes and findings, no message text")
    .option("--out <path>", "the file to write; - for standard output", "lcm-support.json")
    .action(toAction(runSupport));
  addExamples(command, [
    ["lcm support", "writes lcm-support.json; read it before you send it"],
    ["lcm support --json", "prints it instead"],
  ]);
}

async function runSupport(invocation: Invocation, { out }: { readonly out: string }): Promise<void> {
  const { buildSupportBundle } = await import("@lossless/core/repair");
  const { settings, defaults } = await invocation.settings();
  const bundle = await invocation.withArchive("read", (engine) =>
    buildSupportBundle({
      engine,
      settings,
      defaults,
      databasePath: settings.databasePath,
      filesDir: settings.largeFilesDir,
      version: readVersion(),
    }),
  );
  const path = resolve(out);
  if (out === "-" && !invocation.isJson) return writeBytes(Buffer.from(render(bundle)));
  if (!invocation.isJson) write(path, bundle);
  await invocation.print({
    data: bundle,
    text: () =>
      `${style.good("ok")}  ${path}\n    versions, sizes, counts and findings; no text of any message. Read it before you send it.`,
  });
}

const render = (bundle: object): string => `${JSON.stringify(bundle, null, 2)}\n`;

function write(path: string, bundle: object): void {
  if (writeNewFile(path, render(bundle))) return;
  throw usageError(`cannot write ${path}: something is there already`, "Name another --out");
}

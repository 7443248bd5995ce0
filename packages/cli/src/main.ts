/** `lcm`, from a command line to an exit status. All errors of all commands are handled here, and nowhere else. */
import { describeFailure, toWriteError } from "@lossless/core/doors";
import { printFailure } from "./output.ts";
import { buildProgram, isHelpShown } from "./program.ts";

export async function main(args: readonly string[]): Promise<void> {
  process.stdout.on("error", (error: NodeJS.ErrnoException) => {
    // A reader that stops early (`| head`) is not an error. A full disk is one, and nothing more can be written to stdout.
    if (error.code !== "EPIPE") fail(toWriteError("the output", error), wantsJson(args));
    process.exit();
  });
  // Notes are not results: if nobody can read them, the work continues.
  process.stderr.on("error", () => undefined);
  try {
    await buildProgram().parseAsync(args, { from: "user" });
  } catch (error) {
    if (isHelpShown(error)) return;
    fail(error, wantsJson(args));
  }
}

function fail(error: unknown, isJson: boolean): void {
  const failure = describeFailure(error);
  if (process.env["LCM_DEBUG"]) console.error(error);
  printFailure(failure, isJson);
  process.exitCode = failure.exit;
  // Cancelled work may still be running in its thread; it writes nothing any more.
  if (failure.code === "aborted") process.exit();
}

/** Checks the raw arguments, because the command line may be invalid. */
function wantsJson(args: readonly string[]): boolean {
  const end = args.indexOf("--");
  return (end < 0 ? args : args.slice(0, end)).some((word) => word === "--json" || word === "-j");
}

/** `lcm`, from a command line to an exit status. Every error of every command ends here, and nowhere else. */
import { describeFailure, toWriteError } from "@lossless/core/doors";
import { printFailure } from "./output.ts";
import { buildProgram, isHelpShown } from "./program.ts";

export async function main(args: readonly string[]): Promise<void> {
  process.stdout.on("error", (error: NodeJS.ErrnoException) => {
    // A reader that has seen enough (`| head`) is no error. A disk that is full is one, and nothing more can be said on stdout.
    if (error.code !== "EPIPE") fail(toWriteError("the output", error), wantsJson(args));
    process.exit();
  });
  // Notes are no results: when nobody can read them, the work goes on.
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
  // What was cancelled may still be at work in its thread; it writes nothing any more.
  if (failure.code === "aborted") process.exit();
}

/** Asked of the words themselves, because the command line may be what is wrong. */
function wantsJson(args: readonly string[]): boolean {
  const end = args.indexOf("--");
  return (end < 0 ? args : args.slice(0, end)).some((word) => word === "--json" || word === "-j");
}
